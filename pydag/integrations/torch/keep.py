# SPDX-License-Identifier: Apache-2.0
"""Ties that outlive a load or a move: what was cut is tied again."""

import contextlib
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import torch
from torch.overrides import TorchFunctionMode

from pydag.errors import SharingError
from pydag.sharing.prefixes import unwrapped

from .given import Groups, groups_of, named_tensors
from .identity import Identities, has_values, same_bytes
from .tree import children

Conflict = Literal["raise", "first"]


@contextlib.contextmanager
def keeping_ties(module: Any, *, on_conflict: Conflict = "raise") -> Iterator[Groups]:
    """Remember the ties of a module, and set again what the block cuts.

    `load_state_dict(assign=True)`, `to_empty`, a deep copy of a part and the like give each name a
    tensor of its own. At the end of the block, the names of a tie hold the parameter of the first
    of them, its anchor: where the others are equal to it, byte for byte, or on `meta`. If the
    anchor is on `meta`, the first that isn't is taken. What `empty_like` makes within the block for
    a tied tensor, as `to_empty` does, is filled with zeros, so that it is equal, too.

    If the block raises, nothing is done.

    Args:
        module: The module.
        on_conflict: "raise", or "first": where tensors differ, the anchor's is taken; a name that
            is gone is left out.

    Yields:
        The ties, as `ties` gives them.

    Raises:
        SharingError: Two tensors that were one differ, or one of the names is gone. Nothing was
            changed.
        ValueError: `on_conflict` is something else.

    >>> embed, head = torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False)
    >>> head.weight = embed.weight
    >>> model = torch.nn.ModuleDict({"embed": embed, "head": head})
    >>> loaded = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    >>> with keeping_ties(model):
    ...     _ = model.load_state_dict(loaded, assign=True)
    >>> model["head"].weight is model["embed"].weight
    True
    """
    if on_conflict not in ("raise", "first"):
        raise ValueError(f"on_conflict is 'raise' or 'first', and not {on_conflict!r}")
    before = named_tensors(module)
    groups = groups_of(before)
    objects = [_by_object(before, group) for group in groups]
    kinds = {_kind(before[name]) for group in groups for name in group}
    del before  # what the block replaces is freed
    with _Zeros(kinds):
        yield groups
    now = _Names(module)
    for change in [change for parts in objects for change in _changes(now, parts, on_conflict)]:
        now.set(change)


def _by_object(tensors: dict[str, Any], group: tuple[str, ...]) -> list[list[str]]:
    """The names of one memory, those of each object together."""
    found: dict[int, list[str]] = {}
    for name in group:
        found.setdefault(id(tensors[name]), []).append(name)
    return list(found.values())


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


class _Change(NamedTuple):
    """A name that shall hold another tensor."""

    name: str
    tensor: Any


class _Names:
    """The tensors of a module by name, also by those that they had before they were wrapped."""

    def __init__(self, module: Any) -> None:
        self._module, self._tensors = module, named_tensors(module)
        self._shorts = {unwrapped(name): name for name in self._tensors}

    def find(self, name: str) -> str | None:
        """The present name of what had this name."""
        name = name if name in self._tensors else self._shorts.get(unwrapped(name), name)
        if name in self._tensors:
            return name
        # Under a parametrization it is what the parametrization is computed from.
        owner, _, attribute = name.rpartition(".")
        original = f"{owner}.parametrizations.{attribute}.original".removeprefix(".")
        return original if original in self._tensors else None

    def tensor(self, name: str) -> Any:
        return self._tensors[name]

    def what_is_there(self, name: str) -> str:
        """What is found in place of a name that is gone."""
        owner, path = self._module, "the module"
        for part in name.split(".")[:-1]:
            inner = dict(children(owner)).get(part)
            if inner is None:
                return f"{path} has no {part}"
            owner, path = inner, part if owner is self._module else f"{path}.{part}"
        return f"{path} is of the class {type(owner).__module__}.{type(owner).__qualname__}"

    def set(self, change: _Change) -> None:
        path, _, attribute = change.name.rpartition(".")
        owner = self._module.get_submodule(path)
        if attribute in owner._parameters:
            setattr(owner, attribute, change.tensor)  # recurrent layers keep a list of theirs, too
        else:
            owner._buffers[attribute] = change.tensor  # `setattr` would make a parameter of one


def _changes(now: _Names, parts: list[list[str]], on_conflict: Conflict) -> list[_Change]:
    """What must be set so that the names of one memory are one again.

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
    carrier = next((name for name in names if has_values(now.tensor(name))), names[0])
    for name in names:
        _check(now, carrier, name, on_conflict)
    return [change for part in objects for change in _of_object(now, part, carrier)]


def _check(now: _Names, carrier: str, name: str, on_conflict: Conflict) -> None:
    """Raises SharingError where a tensor can't take the place of another one."""
    a, b = now.tensor(carrier), now.tensor(name)
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
    shape = ",".join(map(str, tensor.shape))
    return f"{str(tensor.dtype).removeprefix('torch.')}[{shape}] on {tensor.device}"


def _of_object(now: _Names, names: list[str], carrier: str) -> list[_Change]:
    """What must be set so that names hold one object, and the memory of the carrier."""
    if not names:
        return []
    kept = now.tensor(carrier)
    target = kept
    if carrier not in names:  # another object of the same memory
        identities = Identities()
        one = identities.of(kept)
        same = [t for t in map(now.tensor, names) if identities.of(t) == one]
        target = same[0] if same else _view(kept, now.tensor(names[0]))
    return [_Change(name, target) for name in names if now.tensor(name) is not target]


def _view(kept: Any, of_kind: Any) -> Any:
    """Another object of the same memory: a parameter or a buffer, as the one that it replaces."""
    if isinstance(of_kind, torch.nn.Parameter):
        return torch.nn.Parameter(kept.detach(), requires_grad=of_kind.requires_grad)
    return kept.detach()
