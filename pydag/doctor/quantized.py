# SPDX-License-Identifier: Apache-2.0
"""Which arrays are the parts of one quantized weight."""

import re
from collections.abc import Iterable

# The names of arrays with the numbers.
_MAIN = ("qweight", "weight_packed", "weight_q", "W_q", "codes")
# The names of arrays beside them.
_MORE = re.compile(
    r"(?:(?:weight|input|output|k|v)_(?:scale|scale_inv|scale_2|zero_point|shape|g_idx|global_scale)"
    r"|qzeros|scales|zeros|zero_point|g_idx|perm|codebooks|SCB|biases"
    r"|weight\.(?:absmax|quant_map|nested_absmax|nested_quant_map|quant_state\..*|SCB))"
)
_OF_A_MODULE = re.compile(rf"(.*?)\.({'|'.join(_MAIN)}|weight|{_MORE.pattern})")


class Parts:
    """The quantized weights among some arrays.

    Args:
        names: The names of all arrays.
    """

    def __init__(self, names: Iterable[str]) -> None:
        modules: dict[str, dict[str, str]] = {}  # the arrays of each, by the part that they are
        for name in names:
            if match := _OF_A_MODULE.fullmatch(name):
                modules.setdefault(match[1], {})[match[2]] = name
        self._modules: dict[str, str] = {}  # by the array with the numbers
        self._more: dict[str, dict[str, str]] = {}
        for module, parts in modules.items():
            more = {p: name for p, name in parts.items() if p not in (*_MAIN, "weight")}
            mains = [part for part in parts if part in _MAIN]
            # Without a weight these names are ordinary arrays.
            if mains or (more and "weight" in parts):
                main = parts[mains[-1] if mains else "weight"]
                self._modules[main], self._more[main] = module, more
        self._parts = {name for more in self._more.values() for name in more.values()}

    def is_more(self, name: str) -> bool:
        """Whether an array is a part of a quantized weight, but not its numbers."""
        return name in self._parts

    def module(self, name: str) -> str | None:
        """The module whose quantized weight has this array as its numbers; None: there is none."""
        return self._modules.get(name)

    def more(self, name: str) -> dict[str, str]:
        """The other arrays of a quantized weight, by the part that they are."""
        return self._more.get(name, {})

    def whole(self, name: str) -> dict[str, str]:
        """All arrays of a weight, by the part that they are."""
        module = self.module(name)
        part = "" if module is None else name[len(module) + 1 :]
        return {part: name, **self.more(name)}
