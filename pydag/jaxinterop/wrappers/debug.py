# SPDX-License-Identifier: Apache-2.0
"""`jax.debug.callback` and `jax.debug.print`, of DAGs."""

import functools
from collections.abc import Callable
from typing import Any

import jax

from pydag.jaxinterop.boundary.call import Call, flat
from pydag.jaxinterop.messages.naming import Source
from pydag.jaxinterop.packed.dag import InnerDag, opened_by_jax, rebuilt
from pydag.jaxinterop.static.untraced import Options, take_apart

__all__ = ["callback", "print"]


def callback(
    callback: Callable[..., Any] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function for the sake of its side effects; as `jax.debug.callback`.

    Args:
        callback: Takes DAGs of arrays. Left out, a function is returned that takes it, and `args`.
        args, kwargs: What `callback` is called with.
        ordered, partitioned: As in JAX.

    >>> w, seen = jnp.float32(3.0), []
    >>> jax.jit(lambda w: callback(lambda p: seen.append(p["a"] is p["b"]), {"a": w, "b": w}))(w)
    >>> jax.effects_barrier()
    >>> seen
    [True]
    """
    options = {"ordered": ordered, "partitioned": partitioned}
    if callback is None:
        return _later(_call, "callback", args, kwargs, options)
    return _call(callback, *args, _options=options, **kwargs)


def _call(callback: Callable[..., Any], *args: Any, _options: Any, **kwargs: Any) -> None:
    function = flat(lambda: callback, Source(callback), lambda *_: None)
    jax.debug.callback(function, Call.of(args, kwargs, Options()), **_options)


def _later(function: Any, name: str, args: Any, kwargs: Any, options: Any) -> Any:
    """The function for the second call, where the first has options alone."""
    if args or kwargs:
        raise TypeError(f"debug.{name}() without its first argument takes options alone")
    return functools.partial(function, _options=options)


@opened_by_jax
class Shown(InnerDag):
    """A DAG as a format string sees it: as the tree itself."""

    __slots__ = ()

    def __format__(self, form: str) -> str:
        return format(self.tree, form)

    def __str__(self) -> str:
        return str(self.tree)

    def __repr__(self) -> str:
        return repr(self.tree)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tree, name)

    def __getitem__(self, key: Any) -> Any:
        return self.tree[key]


def _shown(tree: Any, root: str) -> Any:
    dag = rebuilt(*take_apart(tree, Options(), root), Shown)
    return tree if dag.spec.is_leaf() else dag


def print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> Any:
    """Print values while a compiled function runs; as `jax.debug.print`.

    Args:
        fmt: The text, with places such as `{x}`, `{0}` or `{model[layers]}`. Left out, a function
            is returned that takes it, and `args`.
        args, kwargs: What stands at the places: DAGs.
        ordered, partitioned, skip_format_check: As in JAX.

    >>> w = jnp.float32(3.0)
    >>> jax.jit(lambda w: print("{p} {p[a]}", p={"a": w, "b": w}))(w); jax.effects_barrier()
    {'a': Array(3., dtype=float32), 'b': Array(3., dtype=float32)} 3.0
    """
    options = {"ordered": ordered, "partitioned": partitioned}
    if skip_format_check:  # not every JAX has it
        options["skip_format_check"] = True
    if fmt is None:
        return _later(_print, "print", args, kwargs, options)
    return _print(fmt, *args, _options=options, **kwargs)


def _print(fmt: str, *args: Any, _options: Any, **kwargs: Any) -> None:
    jax.debug.print(
        fmt,
        *(_shown(arg, f"args[{i}]") for i, arg in enumerate(args)),
        **{name: _shown(arg, name) for name, arg in kwargs.items()},
        **_options,
    )
