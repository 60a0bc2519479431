# SPDX-License-Identifier: Apache-2.0
"""Which arrays are the parts of one quantized weight."""

import re
from collections.abc import Iterable

# The numbers themselves.
_MAIN = ("qweight", "weight_packed", "weight_q", "W_q", "codes")
# What goes with them.
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
        self._main: dict[str, str] = {}  # the array with the numbers, by module
        self._more: dict[str, list[str]] = {}  # the other arrays
        self._modules: dict[str, str] = {}  # by array
        weights: dict[str, str] = {}
        for name in names:
            match = _OF_A_MODULE.fullmatch(name)
            if match is None:
                continue
            module, part = match[1], match[2]
            if part == "weight":
                weights[module] = name
            elif part in _MAIN:
                self._main[module] = name
            else:
                self._more.setdefault(module, []).append(name)
                self._modules[name] = module
        for module, name in weights.items():
            if module in self._more and module not in self._main:
                self._main[module] = name
        # What looks like a part of a weight is none where there is no weight.
        for module in list(self._more):
            if module not in self._main:
                for name in self._more.pop(module):
                    del self._modules[name]
        self._modules.update({name: module for module, name in self._main.items()})

    def is_more(self, name: str) -> bool:
        """Whether an array is a part of a quantized weight, but not its numbers."""
        module = self._modules.get(name)
        return module is not None and self._main[module] != name

    def module(self, name: str) -> str | None:
        """The module whose quantized weight has this array as its numbers; None: there is none."""
        module = self._modules.get(name)
        return module if module is not None and self._main[module] == name else None

    def more(self, module: str) -> dict[str, str]:
        """The other arrays of a quantized weight, by the part that they are."""
        return {name[len(module) :]: name for name in self._more.get(module, ())}
