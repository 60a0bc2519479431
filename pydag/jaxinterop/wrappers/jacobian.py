# SPDX-License-Identifier: Apache-2.0
"""`jax.jacfwd`, `jax.jacrev` and `jax.hessian` for functions of DAGs."""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec

import jax

from pydag.jaxinterop.boundary.argnums import Argnums, Divided
from pydag.jaxinterop.boundary.blame import blame_gradient, differentiable
from pydag.jaxinterop.boundary.dag import Dag, InnerDag, rebuilt, to_dag
from pydag.jaxinterop.boundary.naming import Source, named
from pydag.jaxinterop.boundary.static_part import Options
from pydag.typing import Identity, Leaf

from .grad import pair

P = ParamSpec("P")


def _jacobian(
    transformation: Callable[..., Any],
    fun: Callable[P, Any],
    argnums: int | Iterable[int],
    has_aux: bool,
    options: Options,
    kind: Any,
    jax_options: dict[str, Any],
) -> Callable[P, Any]:
    """The function that computes it, as JAX's `transformation` does.

    Args:
        kind: What the dtypes are that can be differentiated by.
    """
    by, source = Argnums.of(argnums), Source(fun)

    @functools.wraps(fun, updated=())
    def jacobian(*args: P.args, **kwargs: P.kwargs) -> Any:
        divided = Divided(by, args, kwargs, options)

        def flat(leaves: Sequence[Leaf], others: Sequence[Leaf]) -> tuple[Dag, Dag]:
            result = divided.run(fun, leaves, others)
            value, aux = pair(result) if has_aux else (result, None)
            return to_dag(value, options), to_dag(aux, options)

        differentiate = transformation(named(flat, source), has_aux=True, **jax_options)
        if divided.by:
            try:
                rows, aux = differentiate(divided.by, divided.others)
            except TypeError as error:
                blame_gradient(error, source, divided.by_with_paths(), kind)
                raise
            # In the place of each leaf of the value there is a list: an array for each of `by`.
            found = [divided.gradient(row) for row in rows._leaves]
        else:  # JAX has no Jacobian by nothing; it has the structures, without arrays
            rows, aux = flat((), divided.others)
            found = [divided.gradient(()) for _ in rows._leaves]
        derivatives: Any = rebuilt(rows._static_part, found, InnerDag).tree
        return (derivatives, aux.tree) if has_aux else derivatives

    return jacobian


def jacfwd(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    namespace: str = "",
    identity: Identity = "all",
) -> Callable[P, Any]:
    """A function that returns the Jacobian of `fun`, column by column; as `jax.jacfwd`.

    In the place of each leaf of the result stands a tree like the arguments `argnums`. A shared
    leaf of the result has one such tree, in which the derivative by a shared array is one array.

    Args:
        fun: The function.
        argnums: The positional arguments to differentiate by: an int, or several.
        has_aux: Whether `fun` returns a pair of a value and something else, which is passed on.
        holomorphic: Whether `fun` is promised to be so, for complex numbers.
        namespace: Not JAX's. Classes registered in this namespace are nodes, too.
        identity: Not JAX's. "nodes": only containers and modules have identity, arrays don't.

    >>> w = jnp.float32(3.0)
    >>> jacobian = jacfwd(lambda p: [p["a"] * p["b"]])({"a": w, "b": w})
    >>> float(jacobian[0]["a"]), jacobian[0]["a"] is jacobian[0]["b"]
    (6.0, True)
    """
    options = Options(namespace, identity)
    kind = differentiable(holomorphic, forward=True)
    jax_options = {"holomorphic": holomorphic}
    return _jacobian(jax.jacfwd, fun, argnums, has_aux, options, kind, jax_options)


def jacrev(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    namespace: str = "",
    identity: Identity = "all",
) -> Callable[P, Any]:
    """A function that returns the Jacobian of `fun`, row by row; as `jax.jacrev`, see `jacfwd`.

    Args:
        fun: The function.
        argnums: The positional arguments to differentiate by: an int, or several.
        has_aux: Whether `fun` returns a pair of a value and something else, which is passed on.
        holomorphic: Whether `fun` is promised to be so, for complex numbers.
        allow_int: Whether integers may be differentiated by.
        namespace: Not JAX's. Classes registered in this namespace are nodes, too.
        identity: Not JAX's. "nodes": only containers and modules have identity, arrays don't.

    >>> w = jnp.float32(3.0)
    >>> jacobian = jacrev(lambda p: [p["a"] * p["b"]])({"a": w, "b": w})
    >>> float(jacobian[0]["a"]), jacobian[0]["a"] is jacobian[0]["b"]
    (6.0, True)
    """
    options = Options(namespace, identity)
    jax_options = {"holomorphic": holomorphic, "allow_int": allow_int}
    kind = differentiable(holomorphic, allow_int)
    return _jacobian(jax.jacrev, fun, argnums, has_aux, options, kind, jax_options)


def hessian(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    namespace: str = "",
    identity: Identity = "all",
) -> Callable[P, Any]:
    """A function that returns the Hessian of `fun`; as `jax.hessian`.

    It is the Jacobian, by `jacfwd`, of the Jacobian, by `jacrev`, and is nested as these are.

    Args:
        fun: The function.
        argnums: The positional arguments to differentiate by: an int, or several.
        has_aux: Whether `fun` returns a pair of a value and something else, which is passed on.
        holomorphic: Whether `fun` is promised to be so, for complex numbers.
        namespace: Not JAX's. Classes registered in this namespace are nodes, too.
        identity: Not JAX's. "nodes": only containers and modules have identity, arrays don't.

    >>> w = jnp.float32(3.0)
    >>> second = hessian(lambda p: p["a"] * p["b"])({"a": w, "b": w})
    >>> float(second["a"]["b"]), second["a"] is second["b"]
    (2.0, True)
    """
    how: dict[str, Any] = {"namespace": namespace, "identity": identity}
    inner = jacrev(fun, argnums, has_aux, holomorphic, **how)
    return jacfwd(inner, argnums, has_aux, holomorphic, **how)
