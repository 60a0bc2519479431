# SPDX-License-Identifier: Apache-2.0
"""`jax.vjp`, `jax.jvp` and `jax.linearize` for functions of DAGs."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeVar, cast, overload

import jax
from jax import tree_util

from pydag.jaxinterop.boundary.blame import blame_tangent
from pydag.jaxinterop.boundary.dag import (
    Dag,
    InnerDag,
    argument,
    dag_like,
    rebuilt,
    to_dag,
    to_tree,
)
from pydag.jaxinterop.boundary.derivatives import (
    Structures,
    derivative,
    tangents_for,
    without_float0,
)
from pydag.jaxinterop.messages.naming import ARGUMENT_TUPLE, Source, named
from pydag.jaxinterop.messages.roots import place_text
from pydag.jaxinterop.refs.table import RefTable
from pydag.jaxinterop.static.untraced import Options, Untraced
from pydag.typing import Identity, Leaf

from .grad import pair

R = TypeVar("R")


class LinearMap:
    """What `vjp` and `linearize` return: a pytree, whose leaves are what JAX keeps for it.

    A tree that it is given has the structure of that which it is for. It may share more, and must
    not share less: one object can't have two tangents.

    Args:
        function: JAX's.
        untraced, types: Of the Dag that `function` takes: its structure, the types of its leaves.
        takes: One cotangent, of the result; or tangents, one for each primal.
        gives: What JAX sees of the tree that what it gives is for.

    Raises:
        SharingError: When called: different objects stand where one object stood.
        ValueError: When called: what is given is structured in another way.
    """

    def __init__(
        self,
        function: Any,
        untraced: Untraced,
        types: tuple[Any, ...],
        takes: Literal["cotangent", "tangents"],
        gives: Structures,
    ) -> None:
        self.function, self.untraced, self.types = function, untraced, types
        self.takes, self.gives = takes, gives

    @classmethod
    def at(
        cls, function: Any, dag: Dag, takes: Literal["cotangent", "tangents"], gives: InnerDag
    ) -> "LinearMap":
        """The map that takes what is for this Dag."""
        structures = Structures.of(gives.tree, gives._untraced)
        return cls(function, dag._untraced, types_of(dag), takes, structures)

    def __call__(self, *given: Any) -> Any:
        if self.takes == "tangents":
            leaves = self.untraced.match(given, "the tuple of the tangents", "tangents")
            tangent = self._apply(leaves, "primals", "tangents")
            return derivative(tangent._untraced, without_float0(tangent._leaves), self.gives)
        if len(given) != 1:
            raise TypeError(
                f"a pullback takes one cotangent, of the form of the result, but got {len(given)}"
            )
        leaves = self.untraced.match(given[0], "the cotangent", "cotangent")
        (cotangents,) = self._apply(leaves, "result", "cotangent")
        return derivative(cotangents._untraced, without_float0(cotangents._leaves), self.gives)

    def _apply(self, leaves: list[Leaf], point: str, direction: str) -> Any:
        dag = rebuilt(self.untraced, tangents_for(self.types, leaves), InnerDag)
        try:
            return self.function(dag)
        except (TypeError, ValueError) as error:
            expected = rebuilt(self.untraced, self.types, InnerDag)
            blame_tangent(error, expected.with_paths(point), dag.with_paths(direction))
            raise


def _point(primals: Sequence[Any], options: Options) -> InnerDag:
    """The Dag of primals, of which arrays are variables of their own."""
    by = argument(tuple(options.separated(primals)), options, "primals")
    text = partial(place_text, roots="primals")
    by._untraced.check_not_lazy("differentiated by", text)
    return by


def types_of(dag: Dag) -> tuple[Any, ...]:
    """JAX's types of the leaves."""
    return tuple(map(jax.typeof, dag._leaves))


tree_util.register_pytree_node(
    LinearMap,
    lambda f: ((f.function,), (f.untraced, f.types, f.takes, f.gives)),
    lambda aux, children: LinearMap(children[0], *aux),
)


def _flat(
    fun: Callable[..., Any], has_aux: bool, options: Options, table: RefTable
) -> Callable[[Dag], Any]:
    def flat(primals: Dag) -> Any:
        result = fun(*to_tree(table.show(primals)))
        if not has_aux:
            return table.hide(to_dag(result, options))
        value, aux = pair(result)
        return table.hide(to_dag(value, options)), table.hide(to_dag(aux, options))

    return named(flat, Source(fun), ARGUMENT_TUPLE)


@overload
def vjp(
    fun: Callable[..., R],
    *primals: Any,
    has_aux: Literal[False] = False,
    namespace: str = "",
    identity: Identity = "all",
    **jax_options: Any,
) -> tuple[R, LinearMap]: ...
@overload
def vjp(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool,
    namespace: str = "",
    identity: Identity = "all",
    **jax_options: Any,
) -> tuple[Any, ...]: ...
def vjp(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool = False,
    namespace: str = "",
    identity: Identity = "all",
    **jax_options: Any,
) -> Any:
    """The value of a function of DAGs, and its pullback; as `jax.vjp`.

    The pullback takes a cotangent, structured and shared as the value is, and gives a tuple of
    cotangents, structured and shared as the primals are: that of a shared array is the sum over its
    uses, and stands at all of its places. The same goes for the one that it takes. None stands for
    integers, text and whatever else has no derivative; in what is given, anything may.

    Args:
        fun: The function.
        primals: Its arguments.
        has_aux: Whether `fun` returns a pair of a value and something else, which is passed on.
        namespace: Not JAX's. Classes registered in this namespace are nodes, too.
        identity: Not JAX's. "nodes": only containers and modules have identity, arrays don't.
        jax_options: Others that JAX has.

    Returns:
        `(value, pullback)`; with `has_aux`, `(value, pullback, aux)`. The pullback is a pytree, so
        a compiled function may return it.

    >>> w = jnp.float32(3.0)
    >>> value, pullback = vjp(lambda p: p["a"] * p["b"], {"a": w, "b": w})
    >>> [cotangent] = pullback(jnp.float32(1.0))
    >>> float(cotangent["a"]), cotangent["a"] is cotangent["b"]
    (6.0, True)
    """
    options = Options(namespace, identity)
    by, table = _point(primals, options), RefTable()
    value, pullback, *aux = cast(Any, jax.vjp)(
        _flat(fun, has_aux, options, table),
        table.hide(by, adds=True),
        has_aux=has_aux,
        **jax_options,
    )
    linear = LinearMap.at(pullback, value, "cotangent", by)
    return table.show(value).tree, linear, *(table.show(x).tree for x in aux)


@overload
def jvp(
    fun: Callable[..., R],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[False] = False,
    *,
    namespace: str = "",
    identity: Identity = "all",
) -> tuple[R, R]: ...
@overload
def jvp(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool,
    *,
    namespace: str = "",
    identity: Identity = "all",
) -> tuple[Any, ...]: ...
def jvp(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
    *,
    namespace: str = "",
    identity: Identity = "all",
) -> Any:
    """The value of a function of DAGs, and its tangent; as `jax.jvp`.

    Args:
        fun: The function.
        primals: A tuple or list of its arguments.
        tangents: Structured as the primals are. They may share more, and must not share less. In
            the places of leaves that have no derivative there may be anything, such as None, which
            stands there in the tangent that comes back.
        has_aux: Whether `fun` returns a pair of a value and something else, which is passed on.
        namespace: Not JAX's. Classes registered in this namespace are nodes, too.
        identity: Not JAX's. "nodes": only containers and modules have identity, arrays don't.

    Raises:
        SharingError: Tangents have different objects where the primals have one.

    >>> w, one = jnp.float32(3.0), jnp.float32(1.0)
    >>> value, tangent = jvp(lambda p: p[0] * p[1], ([w, w],), ([one, one],))
    >>> float(value), float(tangent)
    (9.0, 6.0)
    """
    for name, trees in (("primals", primals), ("tangents", tangents)):
        if not isinstance(trees, tuple | list):
            raise TypeError(
                f"{name} must be a tuple or a list, with a tree for each argument, but it is of "
                f"type {type(trees).__name__}"
            )
    options = Options(namespace, identity)
    point, table = _point(primals, options), RefTable()
    by = table.hide(point, adds=True)
    along = dag_like(by, tuple(tangents), "the tuple of the tangents", "tangents")
    along = rebuilt(by._untraced, tangents_for(types_of(by), along._leaves), InnerDag)
    try:
        value, tangent, *aux = jax.jvp(
            _flat(fun, has_aux, options, table), (by,), (along,), has_aux=has_aux
        )
    except (TypeError, ValueError) as error:
        blame_tangent(error, by.with_paths("primals"), along.with_paths("tangents"))
        raise
    value = table.show(value)
    structures = Structures.of(value.tree, value._untraced)
    along_result = derivative(tangent._untraced, without_float0(tangent._leaves), structures)
    return value.tree, along_result, *(table.show(x).tree for x in aux)


@overload
def linearize(
    fun: Callable[..., R],
    *primals: Any,
    has_aux: Literal[False] = False,
    namespace: str = "",
    identity: Identity = "all",
    **jax_options: Any,
) -> tuple[R, LinearMap]: ...
@overload
def linearize(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool,
    namespace: str = "",
    identity: Identity = "all",
    **jax_options: Any,
) -> tuple[Any, ...]: ...
def linearize(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool = False,
    namespace: str = "",
    identity: Identity = "all",
    **jax_options: Any,
) -> Any:
    """The value of a function of DAGs, and its linear map at the primals; as `jax.linearize`.

    Args:
        fun: The function.
        primals: Its arguments.
        has_aux: Whether `fun` returns a pair of a value and something else, which is passed on.
        namespace: Not JAX's. Classes registered in this namespace are nodes, too.
        identity: Not JAX's. "nodes": only containers and modules have identity, arrays don't.
        jax_options: Others that JAX has.

    Returns:
        `(value, map)`; with `has_aux`, `(value, map, aux)`. The map takes a tangent for each
        primal, as `jvp` does, and is a pytree.

    >>> w, one = jnp.float32(3.0), jnp.float32(1.0)
    >>> value, pushforward = linearize(lambda p: p[0] * p[1], [w, w])
    >>> float(pushforward([one, one]))
    6.0
    """
    options = Options(namespace, identity)
    table = RefTable()
    by = table.hide(_point(primals, options), adds=True)
    value, pushforward, *aux = cast(Any, jax.linearize)(
        _flat(fun, has_aux, options, table), by, has_aux=has_aux, **jax_options
    )
    value = table.show(value)
    linear = LinearMap.at(pushforward, by, "tangents", value)
    return value.tree, linear, *(table.show(x).tree for x in aux)
