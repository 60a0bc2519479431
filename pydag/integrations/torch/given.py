# SPDX-License-Identifier: Apache-2.0
"""Reads the ties of a module, its tree, a state dict, or a saved result of `ties`."""

import functools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from torch import Tensor, nn

from pydag.arrays.kinds import is_class_of
from pydag.arrays.names import grouped

from .identity import same_memory
from .tree import check_module, walk

Groups = tuple[tuple[str, ...], ...]


class Ties(tuple[tuple[str, ...], ...]):
    """The groups of names that are one tensor. It equals a plain tuple of the same groups.

    Attributes:
        parts: For each group, its names by object: two parameters over one memory are one group of
            two parts. None if that is unknown: `state_dict()` makes a new tensor for each name.
        names: The names that are known: all, or as from JSON those that are tied.
        has_all_names: Which of the two it is.
        of_module: Whether buffers that a state dict leaves out are among the names.
    """

    parts: tuple[Groups | None, ...]
    names: tuple[str, ...]
    has_all_names: bool = False
    of_module: bool = False


Reading = tuple[Ties, Mapping[str, Any]]  # and the tensors by name, if they are known


class ModuleTensors:
    """A module, and what it holds by name.

    Args:
        call: The function that takes it, for the error if it is no module.
    """

    def __init__(self, module: Any, call: str = "") -> None:
        check_module(module, call)
        self.module = module

    @functools.cached_property
    def modules(self) -> list[tuple[str, Any]]:
        """The module and the modules in it, with prefixes of names."""
        return walk(self.module)

    @functools.cached_property
    def tensors(self) -> dict[str, Any]:
        """The parameters and then the buffers, by each of their names."""
        return named_tensors(self.module, self.modules)

    @functools.cached_property
    def ties(self) -> Ties:
        """The names that are one tensor."""
        return ties_of(self.tensors)


def named_tensors(
    module: Any, modules: list[tuple[str, Any]] | None = None, has_buffers: bool = True
) -> dict[str, Any]:
    """The parameters and then the buffers of a module, by each of their names.

    Args:
        modules: What `walk` gives for it, if that is known.
    """
    modules = modules or walk(module)
    own, classes = nn.Module, {type(inner) for _, inner in modules}
    if (
        type(module).named_parameters is not own.named_parameters
        or type(module).named_buffers is not own.named_buffers
        or any(cls.named_modules is not own.named_modules for cls in classes)
    ):  # such as FSDP's, which have shorter names
        named = dict(module.named_parameters(remove_duplicate=False))
        return named | dict(module.named_buffers(remove_duplicate=False) if has_buffers else ())
    named, buffers = {}, {}
    for prefix, inner in modules:
        for name, tensor in inner._parameters.items():
            if tensor is not None:
                named[prefix + name] = tensor
        if inner._buffers and has_buffers:
            buffers.update({prefix + n: x for n, x in inner._buffers.items() if x is not None})
    named.update(buffers)
    return named


def ties_of(tensors: Mapping[str, Any], are_own: bool = True) -> Ties:
    """The names that are one tensor, in order.

    Args:
        are_own: Whether the tensors are those of a module. Those of a state dict may be others of
            the same memory; its parameters are the module's, with `keep_vars`.
    """
    values = list(tensors.values())
    ids = list(map(id, map(same_memory(values).get, map(id, values), values)))
    shared = {i for i, count in Counter(ids).items() if count > 1}
    tied = {name: i for name, i in zip(tensors, ids, strict=True) if i in shared}
    ties = Ties(groups_of(tied, tied.__getitem__))
    splits = [groups_of(group, lambda name: id(tensors[name])) for group in ties]
    ties.parts = tuple(
        split
        if are_own or len(split) == 1 or all(isinstance(tensors[n], nn.Parameter) for n in group)
        else None
        for group, split in zip(ties, splits, strict=True)
    )
    ties.names, ties.has_all_names, ties.of_module = tuple(tensors), True, are_own
    return ties


def groups_of(names: Iterable[str], key: Callable[[str], object]) -> Groups:
    """The names with one key, in order."""
    return tuple(map(tuple, grouped(names, key).values()))


def read(thing: Any) -> Reading:
    """The ties of any object that has some, and its tensors by name.

    Raises:
        TypeError: It is something else, or holds no tensor.
    """
    if isinstance(thing, nn.Module):
        model = ModuleTensors(thing)
        return model.ties, model.tensors
    if isinstance(thing, Mapping):
        if all(isinstance(name, str) for name in thing.values()):
            return _of_one_object(_of_keys(thing)), {}
        tensors = _of_mapping(thing)
        return ties_of(tensors, are_own=False), tensors
    if isinstance(thing, Ties):
        return thing, {}
    if _is_saved(thing):
        return _of_one_object(map(tuple, thing)), {}
    is_path = isinstance(thing, str | os.PathLike)
    raise TypeError(
        "expected a module, a state dict, or what `ties` returned, or `tied_weights_keys`, or "
        f"`module_tree`, got an object of {type(thing)!r}"
        + ("\n  Read the file first: pydag.files.load(path)." if is_path else "")
    )


def _of_one_object(groups: Iterable[tuple[str, ...]]) -> Ties:
    """Ties of which nothing else is known: each was one object."""
    ties = Ties(groups)
    ties.parts = tuple((group,) for group in ties)
    ties.names = tuple(name for group in ties for name in group)
    return ties


def _of_keys(keys: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """The groups in a dict as from `tied_weights_keys`, from aliases to anchors."""
    groups: dict[str, list[str]] = {}
    for alias, anchor in keys.items():
        visited = {alias}
        while anchor in keys and anchor not in visited:
            visited.add(anchor)
            anchor = keys[anchor]
        if anchor != alias:
            groups.setdefault(anchor, [anchor]).append(alias)
    return map(tuple, groups.values())


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
        module: A module, a result of `module_tree` or `dag_map` for a module, a state dict, or the
            dict of `tied_weights_keys`. A result of `ties` is returned unchanged.

    Raises:
        TypeError: It is none of these, or holds no tensor.

    >>> embed, head = torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False)
    >>> head.weight = embed.weight
    >>> ties(torch.nn.ModuleDict({"embed": embed, "head": head}))
    (('embed.weight', 'head.weight'),)
    """
    return read(module)[0]


def _of_mapping(thing: Mapping[Any, Any]) -> dict[str, Any]:
    """The tensors of a state dict, or of nested dicts as `module_tree` makes, by their names."""
    if (tensors := _of_tree(thing)) is not None:
        return tensors
    if tensors := {str(name): value for name, value in thing.items() if _is_array(value)}:
        return tensors
    inner = (  # of a checkpoint
        f": give its item {name!r}"
        for name, x in thing.items()
        if isinstance(x, nn.Module) or (isinstance(x, Mapping) and any(map(_is_array, x.values())))
    )
    raise TypeError(f"there are no tensors in this dict{next(inner, '')}")


def _of_tree(thing: object) -> dict[str, Any] | None:
    """The tensors of nested dicts by module that hold nothing else; None for other objects."""
    found: dict[str, Any] = {}
    if not isinstance(thing, Mapping):
        return None
    for name, value in thing.items():
        if not isinstance(name, str) or "." in name:
            return None
        if _is_array(value):
            found[name] = value
        elif value is not None:
            if (below := _of_tree(value)) is None:
                return None
            found |= {f"{name}.{inner}": tensor for inner, tensor in below.items()}
    return found


def _is_saved(thing: object) -> bool:
    """Whether this is a result of `ties`, perhaps from JSON."""
    return isinstance(thing, list | tuple) and all(
        isinstance(group, list | tuple) and all(isinstance(name, str) for name in group)
        for group in thing
    )


def _is_array(value: object) -> bool:
    return isinstance(value, Tensor) or is_class_of(type(value), "numpy", "ndarray")
