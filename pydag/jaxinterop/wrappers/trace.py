# SPDX-License-Identifier: Apache-2.0
"""`eval_shape` and `make_jaxpr`: functions that are traced and not run."""

import contextlib
import inspect
import types
from collections.abc import Callable
from typing import Any, Unpack

import jax

from pydag.jaxinterop.calls.call import Call
from pydag.jaxinterop.compiled.function import CompiledFunction, Settings
from pydag.jaxinterop.compiled.jit import jit
from pydag.jaxinterop.compiled.kept import kept_for
from pydag.jaxinterop.compiled.models import holder_of_model
from pydag.jaxinterop.compiled.stages import described
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.paths import CALL
from pydag.jaxinterop.notices.source import Source, named, wraps
from pydag.jaxinterop.options import with_wrapper_options
from pydag.jaxinterop.packed.packed import pack
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

    def make(get: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
        """The function, apart from that which runs."""
        own: Any = named(lambda *args, **kwargs: get()(*args, **kwargs), Source(fun))
        own.is_only_traced = True  # so what it changes isn't lost
        with contextlib.suppress(TypeError, ValueError):
            own.__signature__ = inspect.signature(fun)
        return own  # type: ignore[no-any-return]  # it is `named`

    if type(fun) is types.FunctionType and holder_of_model(fun, "") is None:
        own = kept_for(fun, "traced", make)
    else:  # a new function, so that no trace is kept; `jit` doesn't look into a tuple
        held = (fun,)
        own = make(lambda: held[0])
    shapes: Any = jit(own).eval_shape(*args, **kwargs)
    return shapes


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
    own, source = Options.of(options), Source(fun)
    source.is_run = False  # so what it changes isn't lost
    numbers = None if static_argnums == () else static_argnums
    jax.jit(fun, static_argnums=numbers)  # JAX checks what it is given
    static = Settings(Chosen.of(fun, numbers, None), Chosen(), Chosen(), (None, None), {})
    compiled = CompiledFunction(lambda: fun, source, own, static)

    @wraps(fun)
    def make(*args: Any, **kwargs: Any) -> Any:
        given: Any = described(compiled.arranged(args, kwargs), own, CALL)
        call = Call(given[0], given[1], own)
        flat = call.function(lambda: fun, source, lambda result, refs: pack(result, own, refs))
        jaxpr, shapes = jax.make_jaxpr(flat, axis_env=axis_env, return_shape=True)(*call.leaves)
        return (jaxpr, call.finish(shapes)) if return_shape else jaxpr

    return make
