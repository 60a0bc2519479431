# SPDX-License-Identifier: Apache-2.0
"""`eval_shape` and `make_jaxpr`: functions that are traced and not run."""

from collections.abc import Callable
from typing import Any, Unpack

import jax

from pydag.jaxinterop.calls import Arguments
from pydag.jaxinterop.compiled import stages
from pydag.jaxinterop.compiled.function import CompiledFunction, Settings
from pydag.jaxinterop.compiled.kept import kept_function
from pydag.jaxinterop.content.content import PLAIN
from pydag.jaxinterop.content.options import CALL, Options
from pydag.jaxinterop.content.packed import pack
from pydag.jaxinterop.help import with_wrapper_options
from pydag.jaxinterop.naming import Source, wraps
from pydag.jaxinterop.treatments.arguments import Chosen, check_function
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
    return stages.eval_shape(_only_traced(fun, PLAIN, Chosen()), fun, *args, **kwargs)


@with_wrapper_options
def make_jaxpr(
    fun: Callable[P, Any],
    static_argnums: Any = (),
    axis_env: Any = None,
    return_shape: bool = False,
    **options: Unpack[StaticOptions],
) -> Callable[P, Any]:
    """A function that gives the program of a function of DAGs; as `jax.make_jaxpr`.

    It is JAX's jaxpr of the function of the distinct arrays, which it takes and returns once each.

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
    own = Options.of(options)
    numbers = None if static_argnums == () else static_argnums
    jax.jit(fun, static_argnums=numbers)  # JAX checks what it is given
    compiled = _only_traced(fun, own, Chosen.of(fun, numbers, None))

    @wraps(fun)
    def make(*args: Any, **kwargs: Any) -> Any:
        given: Any = stages.described(compiled.arranged(args, kwargs), own, CALL)
        call = Arguments(given[0], given[1], own)
        flat = call.function(
            lambda: fun, compiled.source, lambda result, refs: pack(result, own, refs)
        )
        jaxpr, shapes = jax.make_jaxpr(flat, axis_env=axis_env, return_shape=True)(*call.leaves)
        return (jaxpr, call.finish(shapes)) if return_shape else jaxpr

    return make


def _only_traced(fun: Callable[..., Any], options: Options, static: Chosen) -> CompiledFunction:
    """The function, apart from that which runs, so what it changes isn't lost."""

    def make(get: Callable[[], Callable[..., Any]]) -> CompiledFunction:
        source = Source(fun)
        source.is_run = False
        settings = Settings(static, Chosen(), Chosen(), (None, None), {})
        return CompiledFunction(get, source, options, settings)

    return kept_function(fun, ("traced", static), (), options, make)
