# SPDX-License-Identifier: Apache-2.0
"""Keeps ties through a load or a move, by restoring those that were cut."""

import contextlib
import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn import Parameter
from torch.overrides import TorchFunctionMode

from pydag.arrays.names import in_common
from pydag.errors import LostTieWarning

from .changes import TieComparison, first_lines
from .declared import cut_ties
from .given import Groups, ModuleTensors, read
from .identity import has_values
from .repair import NamedTensors, OnConflict, TieParts, check_conflict, parts_of, tie


@contextlib.contextmanager
def keeping_ties(module: Any, *, on_conflict: OnConflict = "raise") -> Iterator[Groups]:
    """Remember the ties of a module, and restore those that the block cuts.

    `load_state_dict(assign=True)`, `to_empty`, a deep copy of a part and the like give each name a
    tensor of its own. At the end of the block, the names of a tie hold the parameter of the first
    of them, its anchor: where the others are equal to it, byte for byte, or on `meta`. If the
    anchor is on `meta`, the first that isn't is taken. What `empty_like` makes within the block for
    a tied tensor on `meta` or a tied buffer, as `to_empty` does, is filled with zeros, so that it
    is equal, too.

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
    model = ModuleTensors(module, "with keeping_ties(module)")
    groups = model.ties
    parts = parts_of(groups)
    if lines := [*_over_one_memory(model.tensors, parts), *cut_ties(model)]:
        warnings.warn(
            "the model is already cut, and stays so\n  "
            + "\n  ".join(first_lines(lines))
            + "\n  To fix it: tie_again(model, before), where `before` is a correct model or the "
            "answer of `ties` for one.",
            LostTieWarning,
            stacklevel=3,
        )
    replaces = torch.__future__.get_overwrite_module_params_on_conversion()
    tied = (model.tensors[name] for group in groups for name in group)
    # By `to_empty` a parameter with values stays the object that it is.
    kinds = {_kind(x) for x in tied if replaces or type(x) is not Parameter or not has_values(x)}
    del model, tied  # so that tensors that the block replaces are freed
    with _Zeros(kinds) if kinds else contextlib.nullcontext():  # it slows down each call
        yield groups
    tie(NamedTensors(module), parts, on_conflict)


def tie_again(module: Any, before: Any, *, on_conflict: OnConflict = "raise") -> None:
    """Restore ties of a module as in another module, by the rules of `keeping_ties`.

    Args:
        module: The module.
        before: A module with the desired ties, its `module_tree` or state dict, a result of `ties`,
            or the dict of `tied_weights_keys`.
        on_conflict: "raise", or "first": if tensors differ, the anchor's is taken; a name that the
            module doesn't have is left out.

    Raises:
        SharingError: Two tensors that are to be tied differ, or the module doesn't have one of the
            names. Nothing was changed.
        ValueError: `on_conflict` is something else; or there is nothing to restore, and the module
            has ties that `before` hasn't, as where the two are swapped.
        TypeError: `module` is no module; `before` is something else, or holds no tensor.

    >>> embed, head = torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False)
    >>> head.weight = torch.nn.Parameter(embed.weight.detach().clone())
    >>> model = torch.nn.ModuleDict({"embed": embed, "head": head})
    >>> tie_again(model, [["embed.weight", "head.weight"]])
    >>> head.weight is embed.weight
    True
    """
    check_conflict(on_conflict)
    now = NamedTensors(module, "tie_again(module, before)")
    given, tensors = read(before)
    theirs, ours = in_common(itertools.chain(*given), now.tensors)
    present = {name: ours[short] for short, name in theirs.items() if short in ours}
    parts = [
        [[present.get(name, name) for name in names] for names in split]
        for split in parts_of(given)
    ]
    if not tie(now, parts, on_conflict) and given.has_all_names and now.ties != given:
        for line in TieComparison((given, tensors), (now.ties, now.tensors)).new_ties():
            raise ValueError(
                f"there is nothing to tie again: {line}\n"
                "  The module that was cut comes first: tie_again(module, before)."
            )


def _over_one_memory(tensors: dict[str, Any], parts: TieParts) -> Iterator[str]:
    """Which parameters that are trained are one memory, in words."""
    for split in parts:
        firsts = [(names[0], tensors[names[0]]) for names in split if len(split) > 1]
        names = [name for name, x in firsts if isinstance(x, Parameter) and x.requires_grad]
        if len(names) > 1:
            yield f"{' and '.join(names)} are parameters over one memory: an optimizer steps each"


def _kind(tensor: Any) -> tuple[Any, Any]:
    return not torch.nn.parameter.is_lazy(tensor) and tensor.shape, tensor.dtype


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
