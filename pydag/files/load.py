# SPDX-License-Identifier: Apache-2.0
"""Reading a DAG from a safetensors file."""

import contextlib
import itertools
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.arrays.bytes import tensor_like
from pydag.arrays.kinds import is_tensor_class, of_class
from pydag.arrays.names import grouped
from pydag.ops.select import data, select_matching
from pydag.public.tracebacks import short_tracebacks
from pydag.registry.function_names import FunctionNames, UnaskedFunctionError
from pydag.registry.names import ClassNames, UnaskedError
from pydag.structure.listing import Listing
from pydag.structure.reshared import one_each
from pydag.structure.values import decode_leaf
from pydag.typing import Leaf, Where

from .configuration import configuration_in, has_meta_fields, meta_differences
from .directory import open_source, read_again
from .fill import Filler
from .loaded import Loaded, chosen_by_path, read_flat, selected
from .names import leaf_names
from .path import check_local, check_path
from .source import ArraySource, FileStructure

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T = TypeVar("T", default=Any)  # of `like`
else:
    from typing import TypeVar

    T = TypeVar("T")


@short_tracebacks
def load(
    path: str | os.PathLike[str],
    like: T | None = None,
    only: Where | None = None,
    strict: bool = True,
    *,
    namespace: str | None = None,
    classes: type | Iterable[type] = (),
    functions: Callable[..., Any] | Iterable[Callable[..., Any]] = (),
) -> T:
    """Read a DAG from a safetensors file, or a directory of them, its arrays memory-mapped.

    Without `like` the tree is built from the structure that `save` wrote: builtin containers, and
    classes of `register_fields` and `register_module`, whose attributes are set. Nothing is
    imported, and no code of a class runs. A class that is built by its own functions must be named
    in `classes`. A file from another program gives a flat dict of its names. With `like`, that
    structure is filled: it doesn't matter which of the names of a shared array the file has. If it
    has several, they must be equal. No value is converted: types must be equal.
    Data comes from the file: arrays, and the numbers of dicts and records. Configuration comes from
    `like`: the numbers, flags and text of modules, and meta fields. If the file has other
    values, one `UserWarning` lists the paths and both values.

    Where `like` has a tensor of PyTorch, it becomes a new one on the same device (on the CPU, where
    that is on `meta`), and a parameter if it is one. All other arrays are NumPy's, mapped and
    read-only: a part of the file is read when it is used (one of
    booleans at once, since a byte that is neither 0 nor 1 is refused). Don't change the file in
    place while they are in use. (`save` is safe: it replaces the file by a new one.)

    Args:
        path: A safetensors file; an index, such as `model.safetensors.index.json`, beside the files
            that it names; or a directory in which one of these stands. With `only` just those files
            are opened that have a selected array.
        like: A DAG whose arrays may also be objects that only have `shape` and `dtype`.
        only: Which leaves are read (see `dag_mask`). The others are None, or the leaf of `like`.
        strict: False: a missing name keeps the leaf of `like`, a surplus name is ignored. A warning
            says which. Where none of the arrays fits, it is an error all the same.
        namespace: Where classes are looked up. None: the namespace that the file names.
        classes: A class, or several, that the file may use although they have code of their own:
            those of `register_pydag_node`, of optree and of JAX, namedtuples, struct sequences,
            default factories that are no builtin container or number, those with a `__del__`.
        functions: A function, or several, that the file may name in derived leaves of
            `pydag.jaxinterop`, beside the array functions of JAX and NumPy.

    Raises:
        ValueError: The path is an address, such as `s3://...`; the file is damaged; an index names
            missing files or arrays, or files that disagree on an alias; a class isn't registered,
            or a class or function must be named; with `like`: names are missing or surplus, copies
            of one array differ, or a type or shape differs.
        OSError: The file can't be read, or is replaced by other programs again and again.
        ImportError: safetensors isn't installed: `pip install "pydag-tree[files]"`.
    """
    check_path(path, like, "load(path, like)")
    wanted = None
    if like is not None:
        given = one_each(*_core.flatten_at(like, "like", namespace=namespace or ""))
        wanted = given.leaves, given.spec
    loaded = read(path, wanted, only, strict, namespace, classes, functions)
    for text in loaded.warnings:
        warnings.warn(text, stacklevel=3)  # past what shortens tracebacks
    if wanted is not None:
        are_tensors = of_class(loaded.wanted, is_tensor_class)
        for i in loaded.from_file:
            if are_tensors[i]:  # pragma: no cover: PyTorch, as by `make test-torch`
                loaded.leaves[i] = tensor_like(loaded.leaves[i], loaded.wanted[i])
    tree: T = loaded.tree()
    return tree


def read(
    path: str | os.PathLike[str],
    wanted: tuple[Sequence[Leaf], PyDagSpec] | None,
    only: Where | None,
    strict: bool,
    namespace: str | None,
    classes: type | Iterable[type],
    functions: Callable[..., Any] | Iterable[Callable[..., Any]],
) -> Loaded:
    """Reads the parts from which `load` builds its result.

    Args:
        wanted: The leaves of `like`, and its structure.
    """
    check_local(path, is_read=True)
    given = (classes,) if isinstance(classes, type) else tuple(classes)
    for cls in given:
        if not isinstance(cls, type):
            raise TypeError(f"classes= takes classes, got {cls!r}")
    known = FunctionNames([functions] if callable(functions) else functions)
    return read_again(
        lambda: _read(open_source(path), wanted, only, strict, namespace, given, known)
    )


def _read(
    source: ArraySource,
    wanted: tuple[Sequence[Leaf], PyDagSpec] | None,
    only: Where | None,
    strict: bool,
    namespace: str | None,
    asked: tuple[type, ...],
    functions: FunctionNames,
) -> Loaded:
    if only is None:
        source.open_for(None)
    structure = source.structure()
    if structure is not None:
        source.check_aliases()
    if wanted is not None:
        own = itertools.compress(wanted[0], of_class(wanted[0], lambda cls: issubclass(cls, type)))
        classes = ClassNames(namespace or "", (*asked, *own), functions)
        return _filled(source, structure, *wanted, only, strict, classes)
    if structure is None:
        return read_flat(source, only)
    document, described = structure
    unused = source.unused(described, strict) if only is None else ""
    try:
        spec = document.spec(namespace, asked, functions)
    except ValueError as error:
        raise source.wrong(str(error)) from None
    names = ClassNames(spec.namespace if namespace is None else namespace, asked, functions)
    chosen = chosen_by_path(only, spec, described.contents)
    if only is None and described.kinds.count("array") == len(described.kinds):
        arrays = source.arrays(described.names)
        found = list(map(arrays.__getitem__, described.contents))
        return Loaded(source, spec, found, range(len(found)), warnings=[unused])
    rows = list(zip(described.kinds, described.contents, chosen, strict=True))
    arrays = source.arrays({name: None for kind, name, keep in rows if keep and kind != "value"})
    leaves: list[Leaf] = [None] * len(rows)
    for i, (kind, content, keep) in enumerate(rows):
        if keep:
            array = arrays[content] if kind != "value" else None
            leaves[i] = array if kind == "array" else _no_array(source, i, content, names, array)
    are_arrays = {i for i, (kind, _, keep) in enumerate(rows) if keep and kind != "value"}
    return selected(Loaded(source, spec, leaves, are_arrays, warnings=[unused]), only)


def _no_array(source: ArraySource, i: int, content: Any, names: ClassNames, array: Any) -> Leaf:
    """A leaf that is one of NumPy's numbers, which is written as an array, or a value."""
    if array is not None:
        return array[()]
    where = f"leaves[{i}]: "
    try:
        return decode_leaf(content, names)
    except UnaskedError as error:
        wrong: ValueError = UnaskedError(error.classes, f"in {where}")
    except UnaskedFunctionError as error:
        wrong = UnaskedFunctionError(error.name, f"in {where}")
    except ValueError as error:
        wrong = ValueError(f"malformed structure: {where}{error}")
    raise source.wrong(str(wrong))


def _filled(
    source: ArraySource,
    structure: FileStructure | None,
    leaves: Sequence[Leaf],
    spec: PyDagSpec,
    only: Where | None,
    strict: bool,
    classes: ClassNames,
) -> Loaded:
    chosen = [True] * len(leaves)
    if only is not None:
        chosen = select_matching(only, spec, leaves, classes.namespace, data)
    own_listing = Listing.of(spec)
    configuration = configuration_in(leaves, spec)
    filler = Filler(own_listing, leaves, repr(source.path), chosen, configuration)
    if only is not None:
        names = {name: leaf for name in source.entries if (leaf := filler.find(name)) is not None}
        source.open_for([name for name, leaf in names.items() if chosen[leaf]])
        if not filler.has_all(names.values()):
            source.open_for(None)  # a leaf may have an alias, in any of the files
    elif structure is not None:
        filled = _filled_as_it_is(source, structure, spec, filler, classes)
        if filled is not None:
            return Loaded(source, spec, *filled, leaves, [filler.differences_text()])
    means = source.aliases()
    aliases = grouped(means, means.__getitem__)
    for name in source.entries:
        filler.put(name, aliases.get(name, ()), source.array)
    if structure is not None:
        _put_values(source, structure, filler, classes)
    surplus = filler.surplus if only is None else ()  # of a part nothing is surplus
    dangling = {
        alias: f" (an alias of {name!r}, which is no array in the file)"
        for alias, name in source.metadata.items()
        if alias not in source.entries and name not in source.entries
    }
    left_out = filler.check(strict, surplus, dangling)
    if structure is not None and only is None and has_meta_fields(own_listing):
        with contextlib.suppress(ValueError):  # a file that isn't read by its structure
            filler.differences += meta_differences(structure[0].listing(), own_listing)
    texts = filler.differences_text(), left_out
    return Loaded(source, spec, filler.result(), filler.replaced(), leaves, texts)


def _filled_as_it_is(
    source: ArraySource,
    structure: FileStructure,
    spec: PyDagSpec,
    filler: Filler,
    classes: ClassNames,
) -> tuple[list[Leaf], set[int]] | None:
    """The result of `Filler.in_order` for a file with exactly the structure and names of `like`.

    None if they differ, or if a leaf doesn't fit.
    """
    document, described = structure
    if len(described.names) != len(source.entries):
        return None
    try:
        if document.spec(spec.namespace, functions=classes.functions) != spec:
            return None
        # Keys may be equal and have other names: 1 and 1.0.
        are_arrays = [kind != "value" for kind in described.kinds]
        names = itertools.compress(filler.leaf_names, are_arrays)
        if list(itertools.compress(described.contents, are_arrays)) != list(names):
            return None
        arrays = source.arrays(described.names)
        found = [
            arrays[content] if is_array else decode_leaf(content, classes)
            for content, is_array in zip(described.contents, are_arrays, strict=True)
        ]
    except ValueError:
        return None
    return filler.in_order(found, are_arrays)


def _put_values(
    source: ArraySource, structure: FileStructure, filler: Filler, classes: ClassNames
) -> None:
    """Fills in the numbers, text and other values that the file has for a name of `like`."""
    document, described = structure
    if "value" not in described.kinds:
        return
    try:
        _, names = leaf_names(document.listing())
    except ValueError as error:
        raise source.wrong(str(error)) from None
    for name, kind, content in zip(names, described.kinds, described.contents, strict=True):
        if kind == "value" and filler.wants(name):
            try:
                value = decode_leaf(content, classes)
            except ValueError as error:
                raise source.wrong(f"{name!r}: {error}") from None
            filler.put_value(name, value)
