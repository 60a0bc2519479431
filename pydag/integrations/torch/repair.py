# SPDX-License-Identifier: Apache-2.0
"""Restores the ties of a module, by names."""

import functools
from typing import Any, Literal

import torch

from pydag.arrays.kinds import signature_text
from pydag.arrays.names import unwrapped
from pydag.errors import SharingError

from .given import ModuleTensors, Ties
from .identity import has_values, same_bytes, same_memory
from .tree import at

OnConflict = Literal["raise", "first"]
TieParts = list[list[list[str]]]  # for each tie its names, those of one object together


def check_conflict(on_conflict: OnConflict) -> None:
    """Raises ValueError for another word."""
    if on_conflict not in ("raise", "first"):
        raise ValueError(f"on_conflict is 'raise' or 'first', and not {on_conflict!r}")


def parts_of(ties: Ties) -> TieParts:
    """Where the objects aren't known, a tie counts as one."""
    pairs = zip(ties, ties.parts, strict=True)
    return [[list(part) for part in split or (group,)] for group, split in pairs]


class NamedTensors(ModuleTensors):
    """A module whose tensors are found by name, also by the names before it was wrapped."""

    @functools.cached_property
    def _shorts(self) -> dict[str, str]:
        return {unwrapped(name): name for name in self.tensors}

    def tensor(self, name: str) -> Any:
        """The tensor of a present name; None if there is none."""
        found = at(self.module, name)
        return found if isinstance(found, torch.Tensor) else self.tensors.get(name)

    def find(self, name: str) -> str | None:
        """The present name of the tensor that had this name."""
        if self.tensor(name) is not None:
            return name
        name = self._shorts.get(unwrapped(name), name)
        if name in self.tensors:
            return name
        # Under a parametrization it is the original tensor, from which the value is computed.
        owner, _, attribute = name.rpartition(".")
        original = f"{owner}.parametrizations.{attribute}.original".removeprefix(".")
        return original if original in self.tensors else None

    def what_is_there(self, name: str) -> str:
        """A description of the object in the place of a missing name."""
        owner, path = self.module, ""
        for part in name.split(".")[:-1]:
            if (inner := at(owner, part)) is None:
                return f"{path or 'the module'} has no {part}"
            owner, path = inner, f"{path}.{part}".removeprefix(".")
        kind = type(owner)
        return f"{path or 'the module'} is of the class {kind.__module__}.{kind.__qualname__}"

    def set(self, name: str, tensor: Any) -> None:
        """Makes the name hold the tensor."""
        path, _, attribute = name.rpartition(".")
        owner = self.module.get_submodule(path)
        if attribute in owner._parameters:
            setattr(owner, attribute, tensor)  # recurrent layers keep a list of theirs, too
        else:
            owner._buffers[attribute] = tensor  # `setattr` would make a parameter of one


def tie(now: NamedTensors, parts: TieParts, on_conflict: OnConflict) -> bool:
    """Restores all ties that were cut, or none. Returns whether any was cut."""
    changes = [row for split in parts for row in _changes(now, split, on_conflict)]
    for name, tensor in changes:
        now.set(name, tensor)
    return bool(changes)


def _changes(
    now: NamedTensors, parts: list[list[str]], on_conflict: OnConflict
) -> list[tuple[str, Any]]:
    """The names of one memory, each with the tensor that it is to hold, if that isn't there.

    Args:
        parts: The names, those that were one object together.
    """
    found = {name: now.find(name) for names in parts for name in names}
    objects = [[present for name in names if (present := found[name])] for names in parts]
    names = [name for part in objects for name in part]
    if len(names) < len(found) and on_conflict == "raise":
        missing = next(name for name, present in found.items() if not present)
        other = next((name for name in found if name != missing), missing)
        raise SharingError(
            f"{other} and {missing} were one tensor, and {missing} is gone: "
            f"{now.what_is_there(missing)}\n"
            '  Nothing was tied again. To let it go: on_conflict="first".'
        )
    if not names:
        return []
    carrier = next((name for name in names if has_values(now.tensor(name))), names[0])
    kept = now.tensor(carrier)
    for name in names if on_conflict == "raise" else ():
        if not _fits(kept, tensor := now.tensor(name)):
            raise SharingError(
                f"{carrier} and {name} were one tensor, and differ now\n"
                f"  {carrier}: {_text(kept)}\n  {name}: {_text(tensor)}\n"
                '  Nothing was tied again. To take the first: on_conflict="first".'
            )
    changes = []
    for part in filter(None, objects):
        target, own = kept, [now.tensor(name) for name in part]
        if carrier not in part:  # another object of the same memory
            is_same = own[0] is kept or same_memory((kept, own[0]))
            target = own[0] if is_same else _view(kept, own[0])
        changes += [(n, target) for n, x in zip(part, own, strict=True) if x is not target]
    return changes


def _fits(a: Any, b: Any) -> bool:
    """Whether a tensor can take the place of another one."""
    if has_values(a) and has_values(b):
        return same_bytes(a, b)
    return a is b or any(map(torch.nn.parameter.is_lazy, (a, b))) or a.shape == b.shape


def _text(tensor: Any) -> str:
    if torch.nn.parameter.is_lazy(tensor):
        return f"{tensor.dtype}, without a shape yet"
    return f"{signature_text(tensor)} on {tensor.device}"


def _view(kept: Any, of_kind: Any) -> Any:
    """Another object of the same memory: a parameter or a buffer, as the one that it replaces."""
    if isinstance(of_kind, torch.nn.Parameter):
        return torch.nn.Parameter(kept.detach(), requires_grad=of_kind.requires_grad)
    return kept.detach()
