"""The compiled core of pydag. Its public names are those of the package."""

import builtins
from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence
)
from typing import Any, SupportsIndex, SupportsInt, Unpack, final

from optree import (
    PyTreeAccessor,
    PyTreeEntry,
    PyTreeKind,
    PyTreeSpec
)

from pydag.sharing.shared_object import SharedObject
from pydag.typing import (
    Dag,
    FlattenFunction,
    FlattenOptions,
    Identity,
    Leaf,
    Path,
    UnflattenFunction
)



class CycleError(ValueError):
    """An object contains itself, so that the structure is not a DAG."""

class SharingError(ValueError):
    """
    One shared object was given two different answers, or two structures that should be shared alike are not.
    """

def register_node(type: type, flatten: object, unflatten: object, path_entry_type: type, namespace: str, has_identity: bool, /) -> None: ...

def register_fields(type: type, resolve_fields: object, path_entry_type: type, namespace: str, has_identity: bool, is_module: bool, /) -> None: ...

def foreign_registration(type: type, flatten: object, unflatten: object, path_entry_type: type, resolve_fields: object, is_strict: bool, is_module: bool, leaves_are_values: bool = False, /) -> object: ...

def name_children(registration: object, flatten: object, names: object, open_with_keys: object = None, /) -> None: ...

def read_names_of_keys(registration: object, key_class: type, attribute: str, name_class: type, /) -> None: ...

def set_path_entry_type(registration: object, path_entry_type: type, /) -> None: ...

def unregister(type: type, namespace: str, /) -> tuple[FlattenFunction | None, UnflattenFunction | None, type[PyTreeEntry]]: ...

def find_registration(type: type, namespace: str, /) -> tuple[FlattenFunction | None, UnflattenFunction | None, type[PyTreeEntry], str] | None: ...

def is_namedtuple_class(cls: object, /) -> bool: ...

def is_structseq_class(cls: object, /) -> bool: ...

def structseq_fields(cls: type, /) -> tuple[str, ...]: ...

def check_namespace(name: object, /) -> None: ...

def is_module(cls: type, namespace: str, /) -> bool: ...

def own_slots(cls: type, /) -> list[str]: ...

def registered_classes() -> list[tuple[str, type]]: ...

def set_lookup(find_foreign: object, is_value: object, is_insertion_ordered: object, /) -> None: ...

def set_value_base(base: type, /) -> None: ...

def set_identity_everywhere(cls: type, /) -> None: ...

def watch_registry(registry: dict[Any, Any], /) -> None: ...

def clear_caches() -> None: ...

def stand_in_by_slots(registration: object, child: str | None, entry: str | None, items: str | None, plain: tuple[str, ...], fresh: str, make_fresh: object, write: object, /) -> bool: ...

def stand_in_by_attributes(registration: object, kinds: str, kinds_class: type, mapping: str, /) -> bool: ...

def stand_in_as_whole(registration: object, /) -> bool: ...

def add_layout(registration: object, children: tuple[Any, ...], others: tuple[Any, ...], names: tuple[str, ...], entries: tuple[Any, ...] | None, /) -> bool: ...

def open_by_stand_in(registration: object, object: object, /) -> tuple[tuple[Any, ...], object, tuple[Any, ...] | None] | None: ...

def build_by_stand_in(registration: object, aux_data: object, children: tuple[Any, ...], /) -> object: ...

def set_stand_in_tried(registration: object, aux_data: object, count: int, /) -> None: ...

def has_stand_in(registration: object, /) -> bool: ...

def drop_stand_in(registration: object, /) -> None: ...

class PyDagSpec:
    """
    The structure of a DAG: its nodes, their keys and aux_data, and which of its objects are shared.

    Immutable and hashable. Specs that differ in sharing are unequal.
    """

    def __repr__(self, /) -> str: ...

    def __hash__(self, /) -> int: ...

    def __lt__(self, other: PyDagSpec, /) -> bool: ...

    def __le__(self, other: PyDagSpec, /) -> bool: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __ne__(self, other: object, /) -> bool: ...

    def __gt__(self, other: PyDagSpec, /) -> bool: ...

    def __ge__(self, other: PyDagSpec, /) -> bool: ...

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

    @property
    def shared(self, /) -> list[SharedObject]:
        """The shared objects: index, kind, type and paths."""

    def to_json(self, /) -> str:
        """
        The structure as JSON, which `from_json` reads back, in any process.

        Keys, aux_data and the values of meta fields may be None, bool, int, float, str, bytes, tuples of them, and registered classes, which are written by name. TypeError for anything else, with its path.
        """

    @staticmethod
    def from_json(text: str, namespace: str | None = None) -> PyDagSpec:
        """
        The structure that was written by `to_json`. Nothing is imported for it, and no code of a class runs.

        Building from it, `unflatten`, calls the functions of the classes that the text names. Registered classes are looked up in `namespace`, or in that which was written. ValueError names the field that is malformed, or the class that isn't registered.
        """

    def _listing(self, record_class: builtins.type = tuple, /) -> list[Any]: ...

    def _shared(self, /) -> list[tuple[int, PyTreeKind, builtins.type | None]]: ...

    def __len__(self, /) -> int: ...

    def __sizeof__(self, /) -> int: ...

    def __copy__(self, /) -> PyDagSpec: ...

    def __deepcopy__(self, memo: Any, /) -> PyDagSpec: ...

    def __getstate__(self, /) -> tuple[Any, ...]: ...

    def __reduce__(self, /) -> tuple[Any, ...]: ...

    def __setstate__(self, state: tuple[Any, ...], /) -> None: ...

    def children(self, /) -> list[PyDagSpec]:
        """
        The specs of what stands in the root's slots. Sharing with what lies outside of each is not in it.
        """

    def child(self, index: SupportsInt | SupportsIndex, /) -> PyDagSpec:
        """
        The spec of what stands in one of the root's slots; a negative index counts from the end.
        """

    def entry(self, index: SupportsInt | SupportsIndex, /) -> Any:
        """
        The entry of one of the root's slots; a negative index counts from the end.
        """

    def one_level(self, /) -> PyDagSpec | None:
        """
        The root with a leaf in each of its slots, never a shared one; None for a leaf.
        """

    def is_one_level(self, /) -> bool:
        """Whether the root is a node that holds only leaves."""

    def is_prefix(self, other: PyDagSpec, /, *, strict: bool = False) -> bool:
        """
        Whether `other` arises from this spec by putting structures in the place of leaves.

        What is one object here must be one there, too, which may share more. With `strict=True` it must share more, or hold a node where a leaf is here.
        """

    def is_suffix(self, other: PyDagSpec, /, *, strict: bool = False) -> bool:
        """Whether `other` is a prefix of this spec."""

    def compose(self, inner: PyDagSpec, /) -> PyDagSpec:
        """
        This spec with `inner` in the place of each leaf; in that of a shared leaf it is one shared object.
        """

    def broadcast_to_common_suffix(self, other: PyDagSpec, /) -> PyDagSpec:
        """
        This spec with what `other` has in the place of its leaves.

        The sharing is this spec's, and within such a place that of `other`; a shared leaf must get the same structure at all of its paths.
        """

    def transform(self, /, f_node: Callable[[PyDagSpec], PyDagSpec] | None = None, f_leaf: Callable[[PyDagSpec], PyDagSpec] | None = None) -> PyDagSpec:
        """
        The spec with other nodes and leaves.

        `f_node` is called once for each distinct node, after what it holds, with a spec of that node alone, and returns one with as many slots; `f_leaf` once for each distinct leaf, and returns any. What was one object stays one, unless a tuple stands for it: then what it holds is shared.
        """

    def traverse(self, leaves: Iterable[Any], /, f_node: Callable[[Any], Any] | None = None, f_leaf: Callable[[Any], Any] | None = None) -> Any:
        """
        From the leaves up: `f_leaf(leaf)` once for each distinct leaf, `f_node(node)` once for each distinct node, built of what came of its children. What came of a shared object stands at all of its places.
        """

    def walk(self, leaves: Iterable[Any], /, f_node: Callable[[builtins.type, Any, tuple[Any, ...]], Any] | None = None, f_leaf: Callable[[Any], Any] | None = None) -> Any:
        """
        As `traverse`, with `f_node(type, data, children)`, so that nothing needs to be built.
        """

    def to_treespec(self, /) -> PyTreeSpec:
        """
        optree's `PyTreeSpec` of the unfolded tree: every path written out, nothing shared.
        """

    def _brief_repr(self, /) -> str: ...

def value_leaves(spec: PyDagSpec, /) -> tuple[int, ...]: ...

def module_leaves(spec: PyDagSpec, /) -> tuple[tuple[int, ...], tuple[int, ...]]: ...

def explain(a: PyDagSpec, b: PyDagSpec, /, exactly: bool = False, roots: str | tuple[str, ...] = "tree") -> str: ...

def node_kinds() -> list[tuple[str, tuple[str, ...], bool, bool]]: ...

def nodes_of(spec: PyDagSpec, /) -> tuple[tuple[tuple[Any, ...], ...], tuple[Any, ...]]: ...

def spec_from_nodes(none_is_leaf: bool, namespace: str, rows: tuple[tuple[Any, ...], ...], refs: tuple[Any, ...], /) -> PyDagSpec: ...

def check_rows(none_is_leaf: bool, rows: tuple[tuple[Any, ...], ...], num_refs: int, /) -> None: ...

def connections(records: Sequence[tuple[Any, ...]], /) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], list[tuple[int, ...]], tuple[int, ...]]: ...

def step_text(entry: Any, attribute: str | None, /) -> str: ...

def buffer_address(object: object, /) -> int: ...

def json_object(pairs: list[tuple[str, Any]], /) -> dict[str, Any]: ...

def leaves_by_path(spec: PyDagSpec, pattern: str, depth: int, /) -> list[bool]: ...

def leaves_below(spec: PyDagSpec, is_meant: Callable[[type], bool], /) -> list[bool]: ...

def match_at(spec: PyDagSpec, tree: Any, roots: str | tuple[str, ...], /) -> list[Any]: ...

def match_rests(spec: PyDagSpec, rests: tuple[Any, ...], /) -> list[list[Any]]:
    """As `flatten_up_to`, for several trees."""

def leaf_spec(none_is_leaf: bool, namespace: str, /) -> PyDagSpec: ...

def collect_specs(collection: Any, none_is_leaf: bool, namespace: str, /) -> PyDagSpec: ...

def broadcast_tree(prefix: PyDagSpec, leaves: list[Leaf], full: PyDagSpec, /) -> tuple[PyDagSpec, list[Leaf], list[tuple[Any, ...]]]: ...

def broadcast_leaves(prefix: PyDagSpec, leaves: list[Leaf], full: PyDagSpec, /) -> tuple[list[Leaf], list[tuple[Any, ...]]]: ...

def broadcast_conflicts(prefix: PyDagSpec, leaves: list[Leaf], full: PyDagSpec, /) -> list[tuple[Any, ...]]: ...

def check_prefix(prefix: PyDagSpec, tree: Dag, /) -> None: ...

def root_fit(prefix: PyDagSpec, other: PyDagSpec, /) -> str: ...

def structure_below(prefix: PyDagSpec, tree: Dag, /, **options: Unpack[FlattenOptions]) -> PyDagSpec: ...

def flatten(tree: Dag, /, **options: Unpack[FlattenOptions]) -> tuple[list[Leaf], PyDagSpec]: ...

def flatten_at(tree: Dag, root: str | tuple[str, ...], /, **options: Unpack[FlattenOptions]) -> tuple[list[Leaf], PyDagSpec]: ...

def leaves(tree: Dag, /, **options: Unpack[FlattenOptions]) -> list[Leaf]: ...

def structure(tree: Dag, /, **options: Unpack[FlattenOptions]) -> PyDagSpec: ...

def flatten_with_path(tree: Dag, /, **options: Unpack[FlattenOptions]) -> tuple[list[Path], list[Leaf], PyDagSpec]: ...

def flatten_with_accessor(tree: Dag, /, **options: Unpack[FlattenOptions]) -> tuple[list[PyTreeAccessor], list[Leaf], PyDagSpec]: ...

def copy(tree: Dag, /, **options: Unpack[FlattenOptions]) -> Dag: ...

def deref(tree: Dag, /, **options: Unpack[FlattenOptions]) -> Dag: ...

def reref(tree: Dag, /, **options: Unpack[FlattenOptions]) -> Dag: ...

def shared_objects(tree: Dag, /, **options: Unpack[FlattenOptions]) -> tuple[PyDagSpec, list[Any]]: ...

def unflatten(spec: PyDagSpec, leaves: Iterable[Leaf], /) -> Dag: ...

def map(func: Callable[..., Any], tree: Dag, rests: tuple[Dag, ...], /, **options: Unpack[FlattenOptions]) -> Dag: ...

def map_with_path(func: Callable[..., Any], tree: Dag, rests: tuple[Dag, ...], /, **options: Unpack[FlattenOptions]) -> Dag: ...

def map_with_accessor(func: Callable[..., Any], tree: Dag, rests: tuple[Dag, ...], /, **options: Unpack[FlattenOptions]) -> Dag: ...

def map_where(func: Callable[..., Any], tree: Dag, rests: tuple[Dag, ...], select: Callable[[list[Leaf], PyDagSpec], list[bool]] | None, /, **options: Unpack[FlattenOptions]) -> Dag: ...

def map_with_path_where(func: Callable[..., Any], tree: Dag, rests: tuple[Dag, ...], select: Callable[[list[Leaf], PyDagSpec], list[bool]] | None, /, **options: Unpack[FlattenOptions]) -> Dag: ...

def map_with_accessor_where(func: Callable[..., Any], tree: Dag, rests: tuple[Dag, ...], select: Callable[[list[Leaf], PyDagSpec], list[bool]] | None, /, **options: Unpack[FlattenOptions]) -> Dag: ...

def for_each(func: Callable[..., Any], tree: Dag, rests: tuple[Dag, ...], select: Callable[[list[Leaf], PyDagSpec], list[bool]] | None, /, **options: Unpack[FlattenOptions]) -> None: ...

def for_each_with_path(func: Callable[..., Any], tree: Dag, rests: tuple[Dag, ...], select: Callable[[list[Leaf], PyDagSpec], list[bool]] | None, /, **options: Unpack[FlattenOptions]) -> None: ...

def for_each_with_accessor(func: Callable[..., Any], tree: Dag, rests: tuple[Dag, ...], select: Callable[[list[Leaf], PyDagSpec], list[bool]] | None, /, **options: Unpack[FlattenOptions]) -> None: ...

def iterate(tree: Dag, /, **options: Unpack[FlattenOptions]) -> Iterator[Leaf]: ...

def is_leaf(tree: Dag, /, **options: Unpack[FlattenOptions]) -> bool: ...

def are_leaves(iterable: Iterable[Dag], /, **options: Unpack[FlattenOptions]) -> bool: ...

def open_one_level(node: Dag, /, **options: Unpack[FlattenOptions]) -> tuple[list[Any], tuple[Any, ...], PyDagSpec]: ...

def all_paths(spec: PyDagSpec, /) -> list[list[Path]]: ...

def path_texts(spec: PyDagSpec, roots: str | tuple[str, ...], /) -> list[str]: ...

def set_deref_classes(anchor: type, alias: type, node: type, /) -> None: ...

def tie(tree: Any, paths: tuple[Path, ...], /, **options: Unpack[FlattenOptions]) -> Any: ...

def untie(tree: Any, paths: tuple[Path, ...], copy_leaf: Callable[[Leaf], Leaf], /, **options: Unpack[FlattenOptions]) -> Any: ...

def retie(spec: PyDagSpec, tree: Dag, are_equal: Callable[[Leaf, Leaf], bool], combine: Callable[[Leaf, Leaf], Leaf] | None, /) -> Dag: ...

def replace(tree: Dag, old: object, new: object, /, **options: Unpack[FlattenOptions]) -> Dag: ...

def update(target: Dag, source: Dag, writers: object, /, **options: Unpack[FlattenOptions]) -> None: ...

@final
class Result:
    """What a compiled function returns: a PyDagSpec and leaves."""

@final
class RefAccess:
    """How the contents of JAX's refs are read and written."""

@final
class CallPlan:
    """How calls of one structure go to a compiled function."""

@final
class CallPlans:
    """A compiled function, and what is remembered of its calls."""

@final
class Flag:
    """A flag that is set once."""
    @property
    def is_set(self) -> bool: ...
    def set(self) -> None: ...

def call_plan(
    *,
    classes: tuple[type, ...],
    static_positions: Sequence[int],
    statics: tuple[Any, ...],
    function: Callable[..., Any],
    traced: Sequence[int],
    donated: Sequence[int] = (),
    in_lists: bool = False,
    copy: Callable[[Any], Any] | None = None,
    refs: Sequence[int] = (),
    written: Sequence[int] = (),
    has_devices: bool = True,
) -> CallPlan: ...

def donated_apart(leaves: list[Any], donated: tuple[int, ...], copy: Callable[[Any], Any], /) -> list[Any]: ...

@final
class JitCaller:
    """Calls a compiled function."""
    @property
    def run(self) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
        """(args, kwargs): the call in Python."""
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...

def jit_caller(
    *,
    plans: CallPlans,
    unties: Flag,
    note_untie: Callable[[], None],
    places: dict[str, int],
    static_numbers: Sequence[int],
    static_names: frozenset[str],
    run: Callable[[tuple[Any, ...], dict[str, Any]], Any],
    recover: Callable[[Exception, tuple[Any, ...], dict[str, Any]], Any],
) -> JitCaller: ...

def make_result(structure: PyDagSpec | tuple[PyDagSpec, tuple[int, ...] | None, Any], leaves: Iterable[Leaf], /) -> Result: ...

def open_result(result: Result, /) -> tuple[Iterable[Leaf], Any]: ...

def build_result(result: Any, /) -> Dag: ...

def fill_result(result: Any, given: Sequence[Leaf], new_ref: Callable[[Any], Any] | None, /) -> Dag: ...

def holds_refs(result: Any, /) -> bool: ...

def ref_access(
    ref_class: type,
    array_class: type,
    sharding_class: type,
    is_top_level: Callable[[], bool],
    new_ref: Callable[[Any], Any],
    /,
) -> RefAccess: ...

def call_plans(namespace: str, identity: Identity, access: RefAccess | None, /) -> CallPlans: ...

def add_plan(plans: CallPlans, spec_key: SpecKey, plan: CallPlan, /) -> None: ...

def forget_plans(plans: CallPlans, spec_key: SpecKey | None, /) -> None: ...

def static_leaf(plans: CallPlans, value: Any, /) -> Any: ...

def add_static_leaf(plans: CallPlans, leaf: Any, /) -> None: ...

def forget_static_leaves(plans: CallPlans, /) -> None: ...

def flag() -> Flag: ...

def lead_calls_to_caller(function: Callable[..., Any], /) -> None: ...

def one_of_each_class(objects: Iterable[Any], /) -> dict[int, Any]: ...

def positions_of_classes(objects: Iterable[Any], addresses: Iterable[int], /) -> list[int]: ...

def are_same_objects(objects: Sequence[Any], others: Sequence[Any], /) -> bool: ...

def is_same_value(value: Any, other: Any, /) -> bool: ...

def value_hash(value: Any, /) -> int: ...

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

@final
class UpdatePlan:
    """What a compiled function changes in its arguments."""

@final
class Updated:
    """What a function returns that changes its arguments."""

def update_plan(*, spec: PyDagSpec, positions: Sequence[int], writers: Callable[[type], Callable[[Any, tuple[Any, ...]], None] | None] | None, returned: Callable[[Any, tuple[Any, Any]], Any] | None = None, roots: str | tuple[str, ...] = "tree") -> UpdatePlan: ...

def make_updated(aux_data: None, parts: tuple[Any, UpdatePlan | None, Sequence[Leaf]], /) -> Updated: ...

def keep_plan(plan: UpdatePlan, children: Any, /) -> UpdatePlan: ...

def open_updated(updated: Updated, /) -> tuple[Any, UpdatePlan | None, Sequence[Leaf]]: ...

def carry_out(plan: UpdatePlan, tree: Dag, leaves: Sequence[Leaf], /) -> None: ...

def update_arguments(updated: Updated, arguments: tuple[Any, Any], result: Any, /) -> Any: ...

def fold(f: Callable[..., Any] | Mapping[Any, Callable[..., Any]], tree: Dag, down: Callable[[Any, Any], Any] | Mapping[Any, Callable[[Any, Any], Any]] | None, init: Any, /, **options: Unpack[FlattenOptions]) -> Any: ...

def rewrite(f: Callable[[Any], Any] | Mapping[Any, Callable[[Any], Any]], tree: Dag, /, **options: Unpack[FlattenOptions]) -> Dag: ...

def intern(tree: Dag, /, **options: Unpack[FlattenOptions]) -> Dag: ...

def publish(core_name: str, definition: Callable[..., Any], names: tuple[str, ...], defaults: tuple[tuple[Any, ...], ...], num_positional_only: int, num_positional: int, takes_rests: bool, help: str, /) -> Callable[..., Any]: ...
