# SPDX-License-Identifier: Apache-2.0
"""`jax.lax.custom_root` and `jax.lax.custom_linear_solve`, of DAGs.

Both get functions of a tree and solvers, which are given such a function and a tree. All the trees
are alike: structured, and shared, as the first guess or the right-hand side is.
"""

from collections.abc import Callable
from typing import Any, TypeVar, Unpack

import jax

from pydag.jaxinterop.boundary.match import alike
from pydag.jaxinterop.messages.naming import Source, named, signature_like
from pydag.jaxinterop.notices.lost_update import run_on
from pydag.jaxinterop.options import TreeOptions, with_wrapper_options
from pydag.jaxinterop.packed.dag import InnerDag, Role, dag_of, rebuilt
from pydag.jaxinterop.static.untraced import Options

from .checks import pair

T = TypeVar("T")

Function = Callable[[Any], Any]
Solver = Callable[[Function, Any], Any]


class _Unknown:
    """The trees of one equation: what all of them are like."""

    def __init__(self, what: str, root: str, tree: Any, options: Options) -> None:
        self.what, self.root, self.options = what, root, options
        self.dag = dag_of(tree, options, root, Role.KEY)

    def _packed(self, tree: Any, source: Source) -> InnerDag:
        return alike(self.what, self.root, self.dag, tree, self.options, source)

    def function(self, fun: Function) -> Callable[[InnerDag], InnerDag]:
        """The function that JAX gets in the place of the user's."""
        source = Source(fun)

        def of_dags(dag: InnerDag) -> InnerDag:
            return self._packed(run_on(fun, (dag,), (self.root,)), source)

        return named(of_dags, source, signature_like(fun, "x"))

    def solver(self, solve: Solver, has_aux: bool) -> Callable[..., Any]:
        """The same for a solver. The function that it is given is one of trees again."""
        source = Source(solve)

        def of_dags(function: Callable[[InnerDag], InnerDag], dag: InnerDag) -> Any:
            def of_trees(tree: Any) -> Any:
                untraced = self.dag._untraced
                leaves = untraced.match(tree, f"what {source.text} asks for", self.root)
                return function(rebuilt(untraced, leaves, InnerDag)).tree

            found = run_on(solve, (dag,), (self.root,), of_trees)
            if not has_aux:
                return self._packed(found, source)
            value, aux = pair(found)
            return self._packed(value, source), dag_of(aux, self.options, "aux")

        return of_dags


def _opened(result: Any, has_aux: bool) -> Any:
    return (result[0].tree, result[1].tree) if has_aux else result.tree


@with_wrapper_options
def custom_root(
    f: Callable[[T], T],
    initial_guess: T,
    solve: Solver,
    tangent_solve: Solver,
    has_aux: bool = False,
    **options: Unpack[TreeOptions],
) -> Any:
    """A root of a function of a DAG, which can be differentiated; as `jax.lax.custom_root`.

    A shared array is one unknown, and has one equation.

    Args:
        f: Gives a DAG that is structured, and shared, as its argument is: zero at the root.
        initial_guess: A DAG.
        solve: `solve(f, initial_guess)` gives the root.
        tangent_solve: `tangent_solve(g, y)` gives the `x` for which the linear `g(x)` is `y`.
        has_aux: Whether `solve` returns a pair of the root and something else, which is passed on.

    Raises:
        SharingError: A function changes what its argument shares.

    >>> def residual(p):
    ...     value = p["a"] * p["b"] - 9.0
    ...     return {"a": value, "b": value}
    >>> def newton(f, p):
    ...     for _ in range(6):
    ...         p = pydag.dag_map(lambda x, r: x - r / (2 * x), p, f(p))
    ...     return p
    >>> def linear(g, y):
    ...     one = pydag.dag_map(jnp.ones_like, y)
    ...     return pydag.dag_map(jnp.divide, y, g(one))
    >>> w = jnp.float32(2.0)
    >>> root = custom_root(residual, {"a": w, "b": w}, newton, linear)
    >>> float(root["a"]), root["a"] is root["b"]
    (3.0, True)
    """
    unknown = _Unknown(
        "custom_root's trees", "x", initial_guess, Options.given(options, TreeOptions)
    )
    result = jax.lax.custom_root(
        unknown.function(f),
        unknown.dag,
        unknown.solver(solve, has_aux),
        unknown.solver(tangent_solve, False),
        has_aux,
    )
    return _opened(result, has_aux)


@with_wrapper_options
def custom_linear_solve(
    matvec: Callable[[T], T],
    b: T,
    solve: Solver,
    transpose_solve: Solver | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
    **options: Unpack[TreeOptions],
) -> Any:
    """Solve linear equations of DAGs, with derivatives; as `jax.lax.custom_linear_solve`.

    Args:
        matvec: Linear; gives a DAG that is structured, and shared, as its argument is.
        b: The right-hand side, a DAG.
        solve: `solve(matvec, b)` gives the `x` for which `matvec(x)` is `b`.
        transpose_solve: The same for the transposed function, which derivatives backward need.
        symmetric: Whether that is the same function.
        has_aux: Whether `solve` returns a pair of the solution and something else, passed on.

    Raises:
        SharingError: A function changes what its argument shares.

    >>> halve = lambda p: pydag.dag_map(lambda x: x / 2, p)
    >>> double = lambda matvec, p: pydag.dag_map(lambda x: x * 2, p)
    >>> w = jnp.float32(2.0)
    >>> x = custom_linear_solve(halve, {"a": w, "b": w}, double, symmetric=True)
    >>> float(x["a"]), x["a"] is x["b"]
    (4.0, True)
    """
    unknown = _Unknown("custom_linear_solve's trees", "x", b, Options.given(options, TreeOptions))
    result = jax.lax.custom_linear_solve(
        unknown.function(matvec),
        unknown.dag,
        unknown.solver(solve, has_aux),
        None if transpose_solve is None else unknown.solver(transpose_solve, has_aux),
        symmetric,
        has_aux,
    )
    return _opened(result, has_aux)
