# SPDX-License-Identifier: Apache-2.0
"""Reads the ties of a module, its tree, a state dict, or a saved result of `ties`."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor, nn

from pydag.files.tensors import is_class_of

from .identity import Identities

Groups = tuple[tuple[str, ...], ...]


class Ties(tuple[tuple[str, ...], ...]):
    """The groups of names that are one tensor. It equals a plain tuple of the same groups.

    Attributes:
        parts: For each group, its names by object: two parameters over one memory are one group of
            two parts. None if that is unknown: `state_dict()` makes a new tensor for each name.
    """

    parts: tuple[Groups | None, ...]


class Given:
    """Names, in order, which of them are tied, and the tensors, if they are known."""

    def __init__(self, names: tuple[str, ...], ties: Ties, tensors: Mapping[str, Any] | None):
        self.names, self.ties, self.tensors = names, ties, tensors
        self.is_saved = tensors is None  # then only the names that were tied are known


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


def ties_of(tensors: Mapping[str, Any], are_own: bool = True) -> Ties:
    """The names that are one tensor.

    Args:
        are_own: Whether the tensors are those of a module. Those of a state dict may be others of
            the same memory; its parameters are the module's, with `keep_vars`.
    """
    ties = Ties(groups_of(tensors))
    parts = []
    for group in ties:
        by_object: dict[int, list[str]] = {}
        for name in group:
            by_object.setdefault(id(tensors[name]), []).append(name)
        is_known = are_own or all(isinstance(tensors[name], nn.Parameter) for name in group)
        split = tuple(map(tuple, by_object.values()))
        parts.append(split if is_known or len(split) == 1 else None)
    ties.parts = tuple(parts)
    return ties


def read(thing: Any) -> Given:
    """Reads any object with ties.

    Raises:
        TypeError: It is something else.
    """
    if isinstance(thing, nn.Module):
        tensors = named_tensors(thing)
        return Given(tuple(tensors), ties_of(tensors), tensors)
    if isinstance(thing, Mapping):
        tensors = dict(_of_mapping(thing))
        if not tensors:
            _check_depth(thing)
        return Given(tuple(tensors), ties_of(tensors, are_own=False), tensors)
    if _is_saved(thing):
        ties = thing if isinstance(thing, Ties) else Ties(map(tuple, thing))
        if ties is not thing:  # from JSON: each tie was one object
            ties.parts = tuple((group,) for group in ties)
        return Given(tuple(name for group in ties for name in group), ties, None)
    is_path = isinstance(thing, str | os.PathLike)
    raise TypeError(
        "expected a module, a state dict, or what `ties` returned or `module_tree` made, "
        f"got an object of {type(thing)!r}"
        + ("\n  Read the file first: pydag.files.load(path)." if is_path else "")
    )


def ties(module: Any) -> Ties:
    """The groups of names that are one parameter, buffer or memory; empty if nothing is tied.

    Names are those of `named_parameters(remove_duplicate=False)`, then those of `named_buffers`, in
    this order. A module that stands at two places gives a group for each of its parameters. Two
    tensors are one if they are one object, or the same view of the same memory: so a state dict has
    the ties of its module, although `state_dict()` makes new tensors at each call. This also works
    on `meta`.

    The result is a tuple of tuples, and can be saved as JSON. It also remembers, unless it was
    saved as JSON, which groups are several parameters over one memory: see `tie_changes`.

    Args:
        module: A module, a result of `module_tree` or `dag_map` for a module, or a state dict. A
            result of `ties` is returned unchanged.

    Raises:
        TypeError: It is none of these.

    >>> embed, head = torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False)
    >>> head.weight = embed.weight
    >>> ties(torch.nn.ModuleDict({"embed": embed, "head": head}))
    (('embed.weight', 'head.weight'),)
    """
    return read(module).ties


def _of_mapping(thing: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """The tensors of a state dict, or of nested dicts as `module_tree` makes, by their names."""
    is_tree = _is_tree(thing)
    for name, value in thing.items():
        if _is_array(value):
            yield str(name), value
        elif is_tree and value is not None:
            yield from ((f"{name}.{inner}", tensor) for inner, tensor in _of_mapping(value))


def _is_tree(thing: object) -> bool:
    """Whether these are nested dicts by module that hold nothing but tensors."""
    return isinstance(thing, Mapping) and all(
        isinstance(name, str)
        and "." not in name
        and (value is None or _is_array(value) or _is_tree(value))
        for name, value in thing.items()
    )


def _check_depth(thing: Mapping[Any, Any]) -> None:
    """Raises TypeError for a checkpoint that has the state dict as one of its items."""
    for name, value in thing.items():
        if isinstance(value, nn.Module) or (
            isinstance(value, Mapping) and any(map(_is_array, value.values()))
        ):
            raise TypeError(f"there are no tensors in this dict: give its item {name!r}")


def _is_saved(thing: object) -> bool:
    """Whether this is a result of `ties`, perhaps from JSON."""
    return isinstance(thing, list | tuple) and all(
        isinstance(group, list | tuple) and all(isinstance(name, str) for name in group)
        for group in thing
    )


def _is_array(value: object) -> bool:
    return isinstance(value, Tensor) or is_class_of(type(value), "numpy", "ndarray")
