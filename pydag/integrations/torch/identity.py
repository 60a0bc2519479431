# SPDX-License-Identifier: Apache-2.0
"""Decides which tensors are the same tensor, and whether others have the same bytes."""

from collections.abc import Hashable, Iterable
from typing import Any

import torch

from pydag.arrays.bytes import as_tensor
from pydag.arrays.memory import MemoryKey, memory_of

PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})  # classes of tensors with one memory


def same_memory(tensors: Iterable[Any]) -> dict[int, Any]:
    """For tensors that are the same view of one memory as an earlier one: by id, that first one.

    Only tensors that begin at one address are described in full. The ids are valid as long as the
    tensors live.
    """
    firsts: dict[Hashable, Any] = {}
    meeting: dict[Hashable, dict[int, Any]] = {}
    for tensor in tensors:
        place: Any = None  # the address, or what stands for it
        if type(tensor) in PLAIN:
            try:
                place = tensor.data_ptr() or (tensor.is_meta and -tensor.untyped_storage()._cdata)
            except RuntimeError:
                place = None  # such as of a sparse one
        if not place and (memory := memory_of(tensor, on_meta=True)) is not None:
            place = memory.address or memory
        if place and (first := firsts.setdefault(place, tensor)) is not tensor:
            meeting.setdefault(place, {id(first): first})[id(tensor)] = tensor
    found: dict[int, Any] = {}
    for group in meeting.values():
        described: dict[MemoryKey, Any] = {}
        for tensor in group.values():
            memory = memory_of(tensor, on_meta=True)
            if memory is not None and (first := described.setdefault(memory, tensor)) is not tensor:
                found[id(tensor)] = first
    return found


def has_values(tensor: Any) -> bool:
    """Whether there is anything in a tensor: not on `meta`, nor waiting for its shape."""
    is_on_meta = isinstance(tensor, torch.Tensor) and tensor.device.type == "meta"
    return not is_on_meta and not torch.nn.parameter.is_lazy(tensor)


def surely_fits(a: Any, b: Any) -> bool:
    """Whether a tensor can take the values of another; if not, both must be looked at."""
    try:
        return (
            (type(a) in PLAIN and type(b) in PLAIN)
            and (a.dtype is b.dtype and a.shape == b.shape and a.device == b.device)
            and (a.data_ptr() != 0 and b.data_ptr() != 0)  # not on `meta`
            and (a.is_contiguous() and not a.is_inference())
        )
    except RuntimeError:  # such as sparse ones
        return False


def same_bytes(a: Any, b: Any) -> bool:
    """Whether two tensors agree in dtype, shape and bytes, so that NaN equals NaN.

    They may be on different devices.
    """
    if a is b:
        return True
    a, b = as_tensor(a), as_tensor(b)
    kinds = [(x.dtype, x.shape, x.layout, type(x)) for x in (a, b)]
    if kinds[0] != kinds[1] or not has_values(a) or not has_values(b):
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
