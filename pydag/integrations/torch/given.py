# SPDX-License-Identifier: Apache-2.0
"""What may be asked for its ties: a module, a state dict, or a saved answer of `ties`."""

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor, nn

from .identity import Identities

Groups = tuple[tuple[str, ...], ...]


class Given:
    """Names, in order, which of them are one, and the tensors, where they are known."""

    def __init__(
        self, names: Iterable[str], groups: Groups, tensors: Mapping[str, Any] | None
    ) -> None:
        self.names, self.groups, self.tensors = tuple(names), groups, tensors

    @property
    def is_saved(self) -> bool:
        """Whether only the names that were tied are known."""
        return self.tensors is None


def named_tensors(module: Any) -> dict[str, Any]:
    """The parameters and then the buffers of a module, by each of their names."""
    named = dict(module.named_parameters(remove_duplicate=False))
    named.update(module.named_buffers(remove_duplicate=False))
    return named


def groups_of(tensors: Mapping[str, Any]) -> Groups:
    """The names that are one tensor, in order."""
    identities = Identities()
    found: dict[Any, list[str]] = {}
    for name, tensor in tensors.items():
        found.setdefault(identities.of(tensor), []).append(name)
    return tuple(tuple(names) for names in found.values() if len(names) > 1)


def read(thing: Any) -> Given:
    """What was given.

    Raises:
        TypeError: It is neither a module nor a state dict nor an answer of `ties`.
    """
    if isinstance(thing, nn.Module):
        tensors = named_tensors(thing)
        return Given(tensors, groups_of(tensors), tensors)
    if isinstance(thing, Mapping):
        tensors = {str(name): value for name, value in thing.items() if _is_array(value)}
        if not tensors:
            _check_depth(thing)
        return Given(tensors, groups_of(tensors), tensors)
    if _is_saved(thing):
        groups = tuple(map(tuple, thing))
        return Given((name for group in groups for name in group), groups, None)
    raise TypeError(
        "a module, a state dict, or what `ties` returned is wanted, and not "
        f"an object of {type(thing)!r}"
    )


def _check_depth(thing: Mapping[Any, Any]) -> None:
    """Raises TypeError for a checkpoint that has the state dict as one of its items."""
    for name, value in thing.items():
        if isinstance(value, nn.Module) or (
            isinstance(value, Mapping) and any(map(_is_array, value.values()))
        ):
            raise TypeError(f"there are no tensors in this dict: give its item {name!r}")


def _is_saved(thing: object) -> bool:
    """Whether this is an answer of `ties`, perhaps from JSON."""
    return isinstance(thing, list | tuple) and all(
        isinstance(group, list | tuple) and all(isinstance(name, str) for name in group)
        for group in thing
    )


def _is_array(value: object) -> bool:
    numpy = sys.modules.get("numpy")
    return isinstance(value, Tensor) or (numpy is not None and isinstance(value, numpy.ndarray))
