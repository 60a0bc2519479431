# SPDX-License-Identifier: Apache-2.0
"""Identifies the memory of an array of NumPy or PyTorch, without importing either.

Two array objects are one array if they are the same view of the same memory: `state_dict()` makes
new tensors at each call, and the tensors of tied parameters are still one array.
"""

import contextlib
import itertools
import operator
import sys
from collections.abc import Hashable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import pydag._core as _core
from pydag.typing import Leaf

from .kinds import dtype_name, is_class_of, is_tensor_class, of_class

_HOST = "cpu"  # the device of NumPy's arrays, as PyTorch calls it


class MemoryKey(NamedTuple):
    """Equal for two arrays that are one array, as long as both are alive.

    `reading` is anything else that decides what the bytes mean, None for an ordinary array. For a
    tensor that consists of other tensors it has their keys; the address is then 0.
    """

    device: str  # where the memory is, in PyTorch's words: `cpu`, `cuda:0`
    address: int  # of the first element
    dtype: Hashable  # its name, or NumPy's dtype if the name doesn't say all of it
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in bytes; 0 for an axis of one element, where it means nothing
    itemsize: int  # the bytes of an element
    reading: Hashable = None

    def span(self) -> tuple[int, int]:
        """The address of the first byte, and of the one after the last."""
        steps = [(n - 1) * step for n, step in zip(self.shape, self.strides, strict=True)]
        low = self.address + sum(step for step in steps if step < 0)
        return low, self.address + sum(step for step in steps if step > 0) + self.itemsize


def memory_of(array: object, on_meta: bool = False) -> MemoryKey | None:
    """The memory of an array; None if it is unknown, or if the array has no memory of its own.

    It is None for arrays without elements, for tensors on `meta` and fake ones, for tensors that
    aren't strided (sparse, quantized, nested), for masked arrays, and for objects that aren't
    arrays of NumPy or PyTorch.

    Args:
        array: The array. The key is valid for as long as it lives.
        on_meta: Whether a tensor on `meta` has a key, too: its storage replaces the memory.
    """
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    # A module that another thread is importing just now has no classes yet, and so no arrays.
    if (cls := getattr(numpy, "ndarray", None)) is not None and isinstance(array, cls):
        return _of_numpy(numpy, array)
    if (cls := getattr(torch, "Tensor", None)) is not None and isinstance(array, cls):
        return _of_tensor(torch, array, on_meta)  # pragma: no cover: PyTorch, as below
    return None


def _strides(shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> tuple[int, ...]:
    return tuple(s * size if n != 1 else 0 for n, s in zip(shape, strides, strict=True))


def _of_numpy(numpy: Any, array: Any) -> MemoryKey | None:
    if not array.size or isinstance(array, numpy.ma.MaskedArray):
        return None
    dtype = array.dtype
    return MemoryKey(
        _HOST,
        array.__array_interface__["data"][0],
        dtype.name if dtype.isbuiltin else dtype,
        array.shape,
        _strides(array.shape, array.strides, 1),
        dtype.itemsize,
    )


def _of_tensor(  # pragma: no cover: PyTorch, as by `make test-torch`
    torch: Any, tensor: Any, on_meta: bool
) -> MemoryKey | None:
    if torch.nn.parameter.is_lazy(tensor) or tensor.is_nested or tensor.is_quantized:
        return None
    if tensor.layout is not torch.strided or not tensor.numel():
        return None
    if hasattr(type(tensor), "__tensor_flatten__"):  # made of other tensors, such as a DTensor
        device, address, reading = str(tensor.device), 0, _parts(torch, tensor)
        if reading is None:
            return None
    else:
        try:
            # A fake tensor names the device that it simulates; its storage names the real device.
            storage = tensor.untyped_storage()
            device, address = str(storage.device), 0
            if device != "meta":
                address = tensor.data_ptr()
            elif on_meta:
                device = f"the storage {storage._cdata} on meta"
                address = 1 + tensor.storage_offset() * tensor.element_size()
        except RuntimeError:  # a batched tensor within `vmap`
            return None
        if not address:
            return None
        signs = tensor.is_conj(), tensor.is_neg()  # whether these change when it is read
        reading = signs if any(signs) else None
    shape = tuple(tensor.shape)
    return MemoryKey(
        device,
        address,
        dtype_name(tensor.dtype),
        shape,
        _strides(shape, tensor.stride(), tensor.element_size()),
        tensor.element_size(),
        reading,
    )


def _dense_address(tensor: Any) -> int | None:  # pragma: no cover: PyTorch, as above
    """The address of a tensor that lies in the host's memory in order, and is read as it is there.

    0 if it has no elements; None for any other tensor.
    """
    torch: Any = sys.modules["torch"]
    if type(tensor) is not torch.Tensor and type(tensor) is not torch.nn.Parameter:
        return None
    if not tensor.is_cpu or tensor.layout is not torch.strided or tensor.is_nested:
        return None
    if tensor.is_quantized or tensor.is_conj() or tensor.is_neg() or not tensor.is_contiguous():
        return None
    with contextlib.suppress(RuntimeError):  # a batched tensor within `vmap`
        return tensor.data_ptr() if tensor.numel() else 0
    return None


def _parts(torch: Any, tensor: Any) -> Hashable:  # pragma: no cover: PyTorch, as above
    """The memory of the tensors in a tensor; None if any of them has no memory."""
    names, _ = tensor.__tensor_flatten__()
    parts = [part for name in names if isinstance(part := getattr(tensor, name), torch.Tensor)]
    found = tuple(memory_of(part) for part in parts)
    if not found or None in found:
        return None
    return type(tensor), getattr(tensor, "placements", None), found


_WORK = 10_000  # for NumPy's answer; it takes overlap for granted where that is not enough


class _Outline:
    """What NumPy takes for an array that is never read."""

    def __init__(self, place: MemoryKey) -> None:
        self.__array_interface__ = {
            "version": 3,
            "data": (place.address, True),
            "typestr": f"|V{place.itemsize}",
            "shape": place.shape,
            "strides": place.strides,
        }


def place_of(leaf: Any) -> MemoryKey | None:
    """Where an array has its numbers; None for one that has none, or keeps them elsewhere.

    On `meta`, where there are none, it is where they would be.
    """
    key = memory_of(leaf, on_meta=True)
    return key if key is not None and key.address else None


def first_overlap(leaves: dict[MemoryKey, int]) -> tuple[int, int] | None:
    """The numbers of two of these arrays that have a byte in common."""
    import numpy as np

    shares_memory: Any = np.shares_memory  # older types of NumPy know no bound but 0
    rows = [(*place.span(), i, np.asarray(_Outline(place))) for place, i in leaves.items()]
    rows.sort(key=operator.itemgetter(0))
    for at, (_, high, i, one) in enumerate(rows):
        for low, _, j, other in itertools.islice(rows, at + 1, None):
            if low >= high:
                break
            try:
                is_shared = shares_memory(one, other, max_work=_WORK)
            except np.exceptions.TooHardError:
                is_shared = True
            if is_shared:
                return min(i, j), max(i, j)
    return None


def are_owners(leaves: Sequence[Leaf]) -> bool:
    """Whether each is an array of NumPy's that has a memory of its own, which no other one has."""
    if set(map(type, leaves)) != {getattr(sys.modules.get("numpy"), "ndarray", None)}:
        return False
    own = all(map(operator.attrgetter("flags.owndata"), leaves))
    return own and len(set(map(id, leaves))) == len(leaves)


def clusters(leaves: Sequence[Leaf], skipped: AbstractSet[int]) -> Iterator[list[int]]:
    """Leaves whose spans of memory meet; most have one of their own."""
    spans: dict[str, list[tuple[int, int, int]]] = {}
    are_tensors = of_class(leaves, is_tensor_class)
    are_numpy = of_class(leaves, lambda cls: is_class_of(cls, "numpy", "ndarray"))
    for i, leaf in enumerate(leaves):
        array: Any = leaf
        if i in skipped:
            continue
        start = None
        if are_numpy[i] and array.flags.c_contiguous:  # most are, and quicker than `place_of`
            start = _core.buffer_address(array) if array.nbytes else 0
        elif are_tensors[i]:  # pragma: no cover: PyTorch, as above
            start = _dense_address(array)
        if start is not None:
            if start:
                spans.setdefault(_HOST, []).append((start, start + array.nbytes, i))
        elif are_numpy[i] or are_tensors[i]:
            place = place_of(array)
            if place is not None:
                spans.setdefault(place.device, []).append((*place.span(), i))
    for of_device in spans.values():
        of_device.sort()
        of_device.append((sys.maxsize, 0, -1))  # the end of the last cluster
        cluster: list[int] = []
        end = 0
        for low, high, i in of_device:
            if low >= end:
                if len(cluster) > 1:
                    yield cluster
                cluster = []
            cluster.append(i)
            end = max(end, high)
