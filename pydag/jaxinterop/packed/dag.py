# SPDX-License-Identifier: Apache-2.0
"""DAGs as JAX's own pytrees, for code that calls plain JAX."""

import enum
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from jax import tree_util

from pydag._core import PyDagSpec, spec_key
from pydag.jaxinterop.messages.roots import Roots, place_text
from pydag.jaxinterop.options import with_wrapper_options
from pydag.jaxinterop.static.leaves import is_traced
from pydag.jaxinterop.static.option import is_array
from pydag.jaxinterop.static.paths import keys_of, names_of, opens_with_names, paths_of
from pydag.jaxinterop.static.untraced import Options, Untraced, structure_of, take_apart
from pydag.ops.select import flags_of, masks, select_matching, where_there
from pydag.structure.text import bounded_repr
from pydag.typing import Dag as AnyDag
from pydag.typing import Identity, Leaf, Where

from .derivatives import with_seen
from .seen import Seen

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    T = TypeVarWithDefault("T", default=Any)  # so that `Dag` alone is a Dag of anything
else:
    T = TypeVar("T")
D = TypeVar("D", bound="Dag[Any]")


@with_wrapper_options
class Dag(Generic[T]):
    """A pytree of JAX whose leaves are the distinct leaves of a DAG.

    Plain JAX, optax and orbax functions so see no leaf twice. `Dag(tree).tree` is `tree` itself;
    the `tree` of a Dag that JAX made (a gradient, a result of `jax.tree.map` or `jax.jit`) is
    built when it is first asked for, shared as the original was: whatever the new leaves are, the
    structure stays. Leaves that JAX can't trace are part of the structure, and so is the order in
    which dicts were filled.

    A Dag is a view of its tree: when somebody who was handed `tree` changes it, JAX sees the
    change. Dags are equal only to themselves.

    Args:
        tree: The DAG.
        static: Not JAX's. Which leaves are part of the structure: a predicate, a class or several,
            a pattern of the path, or a list of such, as in `pydag.dag_mask`.

    Raises:
        CycleError: An object contains itself.
        TypeError: A leaf is an object of a class that is not registered, and holds arrays.
        ValueError: `static` selects nothing.

    >>> import jax
    >>> w = jax.numpy.ones(2)
    >>> doubled = jax.tree.map(lambda x: 2 * x, Dag({"a": w, "b": w}))
    >>> len(jax.tree.leaves(doubled)), doubled.tree["a"] is doubled.tree["b"]
    (1, True)
    """

    __slots__ = ("__weakref__", "_built", "_leaves", "_untraced")
    # What JAX built this from. Once `tree` was read, it counts, and of these only the options.
    _untraced: Untraced
    _leaves: Sequence[Leaf]
    # The tree, once it was read, and what JAX saw of it: one assignment sets both, since two
    # threads may read it.
    _built: tuple[T, Seen | None] | None

    def __init__(
        self,
        tree: T,
        *,
        namespace: str = "",
        identity: Identity = "all",
        static: Where | None = None,
    ) -> None:
        options = Options.of(namespace, identity, static)
        options.check_static(tree)
        spec = structure_of(tree, options)
        self._untraced, self._leaves = Untraced(spec_key(spec), (), (), options), ()
        self._built = tree, None

    @property
    def tree(self) -> T:
        """The DAG."""
        if self._built is None:
            tree = self._untraced.build(self._leaves)
            seen = Seen.of(tree, self._untraced, self._leaves)
            if self._built is None:
                self._built = tree, seen
        return self._built[0]

    @property
    def spec(self) -> PyDagSpec:
        """The structure of the DAG, sharing included."""
        return self._take_apart()[0].spec

    def _take_apart(self) -> tuple[Untraced, Sequence[Leaf]]:
        """The untraced part and the leaves, as they are now."""
        if self._built is None:
            return self._untraced, self._leaves
        tree, seen = self._built
        if seen is not None:
            if seen.holds(tree):
                return seen.untraced, seen.leaves
            self._built = tree, None
        return take_apart(tree, self._untraced.options)

    def _put(self, tree: Any, untraced: Untraced, leaves: Sequence[Leaf]) -> None:
        """Takes a tree that has this structure, whatever the leaves are that were put into it."""
        self._untraced, self._leaves = untraced, tuple(leaves)
        self._built = tree, Seen.of(tree, untraced, self._leaves)

    if not TYPE_CHECKING:  # to a type checker a Dag would have every attribute and item

        def __getattr__(self, name: str) -> Any:
            text = f"'{type(self).__name__}' object has no attribute '{name}'"
            if not name.startswith("_"):
                text += f"\n  The DAG that it stands for is its .tree: write dag.tree.{name}"
            # With `name` and `obj` Python itself proposes names with a similar spelling.
            raise AttributeError(text, name=name, obj=self)

        def __getitem__(self, item: Any) -> Any:
            raise TypeError(
                f"'{type(self).__name__}' object is not subscriptable\n"
                f"  The DAG that it stands for is its .tree: write dag.tree[{bounded_repr(item)}]"
            )

        __iter__ = None  # else Python would ask for the items 0, 1, 2, ...

    def __contains__(self, item: object) -> bool:
        """Whether the tree contains an item; False for a tree that can't be asked."""
        try:
            return item in self.tree  # type: ignore[operator]  # else a TypeError
        except TypeError:
            return False

    def _with(self, untraced: Untraced, leaves: Iterable[Leaf]) -> "Self":
        """A Dag of the same class with another content."""
        return rebuilt(untraced, leaves, type(self))

    def __repr__(self) -> str:
        untraced, leaves = self._take_apart()
        structure = repr(untraced.spec).removeprefix("PyDagSpec(").removesuffix(")")
        return f"Dag({structure}, [{', '.join(map(_brief, leaves))}])"

    def __reduce__(self) -> tuple[Any, ...]:
        untraced, leaves = self._take_apart()
        return rebuilt, (untraced, tuple(leaves), type(self))


def _brief(leaf: Leaf) -> str:
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    if shape is None or dtype is None:
        return bounded_repr(leaf)
    return f"{dtype}[{','.join(map(str, shape))}]"


def rebuilt(untraced: Untraced, leaves: Iterable[Leaf], cls: type[D] = Dag) -> D:  # type: ignore[assignment]  # mypy has no defaults for type variables
    """The Dag of an untraced part and leaves, which need not be arrays: JAX may put others."""
    dag = object.__new__(cls)
    dag._untraced, dag._leaves, dag._built = untraced, tuple(leaves), None
    return dag


Inner = TypeVar("Inner", bound="InnerDag")


def opened_by_jax(cls: type[Inner]) -> type[Inner]:
    """Lets JAX open a class of Dags with the paths of their leaves. A decorator."""
    tree_util.register_pytree_with_keys(
        cls,
        lambda dag: (tuple(dag.with_paths()), dag._untraced),
        lambda untraced, leaves: rebuilt(untraced, leaves, cls),
        lambda dag: (dag._leaves, dag._untraced),
    )
    return cls


@opened_by_jax
class InnerDag(Dag):
    """A Dag that a wrapper hands to JAX, which sees the paths of its tree.

    No code of the user's can change the tree before JAX has read it, so it is flattened once.
    """

    __slots__ = ()

    @property
    def tree(self) -> AnyDag:
        """The DAG."""
        return self._untraced.build(self._leaves) if self._built is None else self._built[0]

    def with_paths(self, root: str = "") -> Iterator[tuple[str, Leaf]]:
        """The traced leaves, with their paths."""
        return zip(paths_of(self._untraced, root), self._leaves, strict=True)

    def _take_apart(self) -> tuple[Untraced, Sequence[Leaf]]:
        return self._untraced, self._leaves


class Outcome(InnerDag):
    """The result of a function that JAX may compare with the result of another one.

    The order in which dicts were filled doesn't count for JAX: what JAX gives back has the order of
    the first result.
    """

    __slots__ = ()


class Role(enum.Enum):
    """What a tree is that goes to JAX."""

    ARGUMENT = enum.auto()  # no weak reference may lead into it
    KEY = enum.auto()  # an argument that is part of the key of what JAX traces
    RESULT = enum.auto()  # a function returned it


@overload
def dag_of(
    tree: AnyDag, options: Options, roots: Roots = "result", role: Role = Role.RESULT
) -> InnerDag: ...
@overload
def dag_of(
    tree: AnyDag,
    options: Options,
    roots: Roots = "result",
    role: Role = Role.RESULT,
    *,
    cls: type[Inner],
) -> Inner: ...
def dag_of(
    tree: AnyDag,
    options: Options,
    roots: Roots = "result",
    role: Role = Role.RESULT,
    *,
    cls: type[InnerDag] = InnerDag,
) -> InnerDag:
    """The Dag of a tree that goes to JAX; errors speak of it by the names that the user has for it.

    Raises:
        CycleError: An object contains itself.
        TypeError: A leaf is an unregistered object that holds arrays; a weak reference leads into
            an argument; a static leaf of a key can't be hashed; a result holds an iterator.
    """
    dag = object.__new__(cls)
    untraced, dag._leaves = take_apart(tree, options, roots, role is Role.RESULT)
    untraced = with_seen(untraced, tree)
    if role is not Role.RESULT:
        untraced.check_weak(tree, roots)
    if role is Role.KEY:
        _check_hashable(untraced, roots)
        untraced = untraced.with_states()  # what constant objects hold is part of the key
    dag._untraced, dag._built = untraced, (tree, None)
    return dag


def _check_hashable(untraced: Untraced, roots: Roots) -> None:
    for position, static in zip(untraced.positions, untraced.statics, strict=True):
        try:
            static.check_hashable()
        except TypeError as error:
            where = place_text(untraced.spec.accessors()[position], roots)
            raise unhashable(where, error, static.value) from error


def unhashable(where: str, error: TypeError, leaf: Leaf) -> TypeError:
    """What is raised for a leaf that can be neither traced nor hashed."""
    if is_array(leaf) and is_traced(leaf):
        return TypeError(
            f"{where} is an array, {_brief(leaf)}, and static= selects it: a static leaf is part "
            f"of the key of the compiled function, and has to be hashable ({error})\n"
            "  Select what is configuration, and leave arrays to be traced."
        )
    return TypeError(
        f"{where} is no array and can't be hashed: {error}\n"
        "  A leaf that JAX can't trace is part of the key of the compiled function. Make it "
        "hashable, register its class as a node, or pass it in another way."
    )


def _dag_with_keys(dag: Dag) -> tuple[list[tuple[Any, Leaf]], Untraced]:
    untraced, leaves = dag._take_apart()
    return list(zip(keys_of(untraced, "tree"), leaves, strict=True)), untraced


def _mask(dag: Dag, where: Where) -> Dag:
    """The Dag that has a boolean in the place of each leaf."""
    untraced, leaves = dag._take_apart()
    everything = untraced.all_leaves(leaves)
    namespace = untraced.options.namespace
    chosen = select_matching(where_there(where), untraced.spec, everything, namespace)
    found = flags_of(chosen, everything)
    return rebuilt(untraced, [found[i] for i in untraced.traced_positions()])


def _open(dag: Dag) -> tuple[Sequence[Leaf], Untraced]:
    untraced, leaves = dag._take_apart()
    return leaves, untraced


def _open_with_names(dag: Dag) -> tuple[Sequence[Leaf], Untraced, Sequence[str]]:
    untraced, leaves = dag._take_apart()
    return leaves, untraced, names_of(untraced, "tree")


masks[Dag] = _mask
opens_with_names.set(Dag, _open_with_names)
tree_util.register_pytree_with_keys(Dag, _dag_with_keys, rebuilt, _open)
tree_util.register_pytree_with_keys(
    Outcome,
    lambda dag: (list(dag.with_paths()), dag._untraced.content),
    lambda content, leaves: rebuilt(content.untraced(), leaves, Outcome),
    lambda dag: (dag._leaves, dag._untraced.content),
)
