# SPDX-License-Identifier: Apache-2.0
"""`jax.jacfwd`, `jax.jacrev` and `jax.hessian` for functions of DAGs."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, Unpack

import jax

from pydag.jaxinterop.boundary.argnums import Argnums
from pydag.jaxinterop.boundary.differentiated import DifferentiatedCall
from pydag.jaxinterop.boundary.held import check_function
from pydag.jaxinterop.messages.attributes import wraps
from pydag.jaxinterop.messages.naming import Source, named
from pydag.jaxinterop.notices.blame import blame_gradient, differentiable
from pydag.jaxinterop.notices.parallel_copies import tell_divided
from pydag.jaxinterop.options import JacobianOptions, with_wrapper_options
from pydag.jaxinterop.packed.dag import Dag, dag_of
from pydag.jaxinterop.static.untraced import Options
from pydag.typing import Leaf

from .checks import pair

P = ParamSpec("P")


def _jacobian(
    transformation: Callable[..., Any],
    fun: Callable[P, Any],
    argnums: int | Iterable[int],
    has_aux: bool,
    options: JacobianOptions,
    kind: Any,
    jax_options: dict[str, Any],
    order: int = 1,
) -> Callable[P, Any]:
    """The function that computes it, as JAX's `transformation` does.

    Args:
        kind: What the dtypes are that can be differentiated by.
        order: How often it differentiates.
    """
    check_function(fun)
    how, wrt = Options.given(options, JacobianOptions), options.get("wrt")
    by, source = Argnums.of(argnums), Source(fun)
    transformation(fun, **jax_options)  # checks what can be checked without arguments

    @wraps(fun)
    def jacobian(*args: P.args, **kwargs: P.kwargs) -> Any:
        call = DifferentiatedCall(by, wrt, args, kwargs, how, jax_options.get("allow_int", False))
        tell_divided(fun, wrt, call.untraced.spec, call.divided)

        def nested(row: Any, depth: int) -> Any:
            """A tree for each of the nested lists that JAX makes."""
            inner = row if depth == 1 else [nested(below, depth - 1) for below in row]
            return call.gradient(inner)

        def flat(leaves: Sequence[Leaf], others: Sequence[Leaf]) -> tuple[Dag, Any]:
            result, _, table = call.run(fun, leaves, others)
            value, aux = pair(result) if has_aux else (result, None)
            hidden = (table.hide(dag_of(value, how)), table.hide(dag_of(aux, how)))
            return hidden[0], (hidden[1], call.contents(table))

        differentiate = transformation(named(flat, source), has_aux=True, **jax_options)
        if call.by:
            try:
                rows, (aux, contents) = differentiate(call.by, call.others)
            except TypeError as error:
                blame_gradient(error, source, call.by_with_paths(), kind)
                raise
            # In the place of each leaf of the value there is a list: an array for each of `by`.
            found = [nested(row, order) for row in rows._leaves]
        else:  # JAX has no Jacobian by nothing; it has the structures, without arrays
            rows, (aux, contents) = flat((), call.others)
            found = [call.gradient(()) for _ in rows._leaves]
        call.write(contents)
        derivatives: Any = rows._untraced.without_statics().build(found)
        return (derivatives, call.table.show(aux).tree) if has_aux else derivatives

    return jacobian


@with_wrapper_options
def jacfwd(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    **options: Unpack[JacobianOptions],
) -> Callable[P, Any]:
    """A function that returns the Jacobian of `fun`, column by column; as `jax.jacfwd`.

    In the place of each leaf of the result stands a tree like the arguments `argnums`. A shared
    leaf of the result has one such tree, in which the derivative by a shared array is one array.

    Args:
        fun: The function.
        argnums: The positional arguments to differentiate by: an int, or several.
        has_aux: Whether `fun` returns a pair of a value and something else, which is passed on.
        holomorphic: Whether `fun` is promised to be so, for complex numbers.

    >>> w = jnp.float32(3.0)
    >>> jacobian = jacfwd(lambda p: [p["a"] * p["b"]])({"a": w, "b": w})
    >>> float(jacobian[0]["a"]), jacobian[0]["a"] is jacobian[0]["b"]
    (6.0, True)
    """
    kind = differentiable(holomorphic, forward=True)
    jax_options = {"holomorphic": holomorphic}
    return _jacobian(jax.jacfwd, fun, argnums, has_aux, options, kind, jax_options)


@with_wrapper_options
def jacrev(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    **options: Unpack[JacobianOptions],
) -> Callable[P, Any]:
    """A function that returns the Jacobian of `fun`, row by row; as `jax.jacrev`, see `jacfwd`.

    Args:
        fun: The function.
        argnums: The positional arguments to differentiate by: an int, or several.
        has_aux: Whether `fun` returns a pair of a value and something else, which is passed on.
        holomorphic: Whether `fun` is promised to be so, for complex numbers.
        allow_int: Whether integers may be differentiated by.

    >>> w = jnp.float32(3.0)
    >>> jacobian = jacrev(lambda p: [p["a"] * p["b"]])({"a": w, "b": w})
    >>> float(jacobian[0]["a"]), jacobian[0]["a"] is jacobian[0]["b"]
    (6.0, True)
    """
    jax_options = {"holomorphic": holomorphic, "allow_int": allow_int}
    kind = differentiable(holomorphic, allow_int)
    return _jacobian(jax.jacrev, fun, argnums, has_aux, options, kind, jax_options)


@with_wrapper_options
def hessian(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    **options: Unpack[JacobianOptions],
) -> Callable[P, Any]:
    """A function that returns the Hessian of `fun`; as `jax.hessian`.

    It is the Jacobian, by `jacfwd`, of the Jacobian, by `jacrev`, and is nested as these are.

    Args:
        fun: The function.
        argnums: The positional arguments to differentiate by: an int, or several.
        has_aux: Whether `fun` returns a pair of a value and something else, which is passed on.
        holomorphic: Whether `fun` is promised to be so, for complex numbers.

    >>> w = jnp.float32(3.0)
    >>> second = hessian(lambda p: p["a"] * p["b"])({"a": w, "b": w})
    >>> float(second["a"]["b"]), second["a"] is second["b"]
    (2.0, True)
    """
    kind = differentiable(holomorphic, forward=True)
    jax_options = {"holomorphic": holomorphic}
    return _jacobian(jax.hessian, fun, argnums, has_aux, options, kind, jax_options, order=2)
