# SPDX-License-Identifier: Apache-2.0
"""`jax.lax.scan`, `jax.lax.associative_scan` and `jax.lax.map`, of DAGs."""

from collections.abc import Callable
from typing import Any, TypeVar, Unpack

import jax

from pydag.jaxinterop.boundary.held import anew
from pydag.jaxinterop.boundary.match import alike
from pydag.jaxinterop.messages.naming import Source, named, signature_like
from pydag.jaxinterop.messages.roots import place_text
from pydag.jaxinterop.notices.blame import blame_sizes, blaming_value
from pydag.jaxinterop.notices.lost_update import run_on
from pydag.jaxinterop.options import StaticOptions, TreeOptions, with_wrapper_options
from pydag.jaxinterop.packed.dag import InnerDag, Role, dag_of
from pydag.jaxinterop.refs.table import RefTable
from pydag.jaxinterop.static.untraced import Options

from .bodies import Get, Step, body_of, looped
from .checks import check_callable
from .coming_apart import with_the_sharing_that_holds
from .keep_sharing import keep_sharing

C = TypeVar("C")
R = TypeVar("R")
T = TypeVar("T")
Y = TypeVar("Y")


@with_wrapper_options
def scan(
    f: Callable[[Any, Any], tuple[C, Y]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
    **options: Unpack[StaticOptions],
) -> tuple[C, Y]:
    """Loop over the leading axis of arrays, carrying a DAG along; as `jax.lax.scan`.

    The body gets a carry and a slice of `xs`, shared as `init` and `xs` are, and returns a pair: a
    carry that is structured alike, and what is stacked up. What of the carry is one object before
    and after stays one; all else comes apart (`LostTieWarning` where modules do). Leaves that JAX
    can't trace stay as they are in the carry, and stand in each slice. What is both in `init` and
    in `xs` is two objects in the body.

    Args:
        f: The body.
        init: The first carry, a DAG.
        xs: A DAG of arrays with leading axes of one length.
        length: The number of rounds, where `xs` doesn't say it.
        reverse: Whether to go from the last slice to the first.
        unroll, _split_transpose: As in JAX.

    >>> w = jnp.float32(1.0)
    >>> double = lambda carry, _: (pydag.dag_map(lambda x: 2 * x, carry), carry["a"])
    >>> carry, seen = scan(double, {"a": w, "b": w}, length=3)
    >>> carry["a"] is carry["b"], float(carry["a"]), seen.tolist()
    (True, 8.0, [1.0, 2.0, 4.0])
    """
    check_callable("lax.scan: f argument should be a callable", f)
    how = Options.given(options, StaticOptions)
    f = anew(f, how.namespace)
    more: dict[str, Any] = {
        "length": length,
        "reverse": reverse,
        "unroll": unroll,
        "_split_transpose": _split_transpose,
    }
    how.check_static(init, xs)
    init, xs = how.separated((init, xs))

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
            carried = alike(what, "carry", carry, result[0], how, source, table)
            return carried, table.hide(dag_of(result[1], how, "result[1]"))

        return step

    _owner, body = body_of(f, ("scan", how), make, signature_like(f, "carry", "x"))
    scanned = dag_of(xs, how, "xs", Role.KEY)
    scanned._untraced.check_not_lazy("scanned", lambda accessor: place_text(accessor, "xs"))

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
            dag_of(init, how, "init", Role.KEY),
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


@with_wrapper_options
def associative_scan(
    fn: Callable[[Any, Any], Any],
    elems: T,
    reverse: bool = False,
    axis: int = 0,
    **options: Unpack[TreeOptions],
) -> T:
    """Scan with an associative function of two DAGs; as `jax.lax.associative_scan`.

    Args:
        fn: Gives a DAG of the same structure. What is one object before and after stays one.
        elems: A DAG of arrays.
        reverse: Whether to go from the end to the beginning.
        axis: The one to go along.

    >>> w = jnp.arange(4.0)
    >>> out = associative_scan(lambda p, q: pydag.dag_map(jnp.add, p, q), {"a": w, "b": w})
    >>> out["a"] is out["b"], out["a"].tolist()
    (True, [0.0, 1.0, 3.0, 6.0])
    """
    check_callable("lax.associative_scan: fn argument should be callable", fn)
    how = Options.given(options, TreeOptions)
    fn = anew(fn, how.namespace)
    source = Source(fn)
    signature = signature_like(fn, "one", "other")
    names = list(signature.parameters)

    def combined(one: InnerDag, other: InnerDag) -> InnerDag:
        return alike(
            "what associative_scan combines",
            "elems",
            one,
            run_on(fn, (one, other), names),
            how,
            source,
        )

    function = named(combined, source, signature)
    dag = dag_of(elems, how, "elems", Role.ARGUMENT)
    try:
        result: T = with_the_sharing_that_holds(
            lambda first: jax.lax.associative_scan(function, first, reverse, axis), dag, function
        ).tree
    except ValueError as error:
        if axis == 0:
            blame_sizes(error, dag.with_paths("elems"))
        raise
    return result


@with_wrapper_options
def map(
    f: Callable[[Any], R],
    xs: Any,
    *,
    batch_size: int | None = None,
    **options: Unpack[TreeOptions],
) -> R:
    """Apply a function to each slice of a DAG along leading axes; as `jax.lax.map`.

    Args:
        f: The function of a slice.
        xs: A DAG of arrays with leading axes of one length.
        batch_size: How many slices go through at once, by `vmap`.

    >>> w = jnp.arange(3.0)
    >>> map(lambda p: p["a"] * p["b"], {"a": w, "b": w}).tolist()
    [0.0, 1.0, 4.0]
    """

    def transformation(function: Any) -> Callable[..., Any]:
        return lambda call: jax.lax.map(function, call, batch_size=batch_size)

    how = Options.given(options, TreeOptions)
    try:
        results: R = keep_sharing(transformation, **options)(f)(xs)
    except ValueError as error:
        blame_sizes(error, dag_of(xs, how, "xs", Role.ARGUMENT).with_paths("xs"))
        raise
    return results
