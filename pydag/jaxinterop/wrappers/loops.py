# SPDX-License-Identifier: Apache-2.0
"""`while_loop` and `fori_loop`. What is one object in a carry before the body is one after it."""

from collections.abc import Callable
from typing import Any

import jax

from pydag.jaxinterop.calls.run import names_in_body, run_body
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.notices.source import Source, named
from pydag.jaxinterop.options import with_wrapper_options
from pydag.jaxinterop.packed.packed import Packed
from pydag.jaxinterop.refs.contents import threaded
from pydag.jaxinterop.treatments.arguments import check_function
from pydag.jaxinterop.typed import R
from pydag.typing import Dag, Identity, Where

from .carried import Carried, kept_body

_CARRY = "carry"


class _Contents:
    """A carry whose refs' contents are carried, too: JAX runs the body twice for a derivative."""

    def __init__(self, carried: Carried) -> None:
        self._carried = carried

    def start(self, packed: Packed) -> Any:
        """The arrays, and beside them the contents, if there are refs."""
        refs = self._carried.refs.values()
        return (packed, [ref[...] for ref in refs]) if refs else packed

    def _divided(self, values: Any) -> Any:
        return values if self._carried.refs else (values, [])

    def threaded(self, flat: Callable[..., Any], *, may_write: bool = True) -> Callable[..., Any]:
        """Of a function that gets refs last, one of a carry, which returns the new contents."""
        paths, refs = self._carried.content.paths("init_val"), self._carried.refs
        if not refs:
            return lambda *args: flat(*args, [])
        places = [paths[i] for i in refs]
        run = threaded(flat, list(refs.values()), places.__getitem__, may_write=may_write)
        return lambda *args: run(*args[:-1], *args[-1])

    def finish(self, values: Any) -> Dag:
        """The carry at last; the caller's refs are written."""
        packed, contents = self._divided(values)
        for ref, content in zip(self._carried.refs.values(), contents, strict=True):
            ref[...] = content
        return self._carried.build(packed)


@with_wrapper_options
def while_loop(
    cond_fun: Callable[..., Any],
    body_fun: Callable[..., R],
    init_val: Dag,
    *,
    namespace: str = "",
    identity: Identity = "all",
    static: Where | None = None,
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
    check_function(body_fun)
    options = Options(namespace, identity, static)
    carried, arrays = Carried.of(init_val, options, "init_val")
    options.check_selects(init_val, "init_val")
    carry, key = _Contents(carried), (carried.content, options.key())

    def condition(get: Callable[[], Any]) -> Any:
        source = Source(get())

        def flat(arrays: Any, refs: Any) -> Any:
            return run_body(get(), (carried.build(arrays, refs),), options, source, "carry")

        run = carry.threaded(named(flat, source), may_write=False)
        return named(lambda values: run(values), source, parameters=names_in_body(get(), "carry"))

    def body(get: Callable[[], Any]) -> Any:
        source = Source(get())

        def flat(arrays: Any, refs: Any) -> Any:
            tree = carried.build(arrays, refs)
            return carried.match(run_body(get(), (tree,), options, source, "carry"), _CARRY, refs)

        run = carry.threaded(named(flat, source))
        return named(lambda values: run(values), source, parameters=names_in_body(get(), "carry"))

    found = jax.lax.while_loop(
        kept_body(cond_fun, ("while condition", *key), carried.refs, condition),
        kept_body(body_fun, ("while body", *key), carried.refs, body),
        carry.start(carried.pack(arrays)),
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
    namespace: str = "",
    identity: Identity = "all",
    static: Where | None = None,
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
    check_function(body_fun)
    options = Options(namespace, identity, static)
    carried, arrays = Carried.of(init_val, options, "init_val")
    options.check_selects(init_val, "init_val")
    takes_contents = any(isinstance(bound, jax.core.Tracer) for bound in (lower, upper))
    carry, key = _Contents(carried), ("fori", carried.content, options.key(), takes_contents)

    def body(get: Callable[[], Any]) -> Any:
        source = Source(get())

        def flat(i: Any, arrays: Any, refs: Any = None) -> Any:
            tree = carried.build(arrays, refs)
            result = run_body(get(), (i, tree), options, source, "i", "carry")
            return carried.match(result, _CARRY, refs)

        run = carry.threaded(named(flat, source)) if takes_contents else flat
        parameters = names_in_body(get(), "i", "carry")
        return named(lambda i, values: run(i, values), source, parameters=parameters)

    flat = kept_body(body_fun, key, carried.refs, body)
    start: Any = carried.pack(arrays)
    if takes_contents:
        start = carry.start(start)
    found = jax.lax.fori_loop(lower, upper, flat, start, unroll=unroll)
    result: R = carry.finish(found) if takes_contents else carried.build(found)
    return result
