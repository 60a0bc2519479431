# SPDX-License-Identifier: Apache-2.0
"""DAGs as JAX's own pytrees, for code that calls plain JAX."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import optree
from jax import tree_util

from pydag._core import PyDagSpec
from pydag.typing import Dag as AnyDag
from pydag.typing import Identity, Leaf

from ._form import Form, Options, take_apart

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


def keyed(tree: AnyDag, root: str, options: Options) -> Dag:
    """The Dag of a tree that is part of the key of what JAX traces.

    Args:
        root: The name of the tree, for paths in errors.
    """
    return hashable(packed(tree, options), lambda accessor: accessor.codify(root))


def hashable(dag: D, text: Callable[[optree.PyTreeAccessor], str]) -> D:
    """The Dag, which JAX may use as a part of a key.

    Args:
        text: Writes down the way to a leaf.

    Raises:
        TypeError: A static leaf can't be hashed.
    """
    form = dag._form
    for position, static in zip(form.positions, form.statics, strict=True):
        try:
            static.check_hashable()
        except TypeError as error:
            raise unhashable(text(form.spec.accessors()[position]), error) from error
    return dag


def unhashable(where: str, error: TypeError) -> TypeError:
    """What is raised for a leaf that can be neither traced nor hashed."""
    return TypeError(
        f"{where} is no array and can't be hashed: {error}\n"
        "  A leaf that JAX can't trace is part of the key of the compiled function. Make it "
        "hashable, register its class as a node, or pass it in another way."
    )


def fresh(dag: Dag) -> AnyDag:
    """A tree of its own, which a user's function may change: `dag.tree` may be the caller's."""
    return dag._form.build(dag._leaves)


def like(dag: Dag, tree: AnyDag, what: str) -> Dag:
    """A Dag of the form of `dag`, with what `tree` has in the place of its leaves: `Form.match`."""
    return rebuilt(dag._form, dag._form.match(tree, what))


def keys_of(form: Form, root: str) -> list[tree_util.GetAttrKey]:
    """A name for each traced leaf; JAX writes a dot before it."""
    skipped = frozenset(form.positions)
    return [
        tree_util.GetAttrKey(accessor.codify(root).removeprefix("."))
        for i, accessor in enumerate(form.spec.accessors())
        if i not in skipped
    ]


def _dag_with_keys(dag: Dag) -> tuple[list[tuple[Any, Leaf]], Form]:
    return list(zip(keys_of(dag._form, "tree"), dag._leaves, strict=True)), dag._form


tree_util.register_pytree_with_keys(
    Dag, _dag_with_keys, rebuilt, lambda dag: (dag._leaves, dag._form)
)
