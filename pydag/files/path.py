# SPDX-License-Identifier: Apache-2.0
"""Errors for arguments that were given as the path of a file by mistake."""

import errno
import os
import re
import stat
import warnings

from pydag.arrays.kinds import is_class_of
from pydag.public.compiled import MISSING
from pydag.structure.text import short_repr

# The endings of files that hold arrays in other formats, or none.
OTHER_FORMATS = (
    *(".pt", ".pth", ".pt2", ".bin", ".ckpt", ".gguf", ".pkl", ".pickle", ".npz", ".npy", ".zip"),
    *(".h5", ".msgpack", ".onnx", ".json"),
)


def check_path(path: object, tree: object, call: str) -> None:
    """Raises TypeError if the path or the tree is something else.

    Args:
        tree: The argument in the place of the tree.
        call: What the call should look like.
    """
    if isinstance(path, (str, bytes, os.PathLike)):
        if tree is MISSING:
            raise TypeError(f"there is nothing to save\n  Write: {call}.")
        is_saved = call.startswith("save")
        if is_saved and os.fsdecode(path).endswith(OTHER_FORMATS):
            warnings.warn(
                f"{os.fsdecode(path)!r} gets a safetensors file, whatever its name says\n  Call it "
                "*.safetensors: readers of the other format will refuse it.",
                stacklevel=4,  # of who calls, past the function that shortens tracebacks
            )
        if not is_saved and is_class_of(
            type(tree), "torch.nn", "Module"
        ):  # pragma: no cover: PyTorch, as by `make test-torch`
            cure = "module.load_state_dict(load(path, like=module.state_dict()))"
            raise TypeError(f"`like` is a torch.nn.Module\n  Write: {cure}.")
        if isinstance(tree, type):
            name = tree.__name__
            raise TypeError(
                f"a tree is needed, got the class {name}\n  Make one first, such as {name}(...)."
            )
        return
    swap = "Swap them" if isinstance(tree, str | os.PathLike) else "Write"
    raise TypeError(f"the path of a file comes first, got {short_repr(path)}\n  {swap}: {call}.")


def is_address(path: str) -> bool:
    """Whether a path is an address such as `gs://bucket/model`."""
    return "://" in path and re.match(r"[a-z][a-z0-9+.-]+://", path) is not None


def check_local(path: str | os.PathLike[str], is_read: bool = False) -> None:
    """Raises ValueError for an address such as `gs://bucket/model`."""
    if isinstance(path, str) and is_address(path):
        what, cure = "writes", "Save to a local file, and copy it there"
        if is_read:
            what, cure = "reads", "Copy it to this machine first"
        raise ValueError(
            f"{path!r} is an address, and pydag {what} files of this machine alone\n"
            f"  {cure}, such as with fsspec."
        )


def check_regular(path: str) -> None:
    """Raises OSError where a path is no regular file: to read a pipe might never end."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is no regular file", path)
