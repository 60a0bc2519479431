# SPDX-License-Identifier: Apache-2.0
"""Restores the ties of a module, by names."""

from typing import Any, Literal

import torch

from pydag.errors import SharingError
from pydag.files.arrays import signature_text
from pydag.sharing.prefixes import unwrapped

from .given import Ties, named_tensors
from .identity import Identities, has_values, same_bytes
from .tree import children

Conflict = Literal["raise", "first"]
Parts = list[list[list[str]]]  # for each tie its names, those of one object together


def check_conflict(on_conflict: Conflict) -> None:
    """Raises ValueError for another word."""
    if on_conflict not in ("raise", "first"):
        raise ValueError(f"on_conflict is 'raise' or 'first', and not {on_conflict!r}")


def parts_of(ties: Ties) -> Parts:
    """Where the objects aren't known, a tie counts as one."""
    pairs = zip(ties, ties.parts, strict=True)
    return [[list(part) for part in split or (group,)] for group, split in pairs]


class Names:
    """The tensors of a module by name, also by those that they had before they were wrapped."""

    def __init__(self, module: Any) -> None:
        self._module, self.tensors = module, named_tensors(module)  # by their present names
        self._shorts = {unwrapped(name): name for name in self.tensors}

    def find(self, name: str) -> str | None:
        """The present name of the tensor that had this name."""
        name = name if name in self.tensors else self._shorts.get(unwrapped(name), name)
        if name in self.tensors:
            return name
        # Under a parametrization it is the original tensor, from which the value is computed.
        owner, _, attribute = name.rpartition(".")
        original = f"{owner}.parametrizations.{attribute}.original".removeprefix(".")
        return original if original in self.tensors else None

    def what_is_there(self, name: str) -> str:
        """A description of the object in the place of a missing name."""
        owner, path = self._module, "the module"
        for part in name.split(".")[:-1]:
            inner = dict(children(owner)).get(part)
            if inner is None:
                return f"{path} has no {part}"
            owner, path = inner, part if owner is self._module else f"{path}.{part}"
        return f"{path} is of the class {type(owner).__module__}.{type(owner).__qualname__}"

    def set(self, name: str, tensor: Any) -> None:
        """Makes the name hold the tensor."""
        path, _, attribute = name.rpartition(".")
        owner = self._module.get_submodule(path)
        if attribute in owner._parameters:
            setattr(owner, attribute, tensor)  # recurrent layers keep a list of theirs, too
        else:
            owner._buffers[attribute] = tensor  # `setattr` would make a parameter of one


def tie(now: Names, parts: Parts, on_conflict: Conflict) -> None:
    """Restores all ties that were cut, or none."""
    for name, tensor in [row for split in parts for row in _changes(now, split, on_conflict)]:
        now.set(name, tensor)


def _changes(now: Names, parts: list[list[str]], on_conflict: Conflict) -> list[tuple[str, Any]]:
    """The names of one memory, each with the tensor that it is to hold, if that isn't there.

    Args:
        parts: The names, those that were one object together.
    """
    objects, missing = [], []
    for names in parts:
        found = {name: now.find(name) for name in names}
        missing += [name for name, present in found.items() if present is None]
        objects.append([present for present in found.values() if present is not None])
    names = [name for part in objects for name in part]
    if missing and on_conflict == "raise":
        others = [name for part in parts for name in part if name != missing[0]]
        raise SharingError(
            f"{others[0]} and {missing[0]} were one tensor, and {missing[0]} is gone: "
            f"{now.what_is_there(missing[0])}\n"
            '  Nothing was tied again. To let it go: on_conflict="first".'
        )
    if not names:
        return []
    carrier = next((name for name in names if has_values(now.tensors[name])), names[0])
    for name in names:
        _check(now, carrier, name, on_conflict)
    return [change for part in objects for change in _of_object(now, part, carrier)]


def _check(now: Names, carrier: str, name: str, on_conflict: Conflict) -> None:
    """Raises SharingError where a tensor can't take the place of another one."""
    a, b = now.tensors[carrier], now.tensors[name]
    if a is b or on_conflict == "first":
        return
    if has_values(a) and has_values(b):
        fits = same_bytes(a, b)
    else:
        lazy = any(map(torch.nn.parameter.is_lazy, (a, b)))
        fits = lazy or a.shape == b.shape
    if not fits:
        raise SharingError(
            f"{carrier} and {name} were one tensor, and differ now\n"
            f"  {carrier}: {_text(a)}\n  {name}: {_text(b)}\n"
            '  Nothing was tied again. To take the first: on_conflict="first".'
        )


def _text(tensor: Any) -> str:
    if torch.nn.parameter.is_lazy(tensor):
        return f"{tensor.dtype}, without a shape yet"
    return f"{signature_text(tensor)} on {tensor.device}"


def _of_object(now: Names, names: list[str], carrier: str) -> list[tuple[str, Any]]:
    """The changes that give names one object, with the memory of the carrier."""
    if not names:
        return []
    kept = now.tensors[carrier]
    target = kept
    if carrier not in names:  # another object of the same memory
        identities = Identities()
        one = identities.of(kept)
        same = [t for t in (now.tensors[name] for name in names) if identities.of(t) == one]
        target = same[0] if same else _view(kept, now.tensors[names[0]])
    return [(name, target) for name in names if now.tensors[name] is not target]


def _view(kept: Any, of_kind: Any) -> Any:
    """Another object of the same memory: a parameter or a buffer, as the one that it replaces."""
    if isinstance(of_kind, torch.nn.Parameter):
        return torch.nn.Parameter(kept.detach(), requires_grad=of_kind.requires_grad)
    return kept.detach()
