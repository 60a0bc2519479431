# SPDX-License-Identifier: Apache-2.0
"""Copies the values of a tree into a module."""

import bisect
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

from pydag.arrays.bytes import as_tensor
from pydag.arrays.kinds import looks_like_array, signature, signature_text
from pydag.arrays.memory import memory_of
from pydag.errors import SharingError
from pydag.files.names import listed

from .identity import has_values, same_bytes, same_memory, surely_fits
from .tree import at, check_module, own_tensors

MOST = 8  # names in a message


def load_module_tree(module: Any, tree: Mapping[str, Any], *, cast: bool = False) -> None:
    """Copy the values of a tree, as from `module_tree`, into a module; all of them or none.

    The module keeps its ties and parameters; an optimizer goes on with them. The values may
    be tensors, on any device, or arrays of NumPy, as `pydag.files.load` gives them. Keys may be
    names with dots, as in a state dict. A tied parameter needs a value under one of its names, a
    buffer that isn't saved none.

    Args:
        module: The module.
        tree: Nested dicts by module.
        cast: Whether a value of another dtype is converted.

    Raises:
        SharingError: The tree has two values for one parameter.
        ValueError: A name is missing, or is no name of the module; a value has another shape or
            dtype; or one of the two is on `meta`.
        TypeError: A value is no array.

    >>> layer = torch.nn.Linear(3, 2)
    >>> load_module_tree(layer, pydag.dag_map(torch.zeros_like, module_tree(layer)))
    >>> layer.weight.abs().sum().item()
    0.0
    """
    check_module(module, "load_module_tree(module, tree)")
    if not isinstance(tree, Mapping):
        raise TypeError(f"module_tree(other) is needed, and not an object of {type(tree)!r}")
    firsts = same_memory(itertools.chain(module.parameters(), module.buffers()))
    found: dict[int, tuple[str, Any, Any]] = {}
    for name, own, value in _rows(module, tree):
        tensor = firsts.get(id(own), own)
        if not surely_fits(tensor, value):
            check_fit(name, tensor, value, cast)
        other_name, _, other = found.setdefault(id(tensor), (name, tensor, value))
        if not same_bytes(other, value):
            raise SharingError(
                f"{other_name} and {name} are one tensor of the module, and the tree has two "
                "values for it\n  Tie the tree first: pydag.tie, or pydag.retie."
            )
    needed: dict[int, str] = {}
    for path, inner in module.named_modules():
        for name, own in own_tensors(inner).items():
            if name not in inner._non_persistent_buffers_set:
                key = id(firsts.get(id(own), own))
                needed.setdefault(key, f"{path}.{name}" if path else name)
    if missing := [name for key, name in needed.items() if key not in found]:
        raise ValueError(f"the tree has no value for {listed(missing, MOST)}")
    with torch.no_grad():
        for tensor, value in _apart([(tensor, value) for _, tensor, value in found.values()]):
            tensor.copy_(as_tensor(value))


def _rows(module: Any, tree: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """The names in a tree, with the tensor of the module and the value."""
    pending: list[tuple[str, Any, Mapping[str, Any]]] = [("", module, tree)]
    visited: set[tuple[int, int]] = set()
    for prefix, outer, values in pending:
        for key, value in values.items():
            name, own = f"{prefix}{key}", at(outer, str(key))
            is_module, is_tree = isinstance(own, nn.Module), isinstance(value, Mapping)
            if own is None:
                raise ValueError(f"the module has no {name}")
            if is_module != is_tree:
                kind = "a module" if is_module else "a tensor"
                raise ValueError(f"{name} is {kind} of the module, and not so in the tree")
            if not is_tree:
                yield name, own, value
            elif (id(own), id(value)) not in visited:
                visited.add((id(own), id(value)))
                pending.append((f"{name}.", own, value))


def check_fit(
    name: str,
    tensor: Any,
    value: Any,
    cast: bool = False,
    source: str = "tree",
    cure: str = "cast=True converts it",
) -> None:
    """Raises an error where a value can't be copied into a tensor."""
    if not looks_like_array(value):
        raise TypeError(f"{name} must be an array, and not an object of {type(value)!r}")
    for what, it in (("of the module", tensor), (f"of the {source}", value)):
        if isinstance(it, torch.Tensor) and not has_values(it):
            raise ValueError(
                f"{name} {what} has no values, as on meta: to_empty or load_state_dict(assign=True)"
            )
    own, other = signature(tensor), signature(value)
    if own[1] != other[1] or (own != other and not cast):
        advice = f"; {cure}" if own[1] == other[1] else ""
        texts = signature_text(tensor), signature_text(value)
        raise ValueError(f"{name} is {texts[0]}, and {texts[1]} in the {source}{advice}")
    made_of_parts = [hasattr(type(it), "__tensor_flatten__") for it in (tensor, value)]
    if made_of_parts[0] != made_of_parts[1]:
        classes = [type(it).__qualname__ for it in (tensor, value)]
        raise ValueError(f"{name} is a {classes[0]}, and a {classes[1]} in the {source}")
    if tensor.is_inference() and not torch.is_inference_mode_enabled():
        raise ValueError(f"{name} was made in inference mode, and can only be changed there")
    if tensor.layout is torch.strided and any(
        length > 1 and not stride
        for length, stride in zip(tensor.shape, tensor.stride(), strict=True)
    ):
        raise ValueError(f"{name} is an expanded tensor, which can't be written to: clone() it")


def _apart(pairs: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Tensors and their new values, with copies of values in memory that is about to be written."""
    ranges = sorted(found for tensor, _ in pairs if (found := _range(tensor)))
    starts = [start for start, _ in ranges]
    ends = list(itertools.accumulate((end for _, end in ranges), max))
    apart = []
    for tensor, value in pairs:
        start, end = _range(value) or (0, 0)
        i = bisect.bisect_left(starts, end)
        if i and ends[i - 1] > start:
            if value is tensor or same_memory((tensor, value)):
                continue  # it has its value
            value = as_tensor(value).clone()
        apart.append((tensor, value))
    return apart


def _range(array: Any) -> tuple[int, int] | None:
    """Where the storage of a tensor, or an array of NumPy, begins and ends, on any device."""
    if not isinstance(array, torch.Tensor):
        memory = memory_of(array)
        return None if memory is None else memory.span()
    try:
        storage = array.untyped_storage()
        start = storage.data_ptr()
    except (RuntimeError, NotImplementedError):  # such as that of a sparse one
        return None
    return (start, start + storage.nbytes()) if start else None
