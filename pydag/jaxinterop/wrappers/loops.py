# SPDX-License-Identifier: Apache-2.0
"""`jax.lax.while_loop` and `jax.lax.fori_loop`, of DAGs: the carry keeps its structure."""

from collections.abc import Callable
from typing import Any, TypeVar, Unpack

import jax

from pydag.jaxinterop.boundary.held import anew
from pydag.jaxinterop.boundary.match import alike
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.messages.naming import Source, signature_like
from pydag.jaxinterop.notices.blame import blaming_value
from pydag.jaxinterop.notices.lost_update import run_on
from pydag.jaxinterop.options import StaticOptions, with_wrapper_options
from pydag.jaxinterop.packed.dag import InnerDag, Role, dag_of
from pydag.jaxinterop.refs.table import RefTable
from pydag.jaxinterop.static.untraced import Options

from .bodies import Get, Step, body_of, looped
from .checks import check_callable

C = TypeVar("C")
Y = TypeVar("Y")


@with_wrapper_options
def while_loop(
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], C],
    init_val: Any,
    **options: Unpack[StaticOptions],
) -> C:
    """Apply a function to a DAG as long as a condition holds; as `jax.lax.while_loop`.

    Args:
        cond_fun: Whether to go on.
        body_fun: Gives a DAG of the same structure. What is one object before and after stays one.
        init_val: The first DAG.

    >>> w = jnp.float32(1.0)
    >>> double = lambda p: pydag.dag_map(lambda x: 2 * x, p)
    >>> out = while_loop(lambda p: p["a"] < 5, double, {"a": w, "b": w})
    >>> out["a"] is out["b"], float(out["a"])
    (True, 8.0)
    """
    text = "lax.while_loop: body_fun and cond_fun arguments should be callable"
    check_callable(text, cond_fun, body_fun)
    how = Options.given(options, StaticOptions)
    cond_fun, body_fun = anew(cond_fun, how.namespace), anew(body_fun, how.namespace)
    how.check_static(init_val)

    def make_condition(get: Get) -> Step:
        source = Source(cond_fun)

        def step(table: RefTable, bare: InnerDag) -> Any:
            carry = table.show(bare)
            with blaming_value(*carry._take_apart()):
                found = run_on(get(), (carry,), ("carry",))
            if jax_private.around()[1]:
                raise ValueError(_condition_writes(source))
            return found

        return step

    def make_body(get: Get) -> Step:
        source = Source(body_fun)

        def step(table: RefTable, bare: InnerDag) -> InnerDag:
            carry = table.show(bare)
            with blaming_value(*carry._take_apart()):
                result = run_on(get(), (carry,), ("carry",))
            what = "what while_loop carries"
            return alike(what, "carry", carry, result, how, source, table)

        return step

    _owner, condition = body_of(
        cond_fun,
        ("while_loop: cond_fun", how),
        make_condition,
        signature_like(cond_fun, "carry"),
    )
    _owner_too, body = body_of(
        body_fun, ("while_loop: body_fun", how), make_body, signature_like(body_fun, "carry")
    )

    def of_contents(lent: list[Any], contents: list[Any], first: InnerDag) -> Any:
        goes_on, function = condition.of_contents, body.of_contents.for_jax(lent)

        def asked(carry: Any) -> Any:
            found = goes_on.lent(lent, *carry)[0]
            if goes_on.written:
                raise ValueError(_condition_writes(Source(cond_fun)))
            return found

        def of_pair(carry: Any) -> Any:
            carried, after = function(*carry)
            return after, carried

        after, last = jax.lax.while_loop(
            goes_on.made("while_loop", lent, asked),
            body.of_contents.made("while_loop", lent, of_pair),
            (contents, first),
        )
        return after, last, None

    last, _, _ = looped(
        dag_of(init_val, how, "init_val", Role.KEY),
        "init_val",
        [
            (Source(cond_fun).text, condition.of_contents),
            (Source(body_fun).text, body.of_contents),
        ],
        lambda first: (jax.lax.while_loop(condition.plain, body.plain, first), None),
        of_contents,
    )
    result: C = last.tree
    return result


def _condition_writes(source: Source) -> str:
    return (
        "the condition of while_loop writes into a ref, and may only read\n"
        f"  The condition is {source.text}."
    )


@with_wrapper_options
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], C],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
    **options: Unpack[StaticOptions],
) -> C:
    """Apply `body_fun(i, carry)` for each `i` from `lower` to `upper`; as `jax.lax.fori_loop`.

    Args:
        lower, upper: The first `i`, and the one after the last.
        body_fun: Gives a DAG of the same structure. What is one object before and after stays one.
        init_val: The first DAG.
        unroll: As in JAX.

    >>> w = jnp.float32(1.0)
    >>> out = fori_loop(0, 3, lambda i, p: pydag.dag_map(lambda x: x + i, p), {"a": w, "b": w})
    >>> out["a"] is out["b"], float(out["a"])
    (True, 4.0)
    """
    check_callable("lax.fori_loop: body_fun argument should be callable", body_fun)
    how = Options.given(options, StaticOptions)
    body_fun = anew(body_fun, how.namespace)
    how.check_static(init_val)

    def make(get: Get) -> Step:
        source = Source(body_fun)

        def step(table: RefTable, i: Any, bare: InnerDag) -> InnerDag:
            carry = table.show(bare)
            with blaming_value(*carry._take_apart()):
                result = run_on(get(), (carry,), ("carry",), i)
            what = "what fori_loop carries"
            return alike(what, "carry", carry, result, how, source, table)

        return step

    signature = signature_like(body_fun, "i", "carry")
    _owner, body = body_of(body_fun, ("fori_loop", how), make, signature)

    def of_contents(lent: list[Any], contents: list[Any], first: InnerDag) -> Any:
        function = body.of_contents.for_jax(lent)

        def of_pair(i: Any, pair: Any) -> Any:
            carried, after = function(pair[0], i, pair[1])
            return after, carried

        again = body.of_contents.made("fori_loop", lent, of_pair)
        after, last = jax.lax.fori_loop(lower, upper, again, (contents, first), unroll=unroll)
        return after, last, None

    last, _, _ = looped(
        dag_of(init_val, how, "init_val", Role.KEY),
        "init_val",
        [(Source(body_fun).text, body.of_contents)],
        lambda first: (jax.lax.fori_loop(lower, upper, body.plain, first, unroll=unroll), None),
        of_contents,
    )
    result: C = last.tree
    return result
