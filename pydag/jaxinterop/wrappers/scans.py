# SPDX-License-Identifier: Apache-2.0
"""`jax.lax.associative_scan` and `jax.lax.map`, of DAGs."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax

from pydag.jaxinterop.boundary.blame import blame_sizes
from pydag.jaxinterop.boundary.dag import InnerDag, argument
from pydag.jaxinterop.boundary.lost_update import run_on
from pydag.jaxinterop.boundary.match import alike
from pydag.jaxinterop.messages.naming import Source, named, signature_like
from pydag.jaxinterop.static.untraced import Options
from pydag.typing import Identity

from .coming_apart import with_the_sharing_that_holds
from .keep_sharing import keep_sharing

T = TypeVar("T")
R = TypeVar("R")


def associative_scan(
    fn: Callable[[Any, Any], Any],
    elems: T,
    reverse: bool = False,
    axis: int = 0,
    *,
    namespace: str = "",
    identity: Identity = "all",
) -> T:
    """Scan with an associative function of two DAGs; as `jax.lax.associative_scan`.

    Args:
        fn: Gives a DAG of the same structure. What is one object before and after stays one.
        elems: A DAG of arrays.
        reverse: Whether to go from the end to the beginning.
        axis: The one to go along.
        namespace: Not JAX's. Classes registered in this namespace are nodes, too.
        identity: Not JAX's. "nodes": only containers and modules have identity, arrays don't.

    >>> w = jnp.arange(4.0)
    >>> out = associative_scan(lambda p, q: pydag.dag_map(jnp.add, p, q), {"a": w, "b": w})
    >>> out["a"] is out["b"], out["a"].tolist()
    (True, [0.0, 1.0, 3.0, 6.0])
    """
    options, source = Options(namespace, identity), Source(fn)
    signature = signature_like(fn, "one", "other")
    names = list(signature.parameters)

    def combined(one: InnerDag, other: InnerDag) -> InnerDag:
        return alike(
            "what associative_scan combines",
            "elems",
            one,
            run_on(fn, (one, other), names),
            options,
            source,
        )

    function = named(combined, source, signature)
    dag = argument(elems, options, "elems")
    try:
        result: T = with_the_sharing_that_holds(
            lambda first: jax.lax.associative_scan(function, first, reverse, axis), dag, function
        ).tree
    except ValueError as error:
        if axis == 0:
            blame_sizes(error, dag.with_paths("elems"))
        raise
    return result


def map(
    f: Callable[[Any], R],
    xs: Any,
    *,
    batch_size: int | None = None,
    namespace: str = "",
    identity: Identity = "all",
) -> R:
    """Apply a function to each slice of a DAG along leading axes; as `jax.lax.map`.

    Args:
        f: The function of a slice.
        xs: A DAG of arrays with leading axes of one length.
        batch_size: How many slices go through at once, by `vmap`.
        namespace: Not JAX's. Classes registered in this namespace are nodes, too.
        identity: Not JAX's. "nodes": only containers and modules have identity, arrays don't.

    >>> w = jnp.arange(3.0)
    >>> map(lambda p: p["a"] * p["b"], {"a": w, "b": w}).tolist()
    [0.0, 1.0, 4.0]
    """

    def transformation(function: Any) -> Callable[..., Any]:
        return lambda call: jax.lax.map(function, call, batch_size=batch_size)

    options = Options(namespace, identity)
    try:
        results: R = keep_sharing(transformation, **options._asdict())(f)(xs)
    except ValueError as error:
        blame_sizes(error, argument(xs, options, "xs").with_paths("xs"))
        raise
    return results
