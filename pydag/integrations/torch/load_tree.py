# SPDX-License-Identifier: Apache-2.0
"""Copies the values of a tree into a module."""

import bisect
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch

from pydag.errors import SharingError
from pydag.files.arrays import dtype_name, signature, signature_text
from pydag.files.names import listed
from pydag.sharing.memory import memory_of

from .identity import Identities, has_values, same_bytes
from .tree import children, own_tensors

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
    identities = Identities()
    targets = _targets(module, identities)
    found: dict[Any, tuple[str, Any]] = {}
    for name, tensor, value in _pairs(module, tree):
        key = identities.of(tensor)
        _check(name, tensor, value, cast)
        other_name, other = found.setdefault(key, (name, value))
        if other is not value and not same_bytes(_tensor(other), _tensor(value)):
            raise SharingError(
                f"{other_name} and {name} are one tensor of the module, and the tree has two "
                "values for it\n  Tie the tree first: pydag.tie, or pydag.retie."
            )
    missing = [name for key, (name, _, needed) in targets.items() if needed and key not in found]
    if missing:
        raise ValueError(f"the tree has no value for {listed(missing, MOST)}")
    memory = _Memory(target.tensor for target in targets.values())
    # Before the first write, values that would be overwritten are copied.
    pairs = [(targets[key].tensor, value) for key, (_, value) in found.items()]
    pairs = [(tensor, memory.kept_apart(tensor, value)) for tensor, value in pairs]
    with torch.no_grad():
        for tensor, value in pairs:
            if value is not tensor:
                tensor.copy_(_tensor(value))


class _Target(NamedTuple):
    name: str
    tensor: Any
    needed: bool


def _targets(module: Any, identities: Identities) -> dict[Any, _Target]:
    """The distinct tensors of a module, by their keys."""
    targets: dict[Any, _Target] = {}
    for path, inner in module.named_modules():
        for name, tensor in own_tensors(inner):
            full = f"{path}.{name}".removeprefix(".")
            new = _Target(full, tensor, name not in inner._non_persistent_buffers_set)
            old = targets.setdefault(identities.of(tensor), new)
            if new.needed and not old.needed:
                targets[identities.of(tensor)] = old._replace(needed=True)
    return targets


def _pairs(module: Any, tree: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """The names in a tree, with the tensor of the module and the value."""
    pending: list[tuple[str, Any, Mapping[str, Any]]] = [("", module, tree)]
    seen: dict[tuple[int, int], Any] = {}  # with the tree, whose id must not be reused
    while pending:
        prefix, inner, values = pending.pop()
        if (id(inner), id(values)) in seen:
            continue
        seen[id(inner), id(values)] = values
        tensors, modules = dict(own_tensors(inner)), dict(children(inner))
        dotted: dict[str, dict[str, Any]] = {}
        below: list[tuple[str, Any, Mapping[str, Any]]] = []
        for name, value in values.items():
            head, dot, rest = str(name).partition(".")
            if name in tensors and not isinstance(value, Mapping):
                yield prefix + name, tensors[name], value
            elif name in modules and isinstance(value, Mapping):
                below.append((f"{prefix}{name}.", modules[name], value))
            elif dot and head in modules:
                dotted.setdefault(head, {})[rest] = value
            elif name in tensors or name in modules:
                kind = "a tensor" if name in tensors else "a module"
                raise ValueError(f"{prefix}{name} is {kind} of the module, and not so in the tree")
            else:
                raise ValueError(f"the module has no {prefix}{name}")
        below += [(f"{prefix}{name}.", modules[name], part) for name, part in dotted.items()]
        pending += reversed(below)


def _check(name: str, tensor: Any, value: Any, cast: bool) -> None:
    """Raises an error where a value can't be copied into a tensor."""
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        raise TypeError(f"{name} must be an array, and not an object of {type(value)!r}")
    for what, it in (("of the module", tensor), ("of the tree", value)):
        if isinstance(it, torch.Tensor) and not has_values(it):
            raise ValueError(
                f"{name} {what} has no values, as on meta: to_empty or load_state_dict(assign=True)"
            )
    own, other = signature(tensor), signature(value)
    if own[1] != other[1] or (own != other and not cast):
        cure = "; cast=True converts it" if own[1] == other[1] else ""
        texts = signature_text(tensor), signature_text(value)
        raise ValueError(f"{name} is {texts[0]}, and {texts[1]} in the tree{cure}")
    made_of_parts = [hasattr(type(it), "__tensor_flatten__") for it in (tensor, value)]
    if made_of_parts[0] != made_of_parts[1]:
        classes = [type(it).__qualname__ for it in (tensor, value)]
        raise ValueError(f"{name} is a {classes[0]}, and a {classes[1]} in the tree")
    if tensor.is_inference() and not torch.is_inference_mode_enabled():
        raise ValueError(f"{name} was made in inference mode, and can only be changed there")
    if tensor.layout is torch.strided and any(
        length > 1 and not stride
        for length, stride in zip(tensor.shape, tensor.stride(), strict=True)
    ):
        raise ValueError(f"{name} is an expanded tensor, which can't be written to: clone() it")


def _tensor(value: Any) -> Any:
    """A value as a tensor, by NumPy where it isn't one."""
    if isinstance(value, torch.Tensor):
        return value.detach()
    import numpy as np

    array = np.asarray(value)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()  # PyTorch makes no tensors of such arrays
    dtype = getattr(torch, dtype_name(array.dtype), None)
    if array.dtype.isbuiltin == 1 or dtype is None:
        return torch.from_numpy(array)
    # NumPy has bfloat16 and the like from another package. `reshape` keeps arrays without axes.
    raw = torch.from_numpy(np.ascontiguousarray(array).view(f"u{array.itemsize}"))
    return raw.view(dtype).reshape(array.shape)


class _Memory:
    """The memory of a module's tensors, which is about to be written."""

    def __init__(self, tensors: Iterator[Any]) -> None:
        self._ranges = sorted(filter(None, map(_range, tensors)))

    def kept_apart(self, tensor: Any, value: Any) -> Any:
        """The value for a tensor, not in memory that another value is written to.

        It is the tensor itself if it is the same memory.
        """
        own = memory_of(tensor)
        if value is tensor or (own is not None and memory_of(value) == own):
            return tensor
        shared = _tensor(value)
        if (found := _range(shared)) is None:
            return value
        device, start, end = found
        i = bisect.bisect_left(self._ranges, (device, end, 0))
        touches = i and self._ranges[i - 1][0] == device and self._ranges[i - 1][2] > start
        return shared.clone() if touches else value


def _range(tensor: Any) -> tuple[str, int, int] | None:
    """Where the storage of a tensor begins and ends."""
    if memory_of(tensor) is None or hasattr(type(tensor), "__tensor_flatten__"):
        return None
    storage = tensor.untyped_storage()
    return str(storage.device), storage.data_ptr(), storage.data_ptr() + storage.nbytes()
