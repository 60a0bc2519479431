# SPDX-License-Identifier: Apache-2.0
"""`jax.lax`'s loops, of DAGs: what is carried keeps its structure and its sharing."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax

from pydag.jaxinterop.boundary.blame import blame_sizes, blaming_value
from pydag.jaxinterop.boundary.dag import InnerDag, keyed, to_dag
from pydag.jaxinterop.boundary.function_cache import cached_for_function
from pydag.jaxinterop.boundary.lost_update import run_on
from pydag.jaxinterop.boundary.match import alike
from pydag.jaxinterop.messages.naming import Source, named, signature_like
from pydag.jaxinterop.messages.roots import place_text
from pydag.jaxinterop.prefixes.treatments import COPIES, Question, treatments
from pydag.jaxinterop.static.untraced import Options
from pydag.typing import Identity, Where

from .coming_apart import with_the_sharing_that_holds

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

    def make(get: Get) -> Callable[..., Any]:
        source = Source(f)

        def body(carry: InnerDag, x: InnerDag) -> tuple[InnerDag, InnerDag]:
            with blaming_value(*carry._take_apart()):
                result = run_on(get(), (carry, x), ("carry", "x"))
            if not isinstance(result, tuple | list) or len(result) != 2:
                raise TypeError(
                    "the body of scan must return a pair (carry, y), a tuple of two, but it "
                    f"returned an object of type {type(result).__name__}\n"
                    f"  The body is {source.text}."
                )
            carried = alike("what scan carries", "carry", carry, result[0], options, source)
            return carried, to_dag(result[1], options, "result[1]")

        return named(body, source, signature_like(f, "carry", "x"))

    _owner, body = cached_for_function(f, ("scan", options), make)
    scanned = keyed(xs, "xs", options)
    scanned._untraced.check_not_lazy("scanned", lambda accessor: place_text(accessor, "xs"))
    try:
        carry, ys = with_the_sharing_that_holds(
            lambda first: jax.lax.scan(
                body,
                first,
                scanned,
                length=length,
                reverse=reverse,
                unroll=unroll,
                _split_transpose=_split_transpose,
            ),
            keyed(init, "init", options),
            body,
            scanned,
        )
    except ValueError as error:
        blame_sizes(error, scanned.with_paths("xs"))
        raise
    results: tuple[C, Y] = carry.tree, ys.tree
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

    def make_condition(get: Get) -> Callable[[InnerDag], Any]:
        def condition(carry: InnerDag) -> Any:
            with blaming_value(*carry._take_apart()):
                return run_on(get(), (carry,), ("carry",))

        return named(condition, Source(cond_fun), signature_like(cond_fun, "carry"))

    def make_body(get: Get) -> Callable[[InnerDag], InnerDag]:
        source = Source(body_fun)

        def body(carry: InnerDag) -> InnerDag:
            with blaming_value(*carry._take_apart()):
                result = run_on(get(), (carry,), ("carry",))
            return alike("what while_loop carries", "carry", carry, result, options, source)

        return named(body, source, signature_like(body_fun, "carry"))

    _owner, condition = cached_for_function(
        cond_fun, ("while_loop: cond_fun", options), make_condition
    )
    _owner_too, body = cached_for_function(body_fun, ("while_loop: body_fun", options), make_body)
    last: C = with_the_sharing_that_holds(
        lambda first: jax.lax.while_loop(condition, body, first),
        keyed(init_val, "init_val", options),
        body,
    ).tree
    return last


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

    def make(get: Get) -> Callable[[Any, InnerDag], InnerDag]:
        source = Source(body_fun)

        def body(i: Any, carry: InnerDag) -> InnerDag:
            with blaming_value(*carry._take_apart()):
                result = run_on(get(), (carry,), ("carry",), i)
            return alike("what fori_loop carries", "carry", carry, result, options, source)

        return named(body, source, signature_like(body_fun, "i", "carry"))

    _owner, body = cached_for_function(body_fun, ("fori_loop", options), make)
    last: C = with_the_sharing_that_holds(
        lambda first: jax.lax.fori_loop(lower, upper, body, first, unroll=unroll),
        keyed(init_val, "init_val", options),
        body,
    ).tree
    return last
