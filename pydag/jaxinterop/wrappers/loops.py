# SPDX-License-Identifier: Apache-2.0
"""Loops. An object in a carry before the body is one object after it."""

from collections.abc import Callable
from typing import Any, Unpack

import jax
import jax.numpy as jnp

from pydag.jaxinterop.calls.run import pair_of
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.options import with_wrapper_options
from pydag.jaxinterop.packed.packed import Packed, pack, parts_of, unpack
from pydag.jaxinterop.typed import R, S, SharingOptions, StaticOptions, T
from pydag.typing import Dag, Leaf

from .carried import CARRY, Carried, kept_body


@with_wrapper_options
def while_loop(
    cond_fun: Callable[..., Any],
    body_fun: Callable[..., R],
    init_val: Dag,
    **options: Unpack[StaticOptions],
) -> R:
    """Apply a function to a DAG as long as a condition holds; as `jax.lax.while_loop`.

    An object in the carry before the body is one object after it. Refs in the carry go in as their
    contents, and are written at the end.

    Args:
        cond_fun: Returns whether to go on.
        body_fun: Returns a DAG of the same structure.
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
    carry, start = _carried(init_val, "init_val", options, takes_contents=True)
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
        body_fun: Returns a DAG of the same structure and sharing.
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
    carry, start = _carried(init_val, "init_val", options, takes_contents=takes_contents)
    body = carry.body(body_fun, "fori", "i", CARRY)
    result: R = carry.finish(jax.lax.fori_loop(lower, upper, body, start, unroll=unroll))
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

    An object in the carry before the body is one object after it. The carry has one identity table,
    and `xs` another. An array to which only tuples lead is a separate array at each place, so
    `(z, z)` is a carry of two arrays. The body is traced once.

    Args:
        f: `f(carry, x)` returns a pair `(carry, y)`.
        init: The first carry.
        xs: A DAG of arrays with a leading axis of one size.
        length, reverse, unroll, _split_transpose: As in JAX.

    Returns:
        The last carry, and the `y`s, stacked.

    Raises:
        SharingError: The body returns two objects where the carry has one.
        TypeError, ValueError: The body returns a carry of another structure or type, or no pair.

    >>> w = jnp.float32(1.0)
    >>> double = lambda p, x: (pydag.jaxinterop.tree.map(lambda leaf: x * leaf, p), p["a"])
    >>> last, ys = scan(double, {"a": w, "b": w}, jnp.array([2.0, 3.0]))
    >>> last["a"] is last["b"], float(last["a"]), ys.tolist()
    (True, 6.0, [1.0, 2.0])
    """
    own = Options.of(options)
    carry, start = Carried.of(init, own, "init")
    over, rows = Carried.of(xs, own, "xs")
    own.check_selects((init, xs), ("init", "xs"))
    _check_axes(over, rows)
    refs = [*carry.refs.values(), *over.refs.values()]

    def make(called: Callable[..., Any]) -> Callable[..., Any]:
        def flat(values: Packed, row: Packed) -> Any:
            result = called(carry.build(values), over.build(row))
            after, y = pair_of(result, "the body of scan", "(carry, y)")
            y = _packed(y, refs, own, "result[1]")
            return carry.match(after, CARRY), y

        return flat

    key = "scan", carry.content, over.content
    body = kept_body(f, (CARRY, "x"), key, refs, own, make)
    found, ys = jax.lax.scan(
        body, start, rows, length, reverse, unroll, _split_transpose=_split_transpose
    )
    return carry.finish(found), unpack(ys, refs)


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
        xs: A DAG of arrays with a leading axis of one size.
        batch_size: As in JAX.

    >>> w = jnp.arange(3.0)
    >>> map(lambda p: p["a"] * p["b"], {"a": w, "b": w}).tolist()
    [0.0, 1.0, 4.0]
    """
    over, rows = _carried(xs, "xs", options)
    _check_axes(over, rows)
    refs = list(over.refs.values())

    def make(called: Callable[..., Any]) -> Callable[..., Any]:
        return lambda row: _packed(called(over.build(row)), refs, over.options, "result")

    body = kept_body(f, ("x",), ("map", over.content), refs, over.options, make)
    results: R = unpack(jax.lax.map(body, rows, batch_size=batch_size), refs)
    return results


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
        fn: Combines two DAGs to a DAG of the same structure and sharing.
        elems: A DAG of arrays.
        reverse, axis: As in JAX.

    >>> w = jnp.arange(4.0)
    >>> add = lambda p, q: pydag.jaxinterop.tree.map(lambda x, y: x + y, p, q)
    >>> out = associative_scan(add, {"a": w, "b": w})
    >>> out["a"] is out["b"], out["a"].tolist()
    (True, [0.0, 1.0, 3.0, 6.0])
    """
    over, start = _carried(elems, "elems", options)

    def make(called: Callable[..., Any]) -> Callable[..., Any]:
        return lambda a, b: over.match(called(over.build(a), over.build(b)), "the result")

    combine = kept_body(
        fn, ("a", "b"), ("associative", over.content), over.refs, over.options, make
    )
    found = jax.lax.associative_scan(combine, start, reverse=reverse, axis=axis)
    result: T = over.finish(found)
    return result


def _carried(
    tree: Dag, root: str, options: StaticOptions | SharingOptions, *, takes_contents: bool = False
) -> tuple[Carried, Any]:
    """A tree that goes through a loop alone, and what JAX carries first."""
    own = Options.of(options)
    found = Carried.of(tree, own, root, takes_contents=takes_contents)
    own.check_selects(tree, root)
    return found


def _packed(result: Dag, refs: list[Leaf], options: Options, root: str) -> Any:
    origins = {id(ref): number for number, ref in enumerate(refs)}
    return pack(result, options, origins, root=root)


def _check_axes(over: Carried, rows: Packed) -> None:
    """Checks that all arrays of `xs` have a leading axis, of one size."""
    paths = [path for i, path in enumerate(over.content.paths("xs")) if i not in over.refs]
    sizes: dict[int, str] = {}
    for path, array in zip(paths, parts_of(rows)[0], strict=True):
        if jnp.ndim(array) == 0:
            raise ValueError(f"scan got a value without a leading axis: {path}")
        sizes.setdefault(jnp.shape(array)[0], path)
    if len(sizes) > 1:
        text = ", ".join(f"{path} has size {size}" for size, path in sizes.items())
        raise ValueError(f"scan got values with different leading axis sizes: {text}")
