# SPDX-License-Identifier: Apache-2.0
"""`while_loop` and `fori_loop`. What is one object in a carry before the body is one after it."""

from collections.abc import Callable
from typing import Any, Unpack

import jax

from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.options import with_wrapper_options
from pydag.jaxinterop.treatments.arguments import check_function
from pydag.jaxinterop.typed import R, StaticOptions
from pydag.typing import Dag

from .carried import CARRY, Carried


@with_wrapper_options
def while_loop(
    cond_fun: Callable[..., Any],
    body_fun: Callable[..., R],
    init_val: Dag,
    **options: Unpack[StaticOptions],
) -> R:
    """Apply a function to a DAG as long as a condition holds; as `jax.lax.while_loop`.

    What is one object before the body is one after it. Refs in the carry go in as their contents,
    and are written at the end.

    Args:
        cond_fun: Whether to go on.
        body_fun: Gives a DAG of the same structure.
        init_val: The first DAG.

    Raises:
        SharingError: The body returns two objects where the carry has one.
        TypeError, ValueError: The body returns a carry of another structure or type.

    >>> w = jnp.float32(1.0)
    >>> double = lambda p: pydag.dag_map(lambda x: 2 * x, p)
    >>> out = while_loop(lambda p: p["a"] < 5, double, {"a": w, "b": w})
    >>> out["a"] is out["b"], float(out["a"])
    (True, 8.0)
    """
    check_function(cond_fun)
    carry, start = _carried(body_fun, init_val, options, True)
    found = jax.lax.while_loop(
        carry.body(cond_fun, "while condition", CARRY, is_condition=True),
        carry.body(body_fun, "while body", CARRY),
        start,
    )
    result: R = carry.finish(found)
    return result


@with_wrapper_options
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[..., R],
    init_val: Dag,
    *,
    unroll: Any = None,
    **options: Unpack[StaticOptions],
) -> R:
    """Apply `body_fun(i, carry)` for each `i` from `lower` to `upper`; as `jax.lax.fori_loop`.

    Args:
        lower, upper: The first `i`, and the one after the last.
        body_fun: Gives a DAG of the same structure. What is one object before is one after it.
        init_val: The first DAG.
        unroll: As in JAX.

    Raises:
        SharingError, TypeError, ValueError: As `while_loop`.

    >>> w = jnp.float32(1.0)
    >>> out = fori_loop(0, 3, lambda i, p: pydag.dag_map(lambda x: x + i, p), {"a": w, "b": w})
    >>> out["a"] is out["b"], float(out["a"])
    (True, 4.0)
    """
    # With a bound that is traced it becomes a `while_loop`.
    takes_contents = any(isinstance(bound, jax.core.Tracer) for bound in (lower, upper))
    carry, start = _carried(body_fun, init_val, options, takes_contents)
    body = carry.body(body_fun, "fori", "i", CARRY)
    result: R = carry.finish(jax.lax.fori_loop(lower, upper, body, start, unroll=unroll))
    return result


def _carried(
    body_fun: Callable[..., Any], init_val: Dag, options: StaticOptions, takes_contents: bool
) -> tuple[Carried, Any]:
    check_function(body_fun)
    own = Options.of(options)
    carry, start = Carried.of(init_val, own, "init_val", takes_contents=takes_contents)
    own.check_selects(init_val, "init_val")
    return carry, start
