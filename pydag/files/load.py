# SPDX-License-Identifier: Apache-2.0
"""Reading a DAG from a safetensors file."""

import itertools
import os
from collections.abc import Iterable, Sequence
from typing import Any

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.ops.select import select
from pydag.registry.names import ClassNames, UnaskedError
from pydag.structure.document import Document
from pydag.structure.listing import Listing
from pydag.structure.values import decode_leaf
from pydag.typing import Dag, Leaf, Where

from .arrays import of_class
from .described import Described
from .fill import Filler
from .names import leaf_names
from .reading import File


class Loaded:
    """What was read: the leaves, which of them are arrays of the file, and the structure.

    Args:
        wanted: The leaves of `like`.
        source: The file, where the structure is its own.
    """

    def __init__(
        self,
        spec: PyDagSpec,
        leaves: list[Leaf],
        from_file: set[int],
        wanted: Sequence[Leaf] | None = None,
        source: File | None = None,
    ) -> None:
        self.spec, self.leaves, self.from_file = spec, leaves, from_file
        self.wanted = wanted or [None] * len(leaves)
        self._source = source

    def tree(self) -> Dag:
        """The DAG."""
        try:
            return _core.unflatten(self.spec, self.leaves)
        except (TypeError, AttributeError) as error:
            ran = error.__traceback__ is not None and error.__traceback__.tb_next is not None
            if self._source is None or ran:  # errors of the class's own function pass unchanged
                raise
            raise self._source.wrong(f"an object can't be built: {error}") from None


def load(
    path: str | os.PathLike[str],
    like: Dag = None,
    only: Where | None = None,
    strict: bool = True,
    *,
    namespace: str | None = None,
    classes: type | Iterable[type] = (),
) -> Dag:
    """Read a DAG from a safetensors file, its arrays memory-mapped.

    Without `like` the tree is built from the structure that `save` wrote: builtin containers, and
    classes of `register_fields` and `register_module`, whose attributes are set. Nothing is
    imported, and no code of a class runs. Any other class, which functions of its own build, must
    be named by `classes`. A file that somebody else wrote gives a flat dict of its names. With
    `like`, that structure is filled: it doesn't matter which of the names of a shared array the
    file has. Where it has several, they must be equal. No value is changed to fit: types are equal.

    The arrays are NumPy's, mapped and read-only: a part of the file is read when it is used (one of
    booleans at once, since a byte that is neither 0 nor 1 is refused). Don't change the file in
    place while they are in use. (`save` is safe: it puts a new file in its stead.)

    Args:
        path: A safetensors file.
        like: A DAG whose arrays may also be objects that only have `shape` and `dtype`.
        only: Which leaves are read (see `dag_mask`). The others are None, or the leaf of `like`.
        strict: False: a missing name keeps the leaf of `like`, a surplus name is ignored.
        namespace: Where classes are looked up. None: the namespace that the file names.
        classes: A class, or several, that the file may use although they have code of their own:
            those of `register_pydag_node`, of optree and of JAX, namedtuples, struct sequences,
            default factories that are no builtin container or number, those with a `__del__`.

    Raises:
        ValueError: The file is damaged; a class isn't registered here, or would have to be named;
            with `like`: names are missing or too many, copies of one array differ, or a type or
            shape differs.
        OSError: The file can't be read.
        ImportError: safetensors isn't installed: `pip install "pydag-tree[files]"`.
    """
    return read(path, like, only, strict, namespace, classes).tree()


def read(
    path: str | os.PathLike[str],
    like: Dag,
    only: Where | None,
    strict: bool,
    namespace: str | None,
    classes: type | Iterable[type],
) -> Loaded:
    """Reads what `load` builds its result from."""
    asked = _checked_classes(classes)
    file = File(path)
    structure = file.structure()
    if structure is not None:
        file.check_aliases()
    if like is not None:
        return _filled(file, structure, like, only, strict, namespace or "", asked)
    if structure is None:
        return _flat(file, only)
    document, described = structure
    if strict and only is None:
        file.check_complete(described)
    try:
        spec = document.spec(namespace, asked)
        names = ClassNames(spec.namespace if namespace is None else namespace, asked)
        arrays = file.arrays(described.names)
        rows = enumerate(zip(described.kinds, described.contents, strict=True))
        leaves = [
            arrays[content] if kind == "array" else _no_array(i, kind, content, names, arrays)
            for i, (kind, content) in rows
        ]
    except ValueError as error:
        raise file.wrong(str(error)) from None
    is_array = {i for i, kind in enumerate(described.kinds) if kind != "value"}
    return _selected(spec, leaves, only, is_array, file)


def _checked_classes(classes: type | Iterable[type]) -> tuple[type, ...]:
    given = (classes,) if isinstance(classes, type) else tuple(classes)
    for cls in given:
        if not isinstance(cls, type):
            raise TypeError(f"classes= takes classes, got {cls!r}")
    return given


def _no_array(i: int, kind: str, content: Any, names: ClassNames, arrays: dict[str, Any]) -> Leaf:
    """A leaf that is one of NumPy's numbers, or a value."""
    if kind == "scalar":
        return arrays[content][()]
    try:
        return decode_leaf(content, names)
    except UnaskedError as error:
        raise UnaskedError(error.classes, f"in leaves[{i}]: ") from None
    except ValueError as error:
        raise ValueError(f"malformed structure: leaves[{i}]: {error}") from None


def _flat(file: File, only: Where | None) -> Loaded:
    """Reads a file that another program wrote: a flat dict of its names."""
    arrays = file.arrays(file.entries)
    tree = {name: arrays[kept] for name, kept in file.names().items()}
    leaves, spec = _core.flatten(tree)
    return _selected(spec, leaves, only, set(range(len(leaves))), file)


def _selected(
    spec: PyDagSpec, leaves: list[Leaf], only: Where | None, is_array: set[int], file: File
) -> Loaded:
    if only is None:
        return Loaded(spec, leaves, is_array, source=file)
    chosen = select(only, spec, leaves, spec.namespace)
    kept = [leaf if keep else None for leaf, keep in zip(leaves, chosen, strict=True)]
    return Loaded(spec, kept, {i for i in is_array if chosen[i]}, source=file)


def _filled(
    file: File,
    structure: Any,
    like: Dag,
    only: Where | None,
    strict: bool,
    namespace: str,
    asked: tuple[type, ...],
) -> Loaded:
    leaves, spec = _core.flatten(like, namespace=namespace)
    are_classes = of_class(leaves, lambda cls: issubclass(cls, type))
    own = tuple(itertools.compress(leaves, are_classes))
    classes = ClassNames(namespace, asked + own)
    chosen = [True] * len(leaves)
    if only is not None:
        chosen = select(only, spec, leaves, namespace)
    filler = Filler(Listing.of(spec), leaves, repr(file.path), chosen)
    if structure is not None and only is None:
        document, described = structure
        filled = _filled_as_it_is(file, document, described, spec, filler, classes)
        if filled is not None:
            return Loaded(spec, *filled, leaves)
    aliases: dict[str, list[str]] = {}
    for alias, name in file.names().items():
        if alias != name:
            aliases.setdefault(name, []).append(alias)
    for name in file.entries:
        filler.put(name, aliases.get(name, ()), file.array)
    if structure is not None:
        _put_values(file, structure, filler, classes)
    filler.check(strict, _counting(filler.surplus, only), _dangling(file))
    return Loaded(spec, filler.result(), filler.replaced(), leaves)


def _filled_as_it_is(
    file: File,
    document: Document,
    described: Described,
    spec: PyDagSpec,
    filler: Filler,
    classes: ClassNames,
) -> tuple[list[Leaf], set[int]] | None:
    """What `Filler.in_order` gives for a file that has just the structure and names of `like`.

    None where it has others, or where a leaf doesn't fit.
    """
    if len(described.names) != len(file.entries):
        return None
    try:
        if document.spec(spec.namespace) != spec:
            return None
        # Keys may be equal and have other names: 1 and 1.0.
        are_arrays = [kind != "value" for kind in described.kinds]
        names = itertools.compress(filler.leaf_names, are_arrays)
        if list(itertools.compress(described.contents, are_arrays)) != list(names):
            return None
        arrays = file.arrays(described.names)
        found = [
            arrays[content] if is_array else decode_leaf(content, classes)
            for content, is_array in zip(described.contents, are_arrays, strict=True)
        ]
    except ValueError:
        return None
    return filler.in_order(found, are_arrays)


def _counting(surplus: Sequence[str], only: Where | None) -> Sequence[str]:
    """The surplus names that are an error: none, where only a part was asked for."""
    return surplus if only is None else ()


def _dangling(file: File) -> dict[str, str]:
    return {
        alias: f" (an alias of {name!r}, which is no array in the file)"
        for alias, name in file.aliases.items()
        if alias not in file.entries and name not in file.entries
    }


def _put_values(file: File, structure: Any, filler: Filler, classes: ClassNames) -> None:
    """Fills in the numbers, text and other values that the file has for a name of `like`."""
    document, described = structure
    if not described.has_values:
        return
    try:
        _, names = leaf_names(document.listing())
    except ValueError as error:
        raise file.wrong(str(error)) from None
    for name, kind, content in zip(names, described.kinds, described.contents, strict=True):
        if kind == "value" and filler.wants(name):
            try:
                value = decode_leaf(content, classes)
            except ValueError as error:
                raise file.wrong(f"{name!r}: {error}") from None
            filler.put_value(name, value)
