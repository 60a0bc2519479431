# SPDX-License-Identifier: Apache-2.0
"""`jax.lax`'s loops, of DAGs: what is carried keeps its structure and its sharing."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax

from pydag.jaxinterop import jax_private
from pydag.jaxinterop.boundary.blame import blame_sizes, blaming_value
from pydag.jaxinterop.boundary.dag import InnerDag, keyed, to_dag
from pydag.jaxinterop.boundary.lost_update import run_on
from pydag.jaxinterop.boundary.match import alike
from pydag.jaxinterop.messages.naming import Source, signature_like
from pydag.jaxinterop.messages.roots import place_text
from pydag.jaxinterop.prefixes.treatments import COPIES, Question, treatments
from pydag.jaxinterop.refs.table import RefTable
from pydag.jaxinterop.static.untraced import Options
from pydag.typing import Identity, Where

from .bodies import Step, body_of, looped

C = TypeVar("C")
Y = TypeVar("Y")

Get = Callable[[], Callable[..., Any]]

_SCAN = Question("scan", str, f"Carry both or scan over both: give one of them a copy.\n  {COPIES}")


def scan(
    f: Callable[[Any, Any], tuple[C, Y]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
    *,
    namespace: str = "",
    identity: Identity = "all",
    static: Where | None = None,
) -> tuple[C, Y]:
    """Loop over the leading axis of arrays, carrying a DAG along; as `jax.lax.scan`.

    The body gets a carry and a slice of `xs`, shared as `init` and `xs` are, and returns a pair: a
    carry that is structured alike, and what is stacked up. What of the carry is one object before
    and after stays one; all else comes apart (`LostTieWarning` where modules do). Leaves that JAX
    can't trace stay as they are in the carry, and stand in each slice.

    Args:
        f: The body.
        init: The first carry, a DAG.
        xs: A DAG of arrays with leading axes of one length.
        length: The number of rounds, where `xs` doesn't say it.
        reverse: Whether to go from the last slice to the first.
        unroll, _split_transpose: As in JAX.
        namespace: Not JAX's. Classes registered in this namespace are nodes, too.
        identity: Not JAX's. "nodes": only containers and modules have identity, arrays don't.
        static: Not JAX's. Which leaves are static, not traced: a predicate, a class or several, a
            pattern of the path, a prefix of booleans, or a list of such, as in `pydag.dag_mask`.

    Raises:
        SharingError: An array in a container is both carried and scanned.

    >>> w = jnp.float32(1.0)
    >>> double = lambda carry, _: (pydag.dag_map(lambda x: 2 * x, carry), carry["a"])
    >>> carry, seen = scan(double, {"a": w, "b": w}, length=3)
    >>> carry["a"] is carry["b"], float(carry["a"]), seen.tolist()
    (True, 8.0, [1.0, 2.0, 4.0])
    """
    if not callable(f):
        raise TypeError(f"the body of scan must be a function, not of type {type(f).__name__}")
    options = Options.of(namespace, identity, static)
    options.check_static(init, xs)
    init, xs = options.separated((init, xs))
    if options.flatten((init, xs), ("init", "xs"))[1].num_shared:
        treatments({"init": init, "xs": xs}, {"init": "carried", "xs": "scanned"}, _SCAN, options)

    def make(get: Get) -> Step:
        source = Source(f)

        def step(table: RefTable, bare: InnerDag, x: InnerDag) -> tuple[InnerDag, InnerDag]:
            carry = table.show(bare)
            with blaming_value(*carry._take_apart()):
                result = run_on(get(), (carry, x), ("carry", "x"))
            if not isinstance(result, tuple | list) or len(result) != 2:
                raise TypeError(
                    "the body of scan must return a pair (carry, y), a tuple of two, but it "
                    f"returned an object of type {type(result).__name__}\n"
                    f"  The body is {source.text}."
                )
            what = "what scan carries"
            carried = alike(what, "carry", carry, result[0], options, source, table)
            return carried, table.hide(to_dag(result[1], options, "result[1]"))

        return step

    _owner, body = body_of(f, ("scan", options), make, signature_like(f, "carry", "x"))
    scanned = keyed(xs, "xs", options)
    scanned._untraced.check_not_lazy("scanned", lambda accessor: place_text(accessor, "xs"))
    more: dict[str, Any] = {
        "length": length,
        "reverse": reverse,
        "unroll": unroll,
        "_split_transpose": _split_transpose,
    }

    def of_contents(lent: list[Any], contents: list[Any], first: InnerDag) -> Any:
        function = body.of_contents.for_jax(lent)

        def of_pair(carry: Any, x: InnerDag) -> Any:
            (carried, y), after = function(*carry, x)
            return (after, carried), y

        (after, last), ys = jax.lax.scan(
            body.of_contents.made("scan", lent, of_pair), (contents, first), scanned, **more
        )
        return after, last, ys

    try:
        carry, ys, table = looped(
            keyed(init, "init", options),
            "init",
            [(Source(f).text, body.of_contents)],
            lambda first: jax.lax.scan(body.plain, first, scanned, **more),
            of_contents,
            scanned,
        )
    except ValueError as error:
        blame_sizes(error, scanned.with_paths("xs"))
        raise
    results: tuple[C, Y] = carry.tree, table.show(ys).tree
    return results


def while_loop(
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], C],
    init_val: Any,
    *,
    namespace: str = "",
    identity: Identity = "all",
    static: Where | None = None,
) -> C:
    """Apply a function to a DAG as long as a condition holds; as `jax.lax.while_loop`.

    Args:
        cond_fun: Whether to go on.
        body_fun: Gives a DAG of the same structure. What is one object before and after stays one.
        init_val: The first DAG.
        namespace: Not JAX's. Classes registered in this namespace are nodes, too.
        identity: Not JAX's. "nodes": only containers and modules have identity, arrays don't.
        static: Not JAX's. Which leaves are static, not traced: a predicate, a class or several, a
            pattern of the path, a prefix of booleans, or a list of such, as in `pydag.dag_mask`.

    >>> w = jnp.float32(1.0)
    >>> double = lambda p: pydag.dag_map(lambda x: 2 * x, p)
    >>> out = while_loop(lambda p: p["a"] < 5, double, {"a": w, "b": w})
    >>> out["a"] is out["b"], float(out["a"])
    (True, 8.0)
    """
    options = Options.of(namespace, identity, static)
    options.check_static(init_val)

    def make_condition(get: Get) -> Step:
        def step(table: RefTable, bare: InnerDag) -> Any:
            carry = table.show(bare)
            with blaming_value(*carry._take_apart()):
                found = run_on(get(), (carry,), ("carry",))
            if jax_private.around()[1]:
                raise ValueError(_condition_writes(Source(cond_fun)))
            return found

        return step

    def make_body(get: Get) -> Step:
        source = Source(body_fun)

        def step(table: RefTable, bare: InnerDag) -> InnerDag:
            carry = table.show(bare)
            with blaming_value(*carry._take_apart()):
                result = run_on(get(), (carry,), ("carry",))
            what = "what while_loop carries"
            return alike(what, "carry", carry, result, options, source, table)

        return step

    _owner, condition = body_of(
        cond_fun,
        ("while_loop: cond_fun", options),
        make_condition,
        signature_like(cond_fun, "carry"),
    )
    _owner_too, body = body_of(
        body_fun, ("while_loop: body_fun", options), make_body, signature_like(body_fun, "carry")
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
        keyed(init_val, "init_val", options),
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


def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], C],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
    namespace: str = "",
    identity: Identity = "all",
    static: Where | None = None,
) -> C:
    """Apply `body_fun(i, carry)` for each `i` from `lower` to `upper`; as `jax.lax.fori_loop`.

    Args:
        lower, upper: The first `i`, and the one after the last.
        body_fun: Gives a DAG of the same structure. What is one object before and after stays one.
        init_val: The first DAG.
        unroll: As in JAX.
        namespace: Not JAX's. Classes registered in this namespace are nodes, too.
        identity: Not JAX's. "nodes": only containers and modules have identity, arrays don't.
        static: Not JAX's. Which leaves are static, not traced: a predicate, a class or several, a
            pattern of the path, a prefix of booleans, or a list of such, as in `pydag.dag_mask`.

    >>> w = jnp.float32(1.0)
    >>> out = fori_loop(0, 3, lambda i, p: pydag.dag_map(lambda x: x + i, p), {"a": w, "b": w})
    >>> out["a"] is out["b"], float(out["a"])
    (True, 4.0)
    """
    options = Options.of(namespace, identity, static)
    options.check_static(init_val)

    def make(get: Get) -> Step:
        source = Source(body_fun)

        def step(table: RefTable, i: Any, bare: InnerDag) -> InnerDag:
            carry = table.show(bare)
            with blaming_value(*carry._take_apart()):
                result = run_on(get(), (carry,), ("carry",), i)
            what = "what fori_loop carries"
            return alike(what, "carry", carry, result, options, source, table)

        return step

    signature = signature_like(body_fun, "i", "carry")
    _owner, body = body_of(body_fun, ("fori_loop", options), make, signature)

    def of_contents(lent: list[Any], contents: list[Any], first: InnerDag) -> Any:
        function = body.of_contents.for_jax(lent)

        def of_pair(i: Any, pair: Any) -> Any:
            carried, after = function(pair[0], i, pair[1])
            return after, carried

        again = body.of_contents.made("fori_loop", lent, of_pair)
        after, last = jax.lax.fori_loop(lower, upper, again, (contents, first), unroll=unroll)
        return after, last, None

    last, _, _ = looped(
        keyed(init_val, "init_val", options),
        "init_val",
        [(Source(body_fun).text, body.of_contents)],
        lambda first: (jax.lax.fori_loop(lower, upper, body.plain, first, unroll=unroll), None),
        of_contents,
    )
    result: C = last.tree
    return result
