# SPDX-License-Identifier: Apache-2.0
"""DAGs as JAX's own pytrees, for code that calls plain JAX."""

import contextlib
import weakref
from collections.abc import Iterable, Sequence
from operator import is_
from typing import Any, NamedTuple, TypeVar

from jax import tree_util

from pydag._core import PyDagSpec
from pydag.typing import Dag as AnyDag
from pydag.typing import Identity, Leaf

from ._arguments import joined
from ._form import Form, Options, take_apart
from ._registry import asked_pydag
from ._static import static_positions

C = TypeVar("C", bound=type)
D = TypeVar("D", bound="Dag")
_UNBUILT: Any = object()


class Dag:
    """A pytree of JAX whose leaves are the distinct leaves of a DAG.

    Plain JAX, optax and orbax functions so see no leaf twice. `Dag(tree).tree` is `tree` itself;
    the `tree` of a Dag that JAX made (a gradient, a result of `jax.tree.map` or `jax.jit`) is
    built when it is first asked for, shared as the original was: whatever the new leaves are, the
    structure stays. Leaves that JAX can't trace are part of the structure.

    A Dag holds the leaves that its tree had when it was made. Dags are equal only to themselves.

    >>> import jax
    >>> w = jax.numpy.ones(2)
    >>> doubled = jax.tree.map(lambda x: 2 * x, Dag({"a": w, "b": w}))
    >>> len(jax.tree.leaves(doubled)), doubled.tree["a"] is doubled.tree["b"]
    (1, True)
    """

    __slots__ = ("__weakref__", "_form", "_leaves", "_tree")
    _form: Form
    _leaves: Sequence[Leaf]
    _tree: AnyDag

    def __init__(self, tree: AnyDag, *, namespace: str = "", identity: Identity = "all") -> None:
        self._form, self._leaves = take_apart(tree, Options(namespace, identity))
        self._tree = tree

    @property
    def tree(self) -> AnyDag:
        """The DAG."""
        if self._tree is _UNBUILT:
            self._tree = self._form.build(self._leaves)
        return self._tree

    @property
    def spec(self) -> PyDagSpec:
        """The structure of the DAG, sharing included."""
        return self._form.spec

    def __repr__(self) -> str:
        structure = repr(self.spec).removeprefix("PyDagSpec(").removesuffix(")")
        return f"Dag({structure}, [{', '.join(map(_brief, self._leaves))}])"

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt, (self._form, tuple(self._leaves), type(self))


def _brief(leaf: Leaf) -> str:
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    if shape is None or dtype is None:
        return repr(leaf)
    return f"{dtype}[{','.join(map(str, shape))}]"


def rebuilt(form: Form, leaves: Iterable[Leaf], cls: type[D] = Dag) -> D:  # type: ignore[assignment]  # mypy has no defaults for type variables
    """The Dag of this form with these leaves, which need not be arrays: JAX may put others."""
    dag = object.__new__(cls)
    dag._form, dag._leaves, dag._tree = form, tuple(leaves), _UNBUILT
    return dag


def packed(tree: AnyDag, options: Options) -> Dag:
    """The Dag of a tree, for a wrapper with these options."""
    return Dag(tree, namespace=options.namespace, identity=options.identity)


def fresh(dag: Dag) -> AnyDag:
    """A tree of its own, which a user's function may change: `dag.tree` may be the caller's."""
    return dag._form.build(dag._leaves)


def like(dag: Dag, tree: AnyDag, what: str) -> Dag:
    """A Dag of the form of `dag`, with what `tree` has in the place of its leaves: `Form.match`."""
    return rebuilt(dag._form, dag._form.match(tree, what))


def _keys(form: Form, root: str) -> list[tree_util.GetAttrKey]:
    """A name for each traced leaf; JAX writes a dot before it."""
    skipped = frozenset(form.positions)
    return [
        tree_util.GetAttrKey(accessor.codify(root).removeprefix("."))
        for i, accessor in enumerate(form.spec.accessors())
        if i not in skipped
    ]


def _dag_with_keys(dag: Dag) -> tuple[list[tuple[Any, Leaf]], Form]:
    return list(zip(_keys(dag._form, "tree"), dag._leaves, strict=True)), dag._form


tree_util.register_pytree_with_keys(
    Dag, _dag_with_keys, rebuilt, lambda dag: (dag._leaves, dag._form)
)


# What JAX put into an instance of a registered class, where opening the instance would not tell:
# by its id.
_remembered: dict[int, "_Memory"] = {}


class _Memory(NamedTuple):
    ref: "weakref.ref[Any]"
    form: Form
    leaves: Sequence[Leaf]

    def holds(self, node: Any) -> bool:
        """Whether this is about `node`, and it still has just these leaves."""
        if self.ref() is not node:
            return False
        statics = [static.value for static in self.form.statics]
        try:
            found = self.form.spec.flatten_up_to(node)
        except Exception:  # it was changed, and has another structure now
            return False
        return all(map(is_, found, joined(self.form.positions, statics, self.leaves)))


def _remember(node: Any, form: Form, leaves: Sequence[Leaf]) -> None:
    place = id(node)

    def forget(ref: "weakref.ref[Any]") -> None:
        if place in _remembered and _remembered[place].ref is ref:
            del _remembered[place]

    with contextlib.suppress(TypeError):  # of a class with `__slots__` and without a weak reference
        _remembered[place] = _Memory(weakref.ref(node, forget), form, leaves)


def register(cls: C, *, namespace: str = "", identity: Identity = "all") -> C:
    """Make JAX see the instances of a class as it sees a `Dag` of them. Also a decorator.

    The leaves of an instance are then its distinct leaves, whatever function of plain JAX it is
    given to. One that JAX made has the structure of the one it was made from, whatever its leaves
    are, until it is changed.

    Args:
        cls: A class that is registered with pydag, and not with JAX.

    Raises:
        ValueError: The class is registered with JAX already.
        TypeError: When an instance is flattened: the class is no node of pydag's.

    >>> @register
    ... @pydag.register_fields
    ... class Pair:
    ...     def __init__(self, w):
    ...         self.a = self.b = w
    >>> jax.tree.map(lambda x: x + 1, Pair(jnp.zeros(()))).b
    Array(1., dtype=float32)
    """
    options = Options(namespace, identity)

    def flatten(node: Any) -> tuple[Sequence[Leaf], Form]:
        known = _remembered.get(id(node))
        if known is not None and known.holds(node):
            return known.leaves, known.form
        form, leaves = take_apart(node, options)
        if form.spec.is_leaf():
            raise TypeError(
                f"{cls!r} is registered with pydag.jaxinterop but is no node of pydag's; register "
                "it there first, such as with pydag.register_fields"
            )
        return leaves, form

    def flatten_with_keys(node: Any) -> tuple[list[tuple[Any, Leaf]], Form]:
        leaves, form = flatten(node)
        return list(zip(_keys(form, ""), leaves, strict=True)), form

    def unflatten(form: Form, leaves: Iterable[Leaf]) -> Any:
        leaves = tuple(leaves)
        node = form.build(leaves)
        if len(set(map(id, leaves))) < len(leaves) or static_positions(leaves):
            _remember(node, form, leaves)
        return node

    tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    asked_pydag.add(cls)
    return cls
