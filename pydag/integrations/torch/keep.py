# SPDX-License-Identifier: Apache-2.0
"""Keeps ties through a load or a move, by restoring those that were cut."""

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from pydag.errors import LostTieWarning
from pydag.sharing.prefixes import in_common

from .changes import first_lines
from .declared import cut_ties
from .given import Groups, named_tensors, read, ties_of
from .repair import Conflict, Names, Parts, check_conflict, parts_of, tie


@contextlib.contextmanager
def keeping_ties(module: Any, *, on_conflict: Conflict = "raise") -> Iterator[Groups]:
    """Remember the ties of a module, and restore those that the block cuts.

    `load_state_dict(assign=True)`, `to_empty`, a deep copy of a part and the like give each name a
    tensor of its own. At the end of the block, the names of a tie hold the parameter of the first
    of them, its anchor: where the others are equal to it, byte for byte, or on `meta`. If the
    anchor is on `meta`, the first that isn't is taken. What `empty_like` makes within the block for
    a tied tensor, as `to_empty` does, is filled with zeros, so that it is equal, too.

    If the block raises, no tie is restored.

    Args:
        module: The module.
        on_conflict: "raise", or "first": where tensors differ, the anchor's is taken; a name that
            is gone is left out.

    Yields:
        The ties, as returned by `ties`.

    Raises:
        SharingError: Two tensors that were one differ, or one of the names is gone. Nothing was
            changed.
        ValueError: `on_conflict` is something else.

    Warns:
        LostTieWarning: The module is already cut: two parameters that are trained are over one
            memory, or names aren't tied that its `_tied_weights_keys` ties. `tie_again` fixes it.

    >>> embed, head = torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False)
    >>> head.weight = embed.weight
    >>> model = torch.nn.ModuleDict({"embed": embed, "head": head})
    >>> loaded = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    >>> with keeping_ties(model):
    ...     _ = model.load_state_dict(loaded, assign=True)
    >>> model["head"].weight is model["embed"].weight
    True
    """
    check_conflict(on_conflict)
    tensors = named_tensors(module)
    groups = ties_of(tensors)
    parts = parts_of(groups)
    if lines := [*_over_one_memory(tensors, parts), *cut_ties(module)]:
        warnings.warn(
            "the model is already cut, and stays so\n  "
            + "\n  ".join(first_lines(lines))
            + "\n  To fix it: tie_again(model, before), where `before` is a correct model or the "
            "answer of `ties` for one.",
            LostTieWarning,
            stacklevel=3,
        )
    kinds = {_kind(tensors[name]) for group in groups for name in group}
    del tensors  # so that tensors that the block replaces are freed
    with _Zeros(kinds):
        yield groups
    tie(Names(module), parts, on_conflict)


def tie_again(module: Any, before: Any, *, on_conflict: Conflict = "raise") -> None:
    """Restore ties of a module as in another module, by the rules of `keeping_ties`.

    Args:
        module: The module.
        before: A module with the desired ties, its `module_tree` or state dict, or a result of
            `ties`.
        on_conflict: "raise", or "first": if tensors differ, the anchor's is taken; a name that the
            module doesn't have is left out.

    Raises:
        SharingError: Two tensors that are to be tied differ, or the module doesn't have one of the
            names. Nothing was changed.
        ValueError: `on_conflict` is something else.

    >>> embed, head = torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False)
    >>> head.weight = torch.nn.Parameter(embed.weight.detach().clone())
    >>> model = torch.nn.ModuleDict({"embed": embed, "head": head})
    >>> tie_again(model, [["embed.weight", "head.weight"]])
    >>> head.weight is embed.weight
    True
    """
    check_conflict(on_conflict)
    given, now = read(before), Names(module)
    theirs, ours = in_common(given.names, now.tensors)
    present = {name: ours[short] for short, name in theirs.items() if short in ours}
    parts = [
        [[present.get(name, name) for name in names] for names in split]
        for split in parts_of(given.ties)
    ]
    tie(now, parts, on_conflict)


def _over_one_memory(tensors: dict[str, Any], parts: Parts) -> Iterator[str]:
    """Which parameters that are trained are one memory, in words."""
    parameters = {n: x for n, x in tensors.items() if isinstance(x, torch.nn.Parameter)}
    trained = {name for name, x in parameters.items() if x.requires_grad}
    for split in parts:
        names = [names[0] for names in split if names[0] in trained]
        if len(names) > 1:
            yield f"{' and '.join(names)} are parameters over one memory: an optimizer steps each"


def _kind(tensor: Any) -> tuple[Any, Any]:
    lazy = torch.nn.parameter.is_lazy(tensor)
    return (None if lazy else tuple(tensor.shape)), tensor.dtype


class _Zeros(TorchFunctionMode):
    """Within it, `empty_like` of a tensor of these shapes and dtypes gives zeros."""

    def __init__(self, kinds: set[tuple[Any, Any]]) -> None:
        super().__init__()
        self._kinds = kinds

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        if function is torch.empty_like and args and _kind(args[0]) in self._kinds:
            with torch.no_grad():
                result.zero_()
        return result
