# SPDX-License-Identifier: Apache-2.0
"""Which arrays are the parts of one quantized weight, and whether one of them is missing."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pydag.arrays.names import grouped

from .finding import Finding, by_form, listed, shown

if TYPE_CHECKING:
    from .model import Model

# The names of arrays with the numbers.
_MAIN = ("qweight", "weight_packed", "weight_q", "W_q", "codes", "blocks")
# The names of arrays beside them: those without which the numbers say nothing, and others.
_NEEDED = re.compile(
    r"qzeros|scales|g_idx|codebooks|SCB|weight_(?:scale|scale_inv|scale_2|shape|global_scale)"
    r"|weight\.(?:absmax|quant_map|nested_absmax|nested_quant_map|quant_state|SCB)"
)
_MORE = re.compile(
    r"(?:weight|input|output|k|v)_(?:scale|scale_inv|scale_2|zero_point|shape|g_idx|global_scale)"
    rf"|zeros|zero_point|perm|biases|{_NEEDED.pattern}"
)
_PLAIN = ("F64", "F32", "F16", "BF16")


def _modules(forms: Iterable[list[str]]) -> dict[str, dict[str, str]]:
    """The arrays of each module, by the part of a quantized weight that they would be."""
    found = []
    for alike in forms:
        module, _, part = alike[0].rpartition(".")
        if part.endswith(("_blocks", "_scales")):
            module, part = alike[0][:-7], part[-6:]
        elif ".weight." in alike[0]:
            module, _, part = alike[0].partition(".weight.")
            part = f"weight.{'quant_state' if part.startswith('quant_state.') else part}"
        if module and (part == "weight" or part in _MAIN or _MORE.fullmatch(part)):
            found.append((len(module), part, alike))
    modules: dict[str, dict[str, str]] = {}
    if any(part != "weight" for _, part, _ in found):  # else nothing is quantized
        for end, part, alike in found:
            for name in alike:
                modules.setdefault(name[:end], {})[part] = name
    return modules


class QuantizedWeights:
    """The quantized weights among some arrays.

    Args:
        forms: The names of all arrays, those together that differ in their digits alone.
    """

    def __init__(self, forms: Iterable[list[str]]) -> None:
        self._modules: dict[str, str] = {}  # by the array with the numbers
        self._more: dict[str, dict[str, str]] = {}
        for module, parts in _modules(forms).items():
            more = {p: name for p, name in parts.items() if p not in (*_MAIN, "weight")}
            main = _main(parts)
            # Without a weight these names are ordinary arrays, and so are blocks without scales.
            if main and (more or main not in ("weight", "blocks")):
                self._modules[parts[main]], self._more[parts[main]] = module, more
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


def _main(parts: Iterable[str]) -> str:
    """The part that has the numbers; empty if there is none."""
    mains = [part for part in parts if part in _MAIN]
    return mains[-1] if mains else "weight" if "weight" in parts else ""


def check_parts(model: "Model") -> Iterator[Finding]:
    """Finds quantized weights without a part that others of their kind have.

    The kind is the name and the type of the numbers. What a kind needs is known from its other
    weights alone: a model may have several formats, and weights that aren't quantized.
    """
    if model.is_part or not model.is_known:
        return
    others = by_form(model.other_names())
    modules = _modules((*model.forms.values(), *others.values()))

    def kind(module: str) -> tuple[str, str]:
        main = _main(modules[module])
        array = model.arrays.get(modules[module].get(main, ""))
        return main, "" if array is None else array.dtype

    kinds = grouped(modules, kind)
    needed = {
        (main, dtype): {p for module in alike for p in modules[module] if _NEEDED.fullmatch(p)}
        for (main, dtype), alike in kinds.items()
        if dtype and not (main == "weight" and dtype in _PLAIN)
    }
    for one, alike in kinds.items():
        for module in alike:
            parts = modules[module]
            missing = sorted(needed.get(one, set()) - parts.keys())
            # An ordinary array may be called `scales`.
            if not one[0] and [*parts.values()] != [f"{module}.scales"]:
                own = set(filter(_NEEDED.fullmatch, parts))
                missing = [main for (main, _), whole in needed.items() if whole and own == whole]
                del missing[1:]
            if missing:
                dot = next(iter(parts.values()))[len(module)]
                names = tuple(f"{module}{dot}{part}" for part in missing)
                what = f"the quantized weight {shown(module)} lacks {listed(names)}"
                yield Finding("error", names, f"{what}, which others like it have")
