# SPDX-License-Identifier: Apache-2.0
"""Reading a DAG from a safetensors file."""

import itertools
import os
from collections.abc import Iterable, Sequence
from typing import Any

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.ops.select import is_prefix, select
from pydag.registry.names import ClassNames, UnaskedError
from pydag.structure.document import Document
from pydag.structure.listing import Listing
from pydag.structure.values import decode_leaf
from pydag.typing import Dag, Leaf, Where

from .arrays import of_class
from .described import Described
from .directory import opened
from .fill import Filler
from .memory import one_each
from .names import leaf_names
from .source import Source


class Loaded:
    """What was read: the leaves, which of them are arrays of the file, and the structure.

    Args:
        source: What it was read from.
        wanted: The leaves of `like`; None where the structure is that of the source.
    """

    def __init__(
        self,
        source: Source,
        spec: PyDagSpec,
        leaves: list[Leaf],
        from_file: set[int],
        wanted: Sequence[Leaf] | None = None,
    ) -> None:
        self.source, self.spec, self.leaves, self.from_file = source, spec, leaves, from_file
        self.wanted = [None] * len(leaves) if wanted is None else wanted
        self._is_own = wanted is None

    def tree(self) -> Dag:
        """The DAG."""
        try:
            return _core.unflatten(self.spec, self.leaves)
        except (TypeError, AttributeError) as error:
            ran = error.__traceback__ is not None and error.__traceback__.tb_next is not None
            if ran or not self._is_own:  # errors of the class's own function pass unchanged
                raise
            raise self.source.wrong(f"an object can't be built: {error}") from None


def load(
    path: str | os.PathLike[str],
    like: Dag = None,
    only: Where | None = None,
    strict: bool = True,
    *,
    namespace: str | None = None,
    classes: type | Iterable[type] = (),
) -> Dag:
    """Read a DAG from a safetensors file, or a directory of them, its arrays memory-mapped.

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
        path: A safetensors file; an index, such as `model.safetensors.index.json`, beside the files
            that it names; or a directory in which one of these stands. With `only` just those files
            are opened that have a selected array.
        like: A DAG whose arrays may also be objects that only have `shape` and `dtype`.
        only: Which leaves are read (see `dag_mask`). The others are None, or the leaf of `like`.
        strict: False: a missing name keeps the leaf of `like`, a surplus name is ignored.
        namespace: Where classes are looked up. None: the namespace that the file names.
        classes: A class, or several, that the file may use although they have code of their own:
            those of `register_pydag_node`, of optree and of JAX, namedtuples, struct sequences,
            default factories that are no builtin container or number, those with a `__del__`.

    Raises:
        ValueError: The file is damaged; an index names what isn't there; a class isn't registered
            here, or would have to be named; with `like`: names are missing or too many, copies of
            one array differ, or a type or shape differs.
        OSError: The file can't be read.
        ImportError: safetensors isn't installed: `pip install "pydag-tree[files]"`.
    """
    wanted = None
    if like is not None:
        given = one_each(*_core.flatten(like, namespace=namespace or ""))
        wanted = given.leaves, given.spec
    return read(path, wanted, only, strict, namespace, classes).tree()


def read(
    path: str | os.PathLike[str],
    wanted: tuple[Sequence[Leaf], PyDagSpec] | None,
    only: Where | None,
    strict: bool,
    namespace: str | None,
    classes: type | Iterable[type],
) -> Loaded:
    """Reads what `load` builds its result from.

    Args:
        wanted: The leaves of `like`, and its structure.
    """
    asked = _checked_classes(classes)
    source = opened(path)
    if only is None:
        source.open_for(None)
    structure = source.structure()
    if structure is not None:
        source.check_aliases()
    if wanted is not None:
        return _filled(source, structure, *wanted, only, strict, namespace or "", asked)
    if structure is None:
        return _flat(source, only)
    document, described = structure
    if strict and only is None:
        source.check_complete(described)
    try:
        spec = document.spec(namespace, asked)
        names = ClassNames(spec.namespace if namespace is None else namespace, asked)
    except ValueError as error:
        raise source.wrong(str(error)) from None
    chosen = _chosen_by_path(only, spec, described.contents)
    rows = list(zip(described.kinds, described.contents, chosen, strict=True))
    arrays = source.arrays({name: None for kind, name, keep in rows if keep and kind != "value"})
    leaves: list[Leaf] = [None] * len(rows)
    for i, (kind, content, keep) in enumerate(rows):
        if keep:
            array = arrays[content] if kind != "value" else None
            leaves[i] = array if kind == "array" else _no_array(source, i, content, names, array)
    are_arrays = {i for i, (kind, _, keep) in enumerate(rows) if keep and kind != "value"}
    return _selected(Loaded(source, spec, leaves, are_arrays), only)


def _chosen_by_path(only: Where | None, spec: PyDagSpec, names: Sequence[Any]) -> list[bool]:
    """Which leaves may be selected, as far as that doesn't depend on what they are."""
    if only is None or not _is_by_path(only, spec.namespace):
        return [True] * len(names)
    return select(only, spec, names, spec.namespace)


def _is_by_path(only: Where, namespace: str) -> bool:
    """Whether a selection asks for no leaf, and for the class of none."""
    if type(only) is list and not is_prefix(only, namespace):
        return all(_is_by_path(item, namespace) for item in only)
    return isinstance(only, str) or is_prefix(only, namespace)


def _checked_classes(classes: type | Iterable[type]) -> tuple[type, ...]:
    given = (classes,) if isinstance(classes, type) else tuple(classes)
    for cls in given:
        if not isinstance(cls, type):
            raise TypeError(f"classes= takes classes, got {cls!r}")
    return given


def _no_array(source: Source, i: int, content: Any, names: ClassNames, array: Any) -> Leaf:
    """A leaf that is one of NumPy's numbers, which is written as an array, or a value."""
    if array is not None:
        return array[()]
    try:
        return decode_leaf(content, names)
    except UnaskedError as error:
        raise source.wrong(str(UnaskedError(error.classes, f"in leaves[{i}]: "))) from None
    except ValueError as error:
        raise source.wrong(f"malformed structure: leaves[{i}]: {error}") from None


class _Unread:
    """Stands for an array that isn't read yet."""

    def __init__(self, name: str) -> None:
        self.name = name


def _unread(source: Source) -> tuple[list[Any], PyDagSpec]:
    """A flat dict of the names in a source, as its leaves and structure."""
    arrays = {name: _Unread(name) for name in source.entries}
    return _core.flatten({name: arrays[kept] for name, kept in source.names().items()})


def _flat(source: Source, only: Where | None) -> Loaded:
    """Reads a file that another program wrote: a flat dict of its names."""
    patterns = _patterns(only)
    if patterns is None:
        source.open_for(None)
    else:
        leaves, spec = _unread(source)
        for pattern in patterns:
            chosen = select(pattern, spec, leaves)
            found = [leaf.name for leaf in itertools.compress(leaves, chosen)]
            source.open_for(found or None)  # it may mean an alias, in any of the files
    leaves, spec = _unread(source)
    chosen = _chosen_by_path(only, spec, leaves)
    arrays = source.arrays([leaf.name for leaf in itertools.compress(leaves, chosen)])
    read = [arrays.get(leaf.name) for leaf in leaves]
    are_arrays = set(itertools.compress(range(len(leaves)), chosen))
    return _selected(Loaded(source, spec, read, are_arrays), only)


def _patterns(only: Where | None) -> list[str] | None:
    """The patterns of a selection that has nothing else."""
    listed = only if type(only) is list else [only]
    texts = [item for item in listed if isinstance(item, str)]
    return texts if len(texts) == len(listed) else None


def _selected(loaded: Loaded, only: Where | None) -> Loaded:
    """What was read, with None in the place of each leaf that isn't selected."""
    if only is None:
        return loaded
    chosen = select(only, loaded.spec, loaded.leaves, loaded.spec.namespace)
    loaded.leaves = [
        leaf if keep else None for leaf, keep in zip(loaded.leaves, chosen, strict=True)
    ]
    loaded.from_file = {i for i in loaded.from_file if chosen[i]}
    return loaded


def _filled(
    source: Source,
    structure: Any,
    leaves: Sequence[Leaf],
    spec: PyDagSpec,
    only: Where | None,
    strict: bool,
    namespace: str,
    asked: tuple[type, ...],
) -> Loaded:
    are_classes = of_class(leaves, lambda cls: issubclass(cls, type))
    own = tuple(itertools.compress(leaves, are_classes))
    classes = ClassNames(namespace, asked + own)
    chosen = [True] * len(leaves)
    if only is not None:
        chosen = select(only, spec, leaves, namespace)
    filler = Filler(Listing.of(spec), leaves, repr(source.path), chosen)
    if only is not None:
        names = {name: leaf for name in source.entries if (leaf := filler.find(name)) is not None}
        source.open_for([name for name, leaf in names.items() if chosen[leaf]])
        if not filler.has_all(names.values()):
            source.open_for(None)  # a leaf may have an alias, in any of the files
    elif structure is not None:
        document, described = structure
        filled = _filled_as_it_is(source, document, described, spec, filler, classes)
        if filled is not None:
            return Loaded(source, spec, *filled, leaves)
    aliases: dict[str, list[str]] = {}
    for alias, name in source.names().items():
        if alias != name:
            aliases.setdefault(name, []).append(alias)
    for name in source.entries:
        filler.put(name, aliases.get(name, ()), source.array)
    if structure is not None:
        _put_values(source, structure, filler, classes)
    filler.check(strict, _counting(filler.surplus, only), _dangling(source))
    return Loaded(source, spec, filler.result(), filler.replaced(), leaves)


def _filled_as_it_is(
    source: Source,
    document: Document,
    described: Described,
    spec: PyDagSpec,
    filler: Filler,
    classes: ClassNames,
) -> tuple[list[Leaf], set[int]] | None:
    """What `Filler.in_order` gives for a file that has just the structure and names of `like`.

    None where it has others, or where a leaf doesn't fit.
    """
    if len(described.names) != len(source.entries):
        return None
    try:
        if document.spec(spec.namespace) != spec:
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


def _counting(surplus: Sequence[str], only: Where | None) -> Sequence[str]:
    """The surplus names that are an error: none, where only a part was asked for."""
    return surplus if only is None else ()


def _dangling(source: Source) -> dict[str, str]:
    return {
        alias: f" (an alias of {name!r}, which is no array in the file)"
        for alias, name in source.aliases.items()
        if alias not in source.entries and name not in source.entries
    }


def _put_values(source: Source, structure: Any, filler: Filler, classes: ClassNames) -> None:
    """Fills in the numbers, text and other values that the file has for a name of `like`."""
    document, described = structure
    if not described.has_values:
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
