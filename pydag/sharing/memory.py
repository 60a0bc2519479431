# SPDX-License-Identifier: Apache-2.0
"""Identifies the memory of an array of NumPy or PyTorch, without importing either.

Two array objects are one array if they are the same view of the same memory: `state_dict()` makes
new tensors at each call, and the tensors of tied parameters are still one array.
"""

import sys
from collections.abc import Hashable
from typing import Any, NamedTuple


class MemoryKey(NamedTuple):
    """Equal for two arrays that are one array, as long as both are alive.

    Attributes:
        device: Where the memory is, in PyTorch's words: `cpu`, `cuda:0`.
        address: Of the first element.
        dtype: Its name, or NumPy's dtype if the name doesn't say all of it.
        shape: The lengths of the axes.
        strides: In bytes; 0 for an axis of one element, where it means nothing.
        itemsize: The bytes of an element.
        reading: Anything else that decides what the bytes mean. None for an ordinary array. For a
            tensor that consists of other tensors, their keys; the address is then 0.
    """

    device: str
    address: int
    dtype: Hashable
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
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
        return _of_tensor(torch, array, on_meta)
    return None


def _strides(shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> tuple[int, ...]:
    return tuple(s * size if n != 1 else 0 for n, s in zip(shape, strides, strict=True))


def _of_numpy(numpy: Any, array: Any) -> MemoryKey | None:
    if not array.size or isinstance(array, numpy.ma.MaskedArray):
        return None
    dtype = array.dtype
    return MemoryKey(
        "cpu",
        array.__array_interface__["data"][0],
        dtype.name if dtype.isbuiltin else dtype,
        array.shape,
        _strides(array.shape, array.strides, 1),
        dtype.itemsize,
    )


def _of_tensor(torch: Any, tensor: Any, on_meta: bool) -> MemoryKey | None:
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
        str(tensor.dtype).removeprefix("torch."),
        shape,
        _strides(shape, tensor.stride(), tensor.element_size()),
        tensor.element_size(),
        reading,
    )


def _parts(torch: Any, tensor: Any) -> Hashable:
    """The memory of the tensors in a tensor; None if any of them has no memory."""
    names, _ = tensor.__tensor_flatten__()
    parts = [part for name in names if isinstance(part := getattr(tensor, name), torch.Tensor)]
    found = tuple(memory_of(part) for part in parts)
    if not found or None in found:
        return None
    return type(tensor), getattr(tensor, "placements", None), found
