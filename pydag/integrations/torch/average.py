# SPDX-License-Identifier: Apache-2.0
"""A moving average of the parameters of a module."""

from typing import Any

import torch

from pydag.arrays.kinds import signature_text
from pydag.arrays.names import in_common
from pydag.errors import SharingError
from pydag.files.names import listed

from .given import named_tensors, ties_of
from .identity import surely_fits
from .load_tree import MOST, check_fit
from .tree import check_module


def module_average(module: Any, other: Any, weight: float) -> None:
    """Move each parameter of a module towards that of another one, in place; all or none.

    It calls `p.lerp_(q, weight)`, which is `p + weight * (q - p)`, once for each parameter. Buffers
    keep their values. A prefix that only one side has, such as `_orig_mod.`, is ignored.

    Args:
        module: The average, such as `copy.deepcopy(model)`.
        other: The model. It may be on another device.
        weight: The part of `other`, such as 0.01.

    Raises:
        SharingError: Two names are one parameter in one of the modules, and two in the other.
        ValueError: Names, shapes or dtypes differ; a parameter is of integers, or on `meta`.
        TypeError: One of them is no module.

    >>> average, model = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    >>> _ = torch.nn.init.zeros_(average.bias), torch.nn.init.ones_(model.bias)
    >>> module_average(average, model, 0.25)
    >>> average.bias.tolist()
    [0.25, 0.25]
    """
    for one in (module, other):
        check_module(one, "module_average")
    ours, theirs = (named_tensors(one, has_buffers=False) for one in (module, other))
    plain, rest = _pairs(ours, _renamed(ours, theirs))
    with torch.no_grad():
        if plain:
            torch._foreach_lerp_(*zip(*plain, strict=True), weight)
        for p, q in rest:
            p.lerp_(q.to(p.device), weight)


Pairs = list[tuple[Any, Any]]
_REAL = {torch.float16, torch.bfloat16, torch.float32, torch.float64}
_AVERAGED = {*_REAL, torch.complex64, torch.complex128}


def _renamed(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """The parameters of the other module, by our names in our order."""
    if list(ours) == list(theirs):
        return theirs
    short, other_short = in_common(ours, theirs)
    if lacking := sorted(short.keys() ^ other_short.keys()):
        raise ValueError(f"only one of the two modules has {listed(lacking, MOST)}")
    return {name: theirs[other_short[key]] for key, name in short.items()}


def _pairs(ours: dict[str, Any], theirs: dict[str, Any]) -> tuple[Pairs, Pairs]:
    """The distinct parameters with those of the other module: plain ones on one device, and others.

    Raises an error where they don't fit.
    """
    anchors, others = (
        {name: group[0] for group in ties_of(side) for name in group} for side in (ours, theirs)
    )
    for name in ours if anchors != others else ():
        here, there = anchors.get(name, name), others.get(name, name)
        if here != there:
            first, where, cure = here, "the average", "other, module"
            if here == name:
                first, where, cure = there, "the model", "module, other"
            raise SharingError(
                f"{first} and {name} are one parameter of {where} alone\n"
                f"  Tie them in the other, too: tie_again({cure})."
            )
    plain, rest = [], []
    for name, p in ours.items():
        if anchors.get(name, name) != name:
            continue
        q = theirs[name]
        if p.dtype not in _AVERAGED:
            raise ValueError(f"{name} is {signature_text(p)}, which has no average")
        if surely_fits(p, q):
            plain.append((p, q))
        else:
            check_fit(name, p, q, source="model", cure="convert one of the two")
            rest.append((p, q))
    return plain, rest
