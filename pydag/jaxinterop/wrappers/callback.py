# SPDX-License-Identifier: Apache-2.0
"""`jax.pure_callback` and `jax.experimental.io_callback` for functions of DAGs."""

import copy
from collections.abc import Callable
from typing import Any

import jax
from jax import experimental

import pydag._core as _core
from pydag.jaxinterop.boundary.call import Call
from pydag.jaxinterop.boundary.described import described
from pydag.jaxinterop.messages.naming import Source, name_of, named
from pydag.jaxinterop.packed.dag import InnerDag, Role, dag_of, rebuilt
from pydag.jaxinterop.static.untraced import Options, Untraced


class _CalledBack:
    """The function that JAX calls back. Two are equal where JAX need not compile for the second.

    Args:
        callback: The user's.
        shape: What its result is like.
    """

    def __init__(self, callback: Callable[..., Any], shape: Untraced) -> None:
        self.callback, self.shape = callback, shape
        named(self, Source(callback))

    def __call__(self, call: Call) -> InnerDag:
        result = call.run(self.callback)
        leaves = self.shape.match(result, f"what {name_of(self.callback)} returned", "result")
        return rebuilt(self.shape, leaves, InnerDag)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _CalledBack)
            and self.callback == other.callback
            and self.shape == other.shape
        )

    def __hash__(self) -> int:
        return hash((self.callback, self.shape))


def called_back(callback: Callable[..., Any], shape: InnerDag) -> Callable[[Call], InnerDag]:
    """The function that JAX calls back, whose result is like `shape`."""
    function = _CalledBack(callback, shape._untraced)
    try:
        hash(function)
    except TypeError:  # JAX can only take it for another one each time
        return lambda call: function(call)
    return function


def shape_of(result_shape_dtypes: Any) -> InnerDag:
    """What a callback returns, as JAX wants it: all that has a shape and a dtype is an array."""
    options = Options()
    root = "result_shape_dtypes"
    shapes = described(_separated(result_shape_dtypes), options, root)
    return dag_of(shapes, options, root, Role.ARGUMENT)


def _separated(tree: Any) -> Any:
    """The tree, with a `ShapeDtypeStruct` of its own at each place that has one.

    It says what is there, not which array: one is often made for all arrays of a shape.
    """
    leaves, spec = _core.flatten(tree, identity="nodes")
    if not any(type(leaf) is jax.ShapeDtypeStruct for leaf in leaves):
        return tree
    copies = [copy.copy(x) if type(x) is jax.ShapeDtypeStruct else x for x in leaves]
    return _core.unflatten(spec, copies)


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Call a Python function without side effects from a compiled one; as `jax.pure_callback`.

    Args:
        callback: Takes and returns DAGs of arrays.
        result_shape_dtypes: What it returns, with `jax.ShapeDtypeStruct`s for arrays, or whatever
            else has a shape and a dtype. An array at two places stands for one array at both; a
            `ShapeDtypeStruct` is one array for each place.
        args, kwargs: What `callback` is called with.
        sharding: On which device it runs, as in JAX.
        vmap_method: How it is mapped by `vmap`, as in JAX.

    >>> w = jnp.float32(3.0)
    >>> out = pure_callback(lambda p: [p["a"] * p["b"]], [w], {"a": w, "b": w})
    >>> float(out[0])
    9.0
    """
    options = Options()
    shape = shape_of(result_shape_dtypes)
    call = Call.of(args, kwargs, options)
    return jax.pure_callback(
        called_back(callback, shape), shape, call, sharding=sharding, vmap_method=vmap_method
    ).tree


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function with side effects from a compiled one.

    As `jax.experimental.io_callback`.

    Args:
        callback: Takes and returns DAGs of arrays.
        result_shape_dtypes: What it returns, with `jax.ShapeDtypeStruct`s for arrays, or whatever
            else has a shape and a dtype. An array at two places stands for one array at both; a
            `ShapeDtypeStruct` is one array for each place.
        args, kwargs: What `callback` is called with.
        sharding: On which device it runs, as in JAX.
        ordered: Whether such calls happen in the order of the program.

    >>> w, seen = jnp.float32(3.0), []
    >>> def look(p):
    ...     seen.append(p["a"] is p["b"])
    ...     return p
    >>> out = io_callback(look, {"a": w, "b": w}, {"a": w, "b": w})
    >>> seen, out["a"] is out["b"]
    ([True], True)
    """
    shape = shape_of(result_shape_dtypes)
    return experimental.io_callback(
        called_back(callback, shape),
        shape,
        Call.of(args, kwargs, Options()),
        sharding=sharding,
        ordered=ordered,
    ).tree
