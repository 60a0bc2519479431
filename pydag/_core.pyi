"""The compiled core of pydag. Its public names are those of the package."""

import builtins
from collections.abc import Callable, Iterable, Mapping
from typing import Any, final

from optree import PyTreeAccessor, PyTreeEntry, PyTreeKind

from pydag.sharing.shared_objects import SharedObject
from pydag.typing import (
    Dag,
    FlattenFunc,
    Identity,
    IsLeaf,
    Leaf,
    Path,
    UnflattenFunc
)



def set_leak_warnings(value: bool, /) -> None: ...

class CycleError(ValueError):
    """An object contains itself, so that the structure is not a DAG."""

class SharingError(ValueError):
    """
    One shared object was given two different answers, or two structures that should be shared alike are not.
    """

def register_node(type: type, flatten: object, unflatten: object, path_entry_type: type, namespace: str, has_identity: bool, /) -> None: ...

def register_fields(type: type, resolve_fields: object, path_entry_type: type, namespace: str, has_identity: bool, /) -> None: ...

def unregister(type: type, namespace: str, /) -> tuple[FlattenFunc | None, UnflattenFunc | None, type[PyTreeEntry]]: ...

def own_slots(cls: type, /) -> list[str]: ...

def registered_classes() -> list[tuple[str, type]]: ...

def set_lookup(find_foreign: object, classify_leaf: object, is_insertion_ordered: object, /) -> None: ...

def watch_registry(registry: dict[Any, Any], /) -> None: ...

def clear_caches() -> None: ...

class PyDagSpec:
    """
    The structure of a DAG: its nodes, their keys and aux_data, and which of its objects are shared.

    Immutable and hashable. Specs that differ in sharing are unequal.
    """

    def __repr__(self, /) -> str: ...

    def __hash__(self, /) -> int: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __ne__(self, other: object, /) -> bool: ...

    def unflatten(self, leaves: Iterable[Any], /) -> Any:
        """Build the DAG with these leaves; every shared object is built once."""

    def flatten_up_to(self, tree: Any, /) -> list[Any]:
        """
        What stands in `tree` at the place of each leaf. Each shared object must have one answer.
        """

    def paths(self, /) -> list[tuple[Any, ...]]:
        """The path of each leaf: to a shared one, its anchor's."""

    def accessors(self, /) -> list[PyTreeAccessor]:
        """The accessor of each leaf."""

    def entries(self, /) -> list[Any]:
        """The entries of the root's children."""

    def is_leaf(self, /, *, strict: bool = True) -> bool:
        """
        Whether the root is a leaf; with `strict=False`, whether it has no children.
        """

    def is_same_order(self, other: PyDagSpec, /) -> bool:
        """
        Whether the dicts of two equal specs were filled in the same order, which equality doesn't look at.

        It is the order in which they are rebuilt. Only for equal specs: of unequal ones the answer means nothing.
        """

    @property
    def num_leaves(self, /) -> int:
        """The number of distinct leaves."""

    @property
    def num_nodes(self, /) -> int:
        """The number of distinct nodes, leaves included."""

    @property
    def num_children(self, /) -> int:
        """The number of the root's children."""

    @property
    def num_shared(self, /) -> int:
        """The number of shared objects."""

    @property
    def num_paths(self, /) -> int:
        """
        The number of leaves when every path counts; may be astronomically large.
        """

    @property
    def none_is_leaf(self, /) -> bool:
        """Whether None is a leaf."""

    @property
    def namespace(self, /) -> str:
        """The namespace of the registered classes in it, or ""."""

    @property
    def type(self) -> builtins.type | None:
        """The class of the root; None for a leaf."""

    @property
    def kind(self, /) -> PyTreeKind:
        """The kind of the root."""

    def _listing(self, /) -> list[tuple[Any, ...]]: ...

    def _shared(self, /) -> list[tuple[int, PyTreeKind, builtins.type | None, tuple[Path, ...]]]: ...

    def __len__(self, /) -> int: ...

    def __sizeof__(self, /) -> int: ...

    def __copy__(self, /) -> PyDagSpec: ...

    def __deepcopy__(self, memo: Any, /) -> PyDagSpec: ...

    def __getstate__(self, /) -> tuple[Any, ...]: ...

    def __setstate__(self, state: tuple[Any, ...], /) -> None: ...

    def __reduce__(self, /) -> tuple[Any, ...]: ...

    def to_json(self, /) -> str:
        """The structure as JSON, which `from_json` reads back, in any process."""

    @staticmethod
    def from_json(text: str, namespace: str | None = None) -> PyDagSpec:
        """The structure that was written by `to_json`."""

    @property
    def shared(self) -> list[SharedObject]:
        """The shared objects: index, kind, type and paths."""

def explain(a: PyDagSpec, b: PyDagSpec, /, exactly: bool = False) -> str: ...

def flatten(tree: Dag, is_leaf: IsLeaf | None, none_is_leaf: bool, namespace: str, identity: Identity, /) -> tuple[list[Leaf], PyDagSpec]: ...

def flatten_at(tree: Dag, namespace: str, identity: Identity, root: str | tuple[str, ...], /) -> tuple[list[Leaf], PyDagSpec]: ...

def leaves(tree: Dag, is_leaf: IsLeaf | None, none_is_leaf: bool, namespace: str, identity: Identity, /) -> list[Leaf]: ...

def structure(tree: Dag, is_leaf: IsLeaf | None, none_is_leaf: bool, namespace: str, identity: Identity, /) -> PyDagSpec: ...

def flatten_with_path(tree: Dag, is_leaf: IsLeaf | None, none_is_leaf: bool, namespace: str, identity: Identity, /) -> tuple[list[Path], list[Leaf], PyDagSpec]: ...

def flatten_with_accessor(tree: Dag, is_leaf: IsLeaf | None, none_is_leaf: bool, namespace: str, identity: Identity, /) -> tuple[list[PyTreeAccessor], list[Leaf], PyDagSpec]: ...

def copy(tree: Dag, is_leaf: IsLeaf | None, none_is_leaf: bool, namespace: str, identity: Identity, /) -> Dag: ...

def deref(tree: Dag, is_leaf: IsLeaf | None, none_is_leaf: bool, namespace: str, identity: Identity, /) -> Dag: ...

def reref(tree: Dag, is_leaf: IsLeaf | None, none_is_leaf: bool, namespace: str, identity: Identity, /) -> Dag: ...

def shared_objects(tree: Dag, is_leaf: IsLeaf | None, none_is_leaf: bool, namespace: str, identity: Identity, /) -> tuple[PyDagSpec, list[Any]]: ...

def unflatten(spec: PyDagSpec, leaves: Iterable[Leaf], /) -> Dag: ...

def map(func: Callable[..., Any], tree: Dag, rests: tuple[Dag, ...], is_leaf: IsLeaf | None, none_is_leaf: bool, namespace: str, identity: Identity, /) -> Dag: ...

def map_with_path(func: Callable[..., Any], tree: Dag, rests: tuple[Dag, ...], is_leaf: IsLeaf | None, none_is_leaf: bool, namespace: str, identity: Identity, /) -> Dag: ...

def map_with_accessor(func: Callable[..., Any], tree: Dag, rests: tuple[Dag, ...], is_leaf: IsLeaf | None, none_is_leaf: bool, namespace: str, identity: Identity, /) -> Dag: ...

def set_deref_classes(anchor: type, alias: type, node: type, /) -> None: ...

def tie(tree: Any, paths: tuple[Path, ...], is_leaf: IsLeaf | None, none_is_leaf: bool, namespace: str, identity: Identity, /) -> Any: ...

def untie(tree: Any, paths: tuple[Path, ...], copy_leaf: Callable[[Leaf], Leaf], is_leaf: IsLeaf | None, none_is_leaf: bool, namespace: str, identity: Identity, /) -> Any: ...

def retie(spec: PyDagSpec, tree: Dag, are_equal: Callable[[Leaf, Leaf], bool], combine: Callable[[Leaf, Leaf], Leaf] | None, /) -> Dag: ...

def replace(tree: Dag, old: object, new: object, is_leaf: IsLeaf | None, none_is_leaf: bool, namespace: str, identity: Identity, /) -> Dag: ...

def update(target: Dag, source: Dag, is_leaf: IsLeaf | None, none_is_leaf: bool, namespace: str, identity: Identity, /) -> None: ...

@final
class Result:
    """What a compiled function returns: a PyDagSpec and leaves."""

def make_result(spec: PyDagSpec, leaves: Iterable[Leaf], /) -> Result: ...

def open_result(result: Result, /) -> tuple[Iterable[Leaf], PyDagSpec]: ...

def build_result(result: Any, /) -> Dag: ...

def call_flat(function: Callable[..., Any], known: dict[SpecKey, Any], tree: Dag, namespace: str, identity: Identity, /) -> Any: ...

def spec_key(spec: PyDagSpec, /) -> SpecKey: ...

@final
class SpecKey:
    """
    A PyDagSpec as a key: two are equal where a function could not tell the structures apart, so the order in which dicts were filled counts.
    """

    @property
    def spec(self) -> PyDagSpec: ...

    def __hash__(self, /) -> int: ...

    def __eq__(self, other: object, /) -> bool: ...

def fold(f: Callable[..., Any] | Mapping[Any, Callable[..., Any]], tree: Dag, down: Callable[[Any, Any], Any] | Mapping[Any, Callable[[Any, Any], Any]] | None, init: Any, is_leaf: IsLeaf | None, none_is_leaf: bool, namespace: str, identity: Identity, /) -> Any: ...

def rewrite(f: Callable[[Any], Any] | Mapping[Any, Callable[[Any], Any]], tree: Dag, is_leaf: IsLeaf | None, none_is_leaf: bool, namespace: str, identity: Identity, /) -> Dag: ...

def intern(tree: Dag, is_leaf: IsLeaf | None, none_is_leaf: bool, namespace: str, identity: Identity, /) -> Dag: ...
