# SPDX-License-Identifier: Apache-2.0
"""`jit`: its options, its checks, and the function that users call."""

import functools
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any, Unpack, overload

import jax

from pydag.jaxinterop.content.options import Options, hashable
from pydag.jaxinterop.help import with_wrapper_options
from pydag.jaxinterop.naming import Source, name_of, wraps
from pydag.jaxinterop.treatments.arguments import Chosen, check_function, spot_text
from pydag.jaxinterop.treatments.outputs import is_sharding
from pydag.jaxinterop.treatments.treatments import answers_in
from pydag.jaxinterop.typed import Jit, JitOptions, Jitted, P, R
from pydag.public.options import raise_unexpected
from pydag.typing import Identity, Where

from .function import CompiledFunction, Settings
from .kept import holder_of_model, kept_for
from .stages import eval_shape, lower, trace


@overload
def jit(fun: Callable[P, R], /, **options: Unpack[JitOptions]) -> Jitted[P, R]: ...
@overload
def jit(**options: Unpack[JitOptions]) -> Jit: ...
@with_wrapper_options
def jit(
    fun: Any = None,
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: Any = None,
    static_argnames: Any = None,
    donate_argnums: Any = None,
    donate_argnames: Any = None,
    namespace: str = "",
    identity: Identity = "all",
    static: Where | None = None,
    update_argnums: Any = None,
    update_argnames: Any = None,
    **jax_options: Any,
) -> Any:
    """Compile a function of DAGs; as `jax.jit`, and what is shared stays shared.

    One identity table spans all arguments, another all of the result: inside of the function and
    outside, `a.shared is b.shared` holds. A shared array is passed once, donated once and returned
    once. The function is compiled anew when the structure, the sharing, a static leaf, the order in
    which a dict was filled, or the shape or type of an array is new. A ref goes in as its content,
    and what was written into it is written back. As a decorator in a class it makes a method.

    Args:
        fun: The function. Left out, `jit` returns a decorator.
        in_shardings, out_shardings: One sharding for everything, or tree prefixes: of the tuple of
            positional arguments, and of the result. Static arguments may be named beside them.
        static_argnums, static_argnames: Arguments that are not opened: part of the key, compared by
            type and value.
        donate_argnums, donate_argnames: Arguments whose arrays may be overwritten.
        update_argnums, update_argnames: Not JAX's. Arguments that `fun` may change: what it writes
            into their leaves is written into the caller's objects when the call returns, each once,
            all or nothing. Structure, sharing and static leaves must not change; containers keep
            their identity.
        jax_options: All other options of `jax.jit`.

    Raises:
        SharingError: When called: a donated argument and a kept one hold the same array, or two
            places of one array are given two shardings; or what is shared in an updated argument is
            changed.
        CycleError: When called: an argument contains itself.
        TypeError: `fun` holds a model (a bound method, a partial, an object); when called: a leaf
            is neither an array nor a value.
        ValueError: When called: `static` selects nothing; or the function changes the structure or
            a static leaf of an argument that is updated.

    >>> w = jnp.ones(2)
    >>> out = jit(lambda model: jax.tree.map(lambda x: 2 * x, pydag.jaxinterop.Dag(model)).tree)(
    ...     {"a": w, "b": w}
    ... )
    >>> out["a"] is out["b"]
    True
    """
    if fun is None:
        given = dict(locals())
        del given["fun"], given["jax_options"]
        return functools.partial(jit, **given, **jax_options)
    if jax_options:
        for name in jax_options.keys() - inspect.signature(jax.jit).parameters.keys():
            raise_unexpected(name)
    _check_holds_no_model(fun, namespace)
    options = Options(namespace, identity, static)
    chosen = (
        Chosen.of(fun, static_argnums, static_argnames),
        Chosen.of(fun, donate_argnums, donate_argnames),
        updated_arguments(fun, update_argnums, update_argnames),
    )
    for spot in chosen[0] & chosen[2]:
        raise ValueError(f"{spot_text(spot)} can't be both static and updated")

    def make(get: Callable[[], Any]) -> CompiledFunction:
        if jax_options or any(chosen):
            # JAX checks its own options, and the numbers of arguments.
            jax.jit(
                fun,
                static_argnums=static_argnums,
                static_argnames=static_argnames,
                donate_argnums=donate_argnums,
                donate_argnames=donate_argnames,
                **jax_options,
            )
        given = Settings(*chosen, (in_shardings, out_shardings), jax_options)
        return CompiledFunction(get, Source(fun), options, given)

    shardings = _tree_key(in_shardings, namespace), _tree_key(out_shardings, namespace)
    key = "jit", *chosen, options.key(), shardings, hashable(jax_options)
    compiled = kept_for(fun, key, make)
    call: Any = wraps(fun)(compiled.caller())
    for stage in (trace, lower, eval_shape):  # they own the function
        setattr(call, stage.__name__, functools.partial(stage, compiled, fun))
    call.clear_cache, call._cache_size = compiled.forget, compiled.cache_size
    call.__dict__ = _Attributes(vars(call))
    return call


def updated_arguments(fun: Any, numbers: Any, names: Any) -> Chosen:
    """The arguments that `update_argnums` and `update_argnames` name, checked by JAX."""
    if numbers is None and names is None:
        return Chosen()
    chosen = Chosen.of(fun, numbers, names)
    try:
        jax.jit(fun, donate_argnums=numbers, donate_argnames=names)
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("donate_arg", "update_arg")) from None
    return chosen


def _tree_key(prefix: Any, namespace: str) -> Any:
    """A tree of shardings as part of a key: equal for equal shardings in equal structures."""
    if prefix is None:
        return None
    leaves, spec = answers_in(prefix, namespace, is_sharding)
    return spec, hashable(leaves)


def _check_holds_no_model(fun: Any, namespace: str) -> None:
    """Raises `TypeError` for a function that holds a model, and for what can't be called."""
    if type(fun) is not Source:
        check_function(fun)
    holder = holder_of_model(fun, namespace)
    if holder is None:
        return
    if isinstance(holder, functools.partial):
        name = getattr(holder.func, "__qualname__", name_of(holder))
        cure = str(name).rpartition("<locals>.")[2]
    elif isinstance(holder, types.MethodType):
        cure = f"{type(holder.__self__).__qualname__}.{holder.__name__}"
    else:
        cure = f"{type(holder).__qualname__}.__call__"
    inside = "" if holder is fun else f" (what {name_of(fun)} adds to it is made inside)"
    raise TypeError(
        f"{name_of(fun)} holds a model: compiled, its arrays would be constants, and stale "
        f"when they change\n  Pass the model as an argument: pj.jit({cure})(model, ...){inside}. "
        "As a decorator in the class, pj.jit makes a method."
    )


class _Attributes(dict[str, Any]):
    """The attributes of a compiled function. Who iterates over them doesn't see its stages.

    So `functools.wraps` copies them to no other function: they are about this one, and own it.
    """

    __slots__ = ()
    _STAGES = frozenset(("trace", "lower", "eval_shape", "clear_cache", "_cache_size"))

    def __iter__(self) -> Iterator[str]:
        return (name for name in super().__iter__() if name not in self._STAGES)

    def keys(self) -> Any:
        return list(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (list(self.items()),)
