# SPDX-License-Identifier: Apache-2.0
"""Which memory an array is, of NumPy or of PyTorch; neither is imported here.

Two array objects are one array if they are the same view of the same memory: `state_dict()` makes
new tensors at each call, and those of a tied model still are one array.
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
        reading: What else decides what the bytes mean. None for an ordinary array. Of a tensor that
            is made of others it has their keys, and the address is 0.
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


def memory_of(array: object) -> MemoryKey | None:
    """Which memory an array is; None if it is unknown, or if the array has no memory of its own.

    That is so for arrays without elements, for tensors on `meta` and fake ones, for tensors that
    aren't strided (sparse, quantized, nested), for masked arrays, and for all that isn't an array
    of NumPy or PyTorch.

    Args:
        array: The array. The answer is good for as long as it lives.
    """
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    # A module that another thread is importing just now has no classes yet, and nobody an array.
    if (cls := getattr(numpy, "ndarray", None)) is not None and isinstance(array, cls):
        return _of_numpy(numpy, array)
    if (cls := getattr(torch, "Tensor", None)) is not None and isinstance(array, cls):
        return _of_tensor(torch, array)
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


def _of_tensor(torch: Any, tensor: Any) -> MemoryKey | None:
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
            # Its storage knows better than a fake tensor, which names the device that it plays.
            device = str(tensor.untyped_storage().device)
            address = 0 if device == "meta" else tensor.data_ptr()
        except RuntimeError:  # one that stands for many, within `vmap`
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
    """The memory of the tensors that a tensor is made of; None if any of them has none."""
    names, _ = tensor.__tensor_flatten__()
    parts = [part for name in names if isinstance(part := getattr(tensor, name), torch.Tensor)]
    found = tuple(memory_of(part) for part in parts)
    if not found or None in found:
        return None
    return type(tensor), getattr(tensor, "placements", None), found
