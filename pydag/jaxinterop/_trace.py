# SPDX-License-Identifier: Apache-2.0
"""`jax.checkpoint`, `jax.eval_shape`, `jax.make_jaxpr` and `jax.pure_callback`, of DAGs."""

import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, cast

import jax

from pydag.typing import Identity

from ._arguments import Chosen, as_names, as_numbers
from ._call import Call, flat, kept_flat
from ._dag import Dag, like, packed
from ._form import Options
from ._kept import name_of
from ._mapping import per_leaf
from ._treatment import Question

_CSE = Question(
    "checkpoint prevent_cse", lambda x: f"given {x}", "Give both places the same, or copy one."
)


def checkpoint(
    fun: Callable[..., Any],
    *,
    prevent_cse: bool | Sequence[Any] = True,
    policy: Callable[..., bool] | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
    namespace: str = "",
    identity: Identity = "all",
) -> Callable[..., Any]:
    """Compute `fun` again when it is differentiated, rather than keep its values.

    As `jax.checkpoint`. `remat` is the same function.

    Args:
        prevent_cse: With newer JAX also a tree prefix of the tuple of arguments.
        static_argnums, static_argnames: Arguments that are not opened.

    >>> w = jnp.float32(3.0)
    >>> float(jax.grad(lambda w: checkpoint(lambda p: p["a"] * p["b"])({"a": w, "b": w}))(w))
    6.0
    """
    options = Options(namespace, identity)
    static = Chosen.of(fun, as_numbers(static_argnums) or None, as_names(static_argnames) or None)

    @functools.wraps(fun, updated=())
    def again(*args: Any, **kwargs: Any) -> Any:
        call = Call.of(args, kwargs, options, static)
        cse: Any = prevent_cse
        if not isinstance(cse, bool):
            prefixes = {"args": tuple(cse), "kwargs": True}
            cse = (per_leaf(call, prefixes, _CSE, options),)
        _owner, function = kept_flat(fun, options)
        return jax.checkpoint(function, prevent_cse=cse, policy=policy)(call).tree

    return again


remat = checkpoint


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What `fun` returns, with `jax.ShapeDtypeStruct`s for arrays; as `jax.eval_shape`.

    Arguments may hold such structs, too; one that stands at two places is one array inside.

    >>> w = jax.ShapeDtypeStruct((2, 3), "float32")
    >>> out = eval_shape(lambda p: {"c": p["a"] + 1, "d": p["b"]}, {"a": w, "b": w})
    >>> out["c"].shape
    (2, 3)
    """
    _owner, function = kept_flat(fun, Options())
    return jax.eval_shape(function, Call.of(args, kwargs, Options())).tree


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Iterable[int] = (),
    axis_env: Sequence[tuple[Hashable, int]] | None = None,
    return_shape: bool = False,
    *,
    namespace: str = "",
    identity: Identity = "all",
) -> Callable[..., Any]:
    """A function that returns the jaxpr of `fun`; as `jax.make_jaxpr`.

    Its inputs are the distinct arrays of the arguments, its outputs those of the result.

    >>> w = jnp.float32(3.0)
    >>> print(make_jaxpr(lambda p: p["a"] * p["b"])({"a": w, "b": w}))
    { lambda ; a:f32[]. let b:f32[] = mul a a in (b,) }
    """
    options = Options(namespace, identity)
    static = Chosen(as_numbers(static_argnums), ())

    @functools.wraps(fun, updated=())
    def jaxpr(*args: Any, **kwargs: Any) -> Any:
        _owner, function = kept_flat(fun, options)
        make = cast(Any, jax.make_jaxpr)(function, axis_env=axis_env, return_shape=return_shape)
        made = make(Call.of(args, kwargs, options, static))
        return (made[0], made[1].tree) if return_shape else made

    return jaxpr


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
        result_shape_dtypes: What it returns, with `jax.ShapeDtypeStruct`s for arrays. One that
            stands at two places stands for one array at both.

    >>> w = jnp.float32(3.0)
    >>> out = pure_callback(lambda p: [p["a"] * p["b"]], [w], {"a": w, "b": w})
    >>> float(out[0])
    9.0
    """
    options = Options()
    shape: Dag = packed(result_shape_dtypes, options)

    def pack(result: Any) -> Dag:
        return like(shape, result, f"what {name_of(callback)} returned")

    function = flat(lambda: callback, name_of(callback), pack)
    call = Call.of(args, kwargs, options)
    return jax.pure_callback(function, shape, call, sharding=sharding, vmap_method=vmap_method).tree
