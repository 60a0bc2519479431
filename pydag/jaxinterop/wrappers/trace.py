# SPDX-License-Identifier: Apache-2.0
"""`eval_shape` and `make_jaxpr`: functions that are traced and not run."""

import types
from collections.abc import Callable
from typing import Any, Unpack

import jax

from pydag.jaxinterop.compiled.jit import jit
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.notices.source import Source, named, wraps
from pydag.jaxinterop.options import with_wrapper_options
from pydag.jaxinterop.treatments.arguments import check_function
from pydag.jaxinterop.typed import P, StaticOptions
from pydag.typing import Dag


@with_wrapper_options
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Dag:
    """The result of a function of DAGs with shapes and types for arrays; as `jax.eval_shape`.

    An object of the result is one `jax.ShapeDtypeStruct` at all of its places.

    Args:
        fun: The function. It is traced, and not run.
        args, kwargs: Its arguments. An object with `shape` and `dtype` may stand for an array.

    >>> w = jax.ShapeDtypeStruct((2, 3), jnp.float32)
    >>> out = eval_shape(lambda p: {"c": p["a"], "d": p["b"]}, {"a": w, "b": w})
    >>> out["c"].shape, out["c"] is out["d"]
    ((2, 3), True)
    """
    check_function(fun)
    return _traced(fun).eval_shape(*args, **kwargs)


def _traced(fun: Callable[..., Any], **options: Any) -> Any:
    """The function by `jit`. If it may hold a model it is a new one: no trace of it is kept."""
    own = fun
    if type(fun) is not types.FunctionType or hasattr(fun, "__wrapped__"):
        own = named(lambda *args, **kwargs: fun(*args, **kwargs), Source(fun))
    return jit(own, **options)


@with_wrapper_options
def make_jaxpr(
    fun: Callable[P, Any],
    static_argnums: Any = (),
    axis_env: Any = None,
    return_shape: bool = False,
    **options: Unpack[StaticOptions],
) -> Callable[P, Any]:
    """A function that gives the program of a function of DAGs; as `jax.make_jaxpr`.

    The program takes and returns each distinct array once.

    Args:
        fun: The function. It is traced, and not run.
        static_argnums: Arguments that are not opened.
        axis_env: As in JAX.
        return_shape: Whether the result is a pair of the program and the result of `eval_shape`.

    >>> w = jnp.ones(3)
    >>> len(make_jaxpr(lambda p: p["a"] + p["b"])({"a": w, "b": w}).in_avals)
    1
    """
    check_function(fun)
    numbers = None if static_argnums == () else static_argnums
    own = Options.of(options)._asdict()

    @wraps(fun)
    def make(*args: Any, **kwargs: Any) -> Any:
        compiled = _traced(fun, static_argnums=numbers, **own)
        found: list[Any] = []
        # JAX traces it, and knows the axes.
        jax.make_jaxpr(lambda: found.append(compiled.trace(*args, **kwargs)), axis_env=axis_env)()
        (traced,) = found
        return (traced.jaxpr, traced.out_info) if return_shape else traced.jaxpr

    return make
