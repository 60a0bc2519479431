# SPDX-License-Identifier: Apache-2.0
"""`jax.experimental.io_callback` for functions of DAGs."""

from collections.abc import Callable
from typing import Any

from jax import experimental

from pydag.jaxinterop.boundary.call import Call
from pydag.jaxinterop.static.untraced import Options

from .callback import called_back, shape_of


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
