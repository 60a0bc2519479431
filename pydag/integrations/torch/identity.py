# SPDX-License-Identifier: Apache-2.0
"""Decides which tensors are the same tensor, and whether others have the same bytes."""

from collections.abc import Hashable
from typing import Any

import torch

from pydag.sharing.memory import memory_of


class Identities:
    """Gives keys to tensors, equal for those that are one: one object, or one memory.

    Tensors on `meta` have no memory, but a storage object that replaces it. The keys are valid as
    long as this object and the tensors live.
    """

    def __init__(self) -> None:
        self._storages: list[Any] = []  # keeps them alive, so that no id is reused

    def of(self, tensor: Any) -> Hashable:
        """The key of a tensor, or of an array of NumPy."""
        if (memory := memory_of(tensor)) is not None:
            return memory
        if is_on_meta(tensor) and tensor.layout is torch.strided and tensor.numel():
            self._storages.append(storage := tensor.untyped_storage())
            shape, strides = tuple(tensor.shape), tuple(tensor.stride())
            return "meta", id(storage), tensor.storage_offset(), tensor.dtype, shape, strides
        return id(tensor)


def is_on_meta(tensor: Any) -> bool:
    """Whether a tensor is on `meta`."""
    return isinstance(tensor, torch.Tensor) and tensor.device.type == "meta"


def has_values(tensor: Any) -> bool:
    """Whether there is anything in a tensor: not on `meta`, nor waiting for its shape."""
    return not is_on_meta(tensor) and not torch.nn.parameter.is_lazy(tensor)


def same_bytes(a: Any, b: Any) -> bool:
    """Whether two tensors agree in dtype, shape and bytes, so that NaN equals NaN.

    They may be on different devices.
    """
    if a is b:
        return True
    a, b = (x.detach() if isinstance(x, torch.Tensor) else torch.as_tensor(x) for x in (a, b))
    if not (has_values(a) and has_values(b)):
        return False
    if a.dtype != b.dtype or a.shape != b.shape or a.layout != b.layout or type(a) is not type(b):
        return False
    if (memory := memory_of(a)) is not None and memory == memory_of(b):
        return True
    if hasattr(type(a), "__tensor_flatten__"):
        return _same_parts(a, b)
    if a.device != b.device:
        a, b = a.cpu(), b.cpu()
    if a.layout is not torch.strided or a.is_quantized or a.is_nested:
        return bool(torch.equal(a, b))
    return bool(torch.equal(_bytes(a), _bytes(b)))


def _bytes(tensor: Any) -> Any:
    return tensor.resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)


def _same_parts(a: Any, b: Any) -> bool:
    """The same for tensors that consist of others, such as DTensors: part by part."""
    names, more = a.__tensor_flatten__()
    other_names, other_more = b.__tensor_flatten__()
    if names != other_names or more != other_more:
        return False
    pairs = [(getattr(a, name), getattr(b, name)) for name in names]
    return all(same_bytes(x, y) if isinstance(x, torch.Tensor) else x == y for x, y in pairs)


def how_they_compare(a: Any, b: Any) -> str:
    """`equal`, `different`, or `on meta` if there is nothing to compare."""
    if not (has_values(a) and has_values(b)):
        return "on meta"
    return "equal" if same_bytes(a, b) else "different"
