# SPDX-License-Identifier: Apache-2.0
"""Writing a DAG to a safetensors file."""

import contextlib
import itertools
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.registry.names import ClassNames
from pydag.structure.json import document_of
from pydag.structure.listing import Listing, shorten
from pydag.structure.values import UnwritableError, encode_leaf
from pydag.typing import Dag, Identity, Leaf

from .arrays import dtype_name, is_array_class, is_scalar_class, of_class, to_numpy
from .header import LARGEST
from .names import leaf_names, other_ways

# No path gives this name: it has an empty part, and doesn't begin with a dot.
STRUCTURE = "pydag..structure"
# In the JSON of the structure: what kind of leaf an array stands for, where it was no array.
KINDS = "kinds"


def package() -> Any:
    """The safetensors package."""
    try:
        import safetensors
        import safetensors.numpy
    except ImportError as error:
        raise ImportError(
            'pydag.files needs safetensors and NumPy: pip install "pydag-tree[files]"'
        ) from error
    version = safetensors.__version__
    if tuple(map(int, version.split(".")[:2])) < (0, 8):
        raise ImportError(
            "pydag.files needs safetensors 0.8 or newer, and this is "
            f'{version}: pip install "safetensors>=0.8"'
        )
    return safetensors


def save(
    path: str | os.PathLike[str],
    tree: Dag,
    *,
    namespace: str = "",
    identity: Identity = "all",
    structure: bool = True,
    progress: bool = False,
) -> None:
    """Write a DAG to a safetensors file, each array once.

    Any reader of the format opens the file. An array is named by the path of its anchor, as in a
    state dict: `layers.0.weight`. The file's metadata hold its other names, and the structure as
    JSON, with the leaves that are numbers, text and other values.

    The new file is written beside the old one and then replaces it, so a crash leaves the old one
    intact. A new file gets its mode from the umask, a replaced one keeps the old mode. Where `path`
    is a symbolic link, the file that it points to is replaced.

    Args:
        path: By convention it ends in `.safetensors`.
        tree: The DAG.
        namespace: Classes registered in this namespace are nodes, too.
        identity: "nodes" gives leaves no identity: one that stands in two places is two leaves.
            An array is then written for each of its places.
        structure: False leaves out the structure and every leaf that isn't an array. That is enough
            for `load(path, like=)`, which takes them from `like`.
        progress: Shows a progress bar (tqdm) while the arrays are copied to the host.

    Raises:
        TypeError: A leaf is neither an array nor a value, or a key, aux_data or the value of a meta
            field can't be written; the path is named.
        ValueError: Two registered classes have one name, or the structure is too large for the
            format.
        OSError: The file can't be written.
        ImportError: safetensors isn't installed: `pip install "pydag-tree[files]"`.

    >>> import numpy as np, os, tempfile
    >>> w = np.ones((2, 2))
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> save(path, {"encoder": w, "decoder": w})
    >>> model = pydag.files.load(path)
    >>> model["encoder"] is model["decoder"]
    True
    """
    package()
    leaves, spec = _core.flatten(tree, namespace=namespace, identity=identity)
    write(path, leaves, spec, structure, progress)


def write(
    path: str | os.PathLike[str],
    leaves: list[Leaf],
    spec: PyDagSpec,
    structure: bool,
    progress: bool,
    kinds: Mapping[int, str] = MappingProxyType({}),
) -> None:
    """Writes a DAG that was flattened already, as `save` does.

    Args:
        kinds: What kind of leaf an array stands for, by the number of the leaf.
    """
    import json

    safetensors = package()
    listing = Listing.of(spec)
    are_arrays = of_class(leaves, is_array_class)
    total = 0
    if progress:
        arrays_given = itertools.compress(leaves, are_arrays)
        total = sum(getattr(leaf, "nbytes", 0) for leaf in arrays_given)
    names = ClassNames(spec.namespace) if structure else None
    with progress_bar(total, progress) as bar:
        arrays, described, metadata = _sorted_out(listing, leaves, are_arrays, names, bar)
    if structure:
        whole = {"pydag": 1, "structure": document_of(spec), "leaves": described}
        if kinds:
            whole[KINDS] = {described[i]: kind for i, kind in kinds.items()}
        metadata[STRUCTURE] = json.dumps(whole, separators=(",", ":"), allow_nan=False)
    _check_size(metadata, arrays)
    entries = _entries(safetensors.TensorSpec, arrays)
    with _replacing(path) as temporary:
        try:
            safetensors.serialize_file(entries, temporary, metadata=metadata)
            with safetensors.safe_open(temporary, framework="np"):
                pass  # reading it back proves that it is whole
        except safetensors.SafetensorError as error:
            raise _system_error(error, path) from error


def _check_size(metadata: dict[str, str], names: Iterable[str]) -> None:
    """Raises ValueError where a header would be too large."""
    import json

    size = sum(len(name) + 120 for name in names)
    most = 12 * sum(map(len, itertools.chain(*metadata.items())))  # a character may need as many
    if size + most > LARGEST:
        size += len(json.dumps(metadata))
    if size > LARGEST:
        raise ValueError(
            f"the names and the structure need some {size} bytes; the header of a safetensors "
            f"file has room for {LARGEST}"
        )


def _entries(make: Callable[..., Any], arrays: Mapping[str, Any]) -> dict[str, Any]:
    """What safetensors is told of each array, which must live until it is written."""
    dtypes: dict[Any, str] = {}
    entries = {}
    for name, array in arrays.items():
        dtype = array.dtype
        if dtype not in dtypes:
            dtypes[dtype] = dtype_name(dtype)
        entries[name] = make(
            dtype=dtypes[dtype],
            shape=array.shape,
            data_ptr=_core.buffer_address(array),
            data_len=array.nbytes,
        )
    return entries


def _sorted_out(
    listing: Listing,
    leaves: list[Leaf],
    are_arrays: list[bool],
    names: ClassNames | None,
    bar: Any,
) -> tuple[dict[str, Any], list[Any], dict[str, str]]:
    """Returns (arrays by name, the description of each leaf, aliases)."""
    namer, names_of_leaves = leaf_names(listing)
    arrays: dict[str, Any] = {}
    described: list[Any] = []
    indices: list[int] = []
    are_scalars = of_class(leaves, is_scalar_class)
    i = 0
    try:
        for i, (leaf, name) in enumerate(zip(leaves, names_of_leaves, strict=True)):
            if are_arrays[i]:
                arrays[name] = array = to_numpy(leaf)
                indices.append(i)
                if bar is not None:
                    bar.update(array.nbytes)
                described.append({"scalar": name} if are_scalars[i] else name)
            elif names is not None:
                described.append({"value": encode_leaf(leaf, names)})
    except UnwritableError as error:
        raise TypeError(_refusal(listing, i, error)) from None
    except Exception as error:  # `__array__` may raise anything
        raise TypeError(_refusal(listing, i, error)) from error
    aliases = {namer.name(way): names_of_leaves[leaf] for leaf, way in other_ways(listing, indices)}
    return arrays, described, aliases


def _refusal(listing: Listing, leaf: int, error: Exception) -> str:
    where = shorten(listing.path_text(listing.leaves[leaf], "tree"))
    return (
        f"a leaf can't be written to a safetensors file\n  at {where}: {error}\n"
        "  Leaves may be arrays and values: numbers, text, bytes, None. Register the class of what "
        "holds arrays (pydag.register_fields). save(..., structure=False) writes arrays alone, for "
        "load(..., like=)."
    )


def _system_error(error: Exception, path: str | os.PathLike[str]) -> Exception:
    """An OSError if the system refused; else a ValueError."""
    number = re.search(r"os error (\d+)", str(error))
    if number is None:
        return ValueError(f"{os.fspath(path)!r} can't be written: {error}")
    return OSError(int(number[1]), os.strerror(int(number[1])), os.fspath(path))


@contextlib.contextmanager
def _replacing(path: str | os.PathLike[str]) -> Iterator[str]:
    """Gives the name of a new file beside `path`, which replaces it at the end."""
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:100]}.{os.urandom(8).hex()}")
    # So that the umask decides on the mode: safetensors would set one of its own.
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        mode = os.stat(temporary).st_mode
        with contextlib.suppress(FileNotFoundError):
            mode = os.stat(target).st_mode
        yield temporary
        os.chmod(temporary, stat.S_IMODE(mode))
        _flush(temporary)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    with contextlib.suppress(OSError):  # some systems can't sync a folder
        _flush(folder)


def _flush(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def progress_bar(total: int, shown: bool) -> Any:
    """A bar that counts bytes, if `shown`."""
    if not shown:
        return contextlib.nullcontext()
    import tqdm

    return tqdm.tqdm(total=total, unit="B", unit_scale=True)
