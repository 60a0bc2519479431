# SPDX-License-Identifier: Apache-2.0
"""Loops. The carry keeps its sharing, as far as the body does."""

import functools
from collections.abc import Callable
from typing import Any, Unpack, cast

import jax

from pydag.jaxinterop.calls import pair_of
from pydag.jaxinterop.content.content import Content, take_apart
from pydag.jaxinterop.content.leaves import is_like_array
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.packed import Packed, pack, packed_of, parts_of, unpack
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.help import with_wrapper_options
from pydag.jaxinterop.typed import R, S, SharingOptions, StaticOptions, T
from pydag.typing import Dag

from .carried import CARRY, Carried, carried


@with_wrapper_options
def while_loop(
    cond_fun: Callable[..., Any],
    body_fun: Callable[..., R],
    init_val: Dag,
    **options: Unpack[StaticOptions],
) -> R:
    """Apply a function to a DAG as long as a condition holds; as `jax.lax.while_loop`.

    An object in the carry is one object in the body. If the body makes two of it, the loop carries
    two, as in Python from the second step on; only then is the body traced twice. Refs in the carry
    go in as their contents, and are written at the end.

    Args:
        cond_fun: Returns whether to go on.

    Raises:
        TypeError, ValueError: The body returns a carry of another structure or type, or another
            ref.

    >>> w = jnp.float32(1.0)
    >>> double = lambda p: pydag.dag_map(lambda x: 2 * x, p)
    >>> out = while_loop(lambda p: p["a"] < 5, double, {"a": w, "b": w})
    >>> out["a"] is out["b"], float(out["a"])
    (True, 8.0)
    """
    own = Options.of(options)

    def run(carry: Carried, start: Any) -> Any:
        condition = carry.body(cond_fun, "while condition", CARRY, finish=lambda flag: flag)
        body = carry.body(body_fun, "while body", CARRY)
        return carry.finish(jax.lax.while_loop(condition, body, start))

    return cast(R, carried(body_fun, "while", init_val, "init_val", own, run, takes_contents=True))


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
        unroll: As in JAX.

    >>> w = jnp.float32(1.0)
    >>> out = fori_loop(0, 3, lambda i, p: pydag.dag_map(lambda x: x + i, p), {"a": w, "b": w})
    >>> out["a"] is out["b"], float(out["a"])
    (True, 4.0)
    """
    # With a bound that is traced it becomes a `while_loop`.
    takes_contents = any(isinstance(bound, jax.core.Tracer) for bound in (lower, upper))
    own = Options.of(options)

    def run(carry: Carried, start: Any) -> Any:
        body = carry.body(body_fun, "fori", "i", CARRY)
        return carry.finish(jax.lax.fori_loop(lower, upper, body, start, unroll=unroll))

    result: R = carried(
        body_fun, "fori", init_val, "init_val", own, run, takes_contents=takes_contents
    )
    return result


@with_wrapper_options
def scan(
    f: Callable[[Any, Any], tuple[R, S]],
    init: Dag,
    xs: Dag = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: Any = 1,
    _split_transpose: bool = False,
    **options: Unpack[StaticOptions],
) -> tuple[R, S]:
    """Loop over the leading axis of arrays, carrying a DAG along; as `jax.lax.scan`.

    The carry comes apart as in `while_loop`. It has one identity table, and `xs` another. An array
    to which only tuples lead is a separate array at each place, so `(z, z)` is a carry of two
    arrays. A ref in `xs` is a ref of one row in the body, which may write into it.

    Args:
        f: `f(carry, x)` returns a pair `(carry, y)`.
        init: The first carry.
        length, reverse, unroll, _split_transpose: As in JAX.

    Returns:
        The last carry, and the `y`s, stacked.

    Raises:
        TypeError, ValueError: As `while_loop`; or the body returns no pair.

    >>> w = jnp.float32(1.0)
    >>> double = lambda p, x: (pydag.jaxinterop.tree.map(lambda leaf: x * leaf, p), p["a"])
    >>> last, ys = scan(double, {"a": w, "b": w}, jnp.array([2.0, 3.0]))
    >>> last["a"] is last["b"], float(last["a"]), ys.tolist()
    (True, 6.0, [1.0, 2.0])
    """
    own = Options.of(options)
    own.check_selects((init, xs), ("init", "xs"))
    over, rows = _rows(xs, own)

    def run(carry: Carried, start: Any) -> tuple[Any, Any]:
        def both(result: Any) -> tuple[Packed, Any]:
            after, y = pair_of(result, "the body of scan", "(carry, y)")
            y = pack(y, own, carry.refs.origins, root="result[1]")
            return carry.match(after, CARRY), y

        body = carry.body(f, ("scan", over), CARRY, "x", finish=both)
        found, ys = jax.lax.scan(
            body, start, rows, length, reverse, unroll, _split_transpose=_split_transpose
        )
        return carry.finish(found), unpack(ys, carry.refs)

    return carried(f, ("scan", over), init, "init", own, run, beside=parts_of(rows)[0])


@with_wrapper_options
def map(  # JAX's name
    f: Callable[[Any], R],
    xs: Dag,
    *,
    batch_size: int | None = None,
    **options: Unpack[StaticOptions],
) -> R:
    """Apply a function to each slice of a DAG along leading axes; as `jax.lax.map`.

    Args:
        f: The function, of a slice.
        batch_size: As in JAX.

    >>> w = jnp.arange(3.0)
    >>> map(lambda p: p["a"] * p["b"], {"a": w, "b": w}).tolist()
    [0.0, 1.0, 4.0]
    """
    own = Options.of(options)
    own.check_selects(xs, "xs")
    over, rows = _rows(xs, own)

    leaves = [None if jax_private.is_ref(x) else x for x in parts_of(rows)[0]]  # refs are rows, too
    row = Carried(over, leaves, own, takes_contents=False)
    body = row.body(f, "map", "x", finish=lambda result: pack(result, own, {}))
    return cast(R, unpack(jax.lax.map(body, rows, batch_size=batch_size), ()))


@with_wrapper_options
def associative_scan(
    fn: Callable[[Any, Any], Any],
    elems: T,
    reverse: bool = False,
    axis: int = 0,
    **options: Unpack[SharingOptions],
) -> T:
    """Scan with an associative function of two DAGs; as `jax.lax.associative_scan`.

    Args:
        fn: Combines two DAGs to a DAG of the same structure. What it makes two of is two in both.
        elems: A DAG of arrays.
        reverse, axis: As in JAX.

    >>> w = jnp.arange(4.0)
    >>> add = lambda p, q: pydag.jaxinterop.tree.map(lambda x, y: x + y, p, q)
    >>> out = associative_scan(add, {"a": w, "b": w})
    >>> out["a"] is out["b"], out["a"].tolist()
    (True, [0.0, 1.0, 3.0, 6.0])
    """
    own = Options.of(options)

    def run(over: Carried, start: Any) -> Any:
        combined = functools.partial(over.match, root="the result")
        combine = over.body(fn, "associative", "a", "b", finish=combined)
        found = jax.lax.associative_scan(combine, start, reverse=reverse, axis=axis)
        return over.finish(found)

    return cast(T, carried(fn, "associative", elems, "elems", own, run))


def _rows(xs: Dag, options: Options) -> tuple[Content, Packed]:
    """What is scanned: its content, and its arrays and refs, which must have rows of one number."""
    leaves, content = take_apart(xs, options, "xs", by_tuples=True)
    sizes: dict[int, str] = {}
    for path, leaf in zip(content.paths("xs"), leaves, strict=True):
        if not is_like_array(leaf):
            continue  # JAX knows its axes
        shape = jax.typeof(leaf).shape
        if not shape:
            raise ValueError(f"scan got a value without a leading axis: {path}")
        sizes.setdefault(shape[0], path)
    if len(sizes) > 1:
        text = ", ".join(f"{path} has size {size}" for size, path in sizes.items())
        raise ValueError(f"scan got values with different leading axis sizes: {text}")
    return content, packed_of(content, leaves, None)
