# SPDX-License-Identifier: Apache-2.0
"""PyTorch's tensors, as far as files need them. Nothing here imports torch.

Whoever has a tensor has imported torch, so it is found among the modules that are.
"""

import sys
from collections.abc import Sequence
from typing import Any

from pydag.structure.listing import Listing, shorten
from pydag.typing import Leaf


def is_class_of(cls: type, module: str, name: str) -> bool:
    """Whether a class is one of a library's, or derived from it: then the library is imported."""
    found = getattr(sys.modules.get(module), name, None)
    return isinstance(found, type) and issubclass(cls, found)


def is_tensor_class(cls: type) -> bool:
    """Whether the instances of a class are tensors."""
    return is_class_of(cls, "torch", "Tensor")


def check_no_modules(leaves: Sequence[Leaf], listing: Listing) -> None:
    """Raises TypeError where a leaf is a module of torch: a file has its state dict."""
    modules = {cls for cls in set(map(type, leaves)) if is_class_of(cls, "torch.nn", "Module")}
    for i, leaf in enumerate(leaves if modules else ()):
        if type(leaf) in modules:
            where = shorten(listing.path_text(listing.leaves[i], "tree"))
            raise TypeError(
                f"{where} is a torch.nn.Module ({type(leaf).__qualname__})\n"
                "  Save its state dict: save(path, module.state_dict())."
            )


def check_plain(tensor: Any) -> None:
    """Checks that a tensor has its numbers in one memory.

    Raises:
        TypeError: It is on `meta`, sparse, quantized, or of a class that keeps them elsewhere.
    """
    torch: Any = sys.modules["torch"]
    if tensor.is_meta:
        raise TypeError(
            "a tensor on the meta device has no numbers\n"
            "  Give it some first: module.to_empty(device=...), or "
            "load_state_dict(..., assign=True)."
        )
    if tensor.is_nested:
        raise TypeError("a nested tensor: save its parts, tensor.unbind()")
    if hasattr(tensor, "full_tensor"):
        raise TypeError("a distributed tensor: save tensor.full_tensor()")
    if tensor.layout != torch.strided:
        raise TypeError(f"a tensor of layout {tensor.layout}: save tensor.to_dense()")
    if tensor.is_quantized:
        raise TypeError("a quantized tensor: save tensor.dequantize(), or its parts")
    if type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        raise TypeError(
            f"a tensor of the class {type(tensor).__qualname__}, which keeps its numbers elsewhere"
        )


def tensor_to_numpy(tensor: Any, numpy_type: Any) -> Any:
    """The numbers of a tensor that is plain, as an array of NumPy's: contiguous, of this type."""
    import numpy as np

    torch: Any = sys.modules["torch"]
    plain = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
    # As bytes, for NumPy may not know the type.
    flat = plain.reshape(-1).view(torch.uint8).numpy().view(np.dtype(numpy_type))
    return flat.reshape(tuple(tensor.shape))


def as_tensor(array: Any) -> Any:
    """An array as a tensor over its memory where PyTorch takes that, else a copy."""
    import numpy as np

    torch: Any = sys.modules["torch"]
    if isinstance(array, torch.Tensor):
        return array.detach()
    array = np.asarray(array)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not array.flags.writeable or min(array.strides, default=0) < 0:
        array = array.copy()
    if array.dtype.isbuiltin == 1 or (dtype := getattr(torch, array.dtype.name, None)) is None:
        return torch.from_numpy(array)
    # NumPy has bfloat16 and the like from another package. `reshape` keeps arrays without axes.
    raw = torch.from_numpy(np.ascontiguousarray(array).view(f"u{array.itemsize}"))
    return raw.view(dtype).reshape(array.shape)


def tensor_like(array: Any, like: Any) -> Any:
    """A new tensor with the numbers of an array from a file, and of the kind of `like`.

    It is a parameter if `like` is one, and on the device of `like`: not on `meta`, where there are
    no numbers, and not where `like` is of a class that keeps its numbers elsewhere.
    """
    torch: Any = sys.modules["torch"]
    is_plain = type(like).__torch_dispatch__ is torch.Tensor.__torch_dispatch__
    tensor = as_tensor(array)  # a copy: a file is mapped to be read
    if is_plain and not like.is_meta:
        tensor = tensor.to(like.device)
    if isinstance(like, torch.nn.Parameter):
        return torch.nn.Parameter(tensor, requires_grad=like.requires_grad)
    return tensor.requires_grad_(like.requires_grad)
