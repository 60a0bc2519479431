# SPDX-License-Identifier: Apache-2.0
"""`jax.eval_shape` and `jax.make_jaxpr` for functions of DAGs."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, ParamSpec, Unpack, cast

import jax

from pydag.jaxinterop.boundary.call import Call, kept_flat
from pydag.jaxinterop.boundary.described import described_call
from pydag.jaxinterop.boundary.held import anew
from pydag.jaxinterop.messages.attributes import wraps
from pydag.jaxinterop.options import StaticOptions, with_wrapper_options
from pydag.jaxinterop.prefixes.arguments import Chosen, as_numbers
from pydag.jaxinterop.refs.table import RefTable
from pydag.jaxinterop.static.differentiable import shape_of
from pydag.jaxinterop.static.untraced import Options

P = ParamSpec("P")


def table_of_shapes(call: Call) -> RefTable:
    """The shapes and types of the refs of a call."""
    refs: Any = RefTable.of(call._leaves).refs
    return RefTable(list(map(shape_of, refs)))


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What `fun` returns, with `jax.ShapeDtypeStruct`s for arrays; as `jax.eval_shape`.

    Arguments may hold such structs, too, or whatever else has a shape and a dtype; one that stands
    at two places is one array inside. All
    keywords are the function's: where pydag's are needed, take `jit(fun, ...).eval_shape`.

    Args:
        fun: The function.
        args, kwargs: What it would be called with.

    >>> w = jax.ShapeDtypeStruct((2, 3), "float32")
    >>> out = eval_shape(lambda p: {"c": p["a"] + 1, "d": p["b"]}, {"a": w, "b": w})
    >>> out["c"].shape
    (2, 3)
    """
    fun = anew(fun, "")
    _owner, function = kept_flat(fun, Options())
    args, kwargs = described_call(args, kwargs, Options(), Chosen((), ()))
    call = Call.keyed(args, kwargs, Options())
    return table_of_shapes(call).show(jax.eval_shape(function, call)).tree


@with_wrapper_options
def make_jaxpr(
    fun: Callable[P, Any],
    static_argnums: int | Iterable[int] = (),
    axis_env: Sequence[tuple[Hashable, int]] | None = None,
    return_shape: bool = False,
    **options: Unpack[StaticOptions],
) -> Callable[P, Any]:
    """A function that returns the jaxpr of `fun`; as `jax.make_jaxpr`.

    Its inputs are the distinct arrays of the arguments, its outputs those of the result.

    Args:
        fun: The function.
        static_argnums: Arguments that are not opened.
        axis_env: Sizes of named axes, as in JAX.
        return_shape: Whether a pair is returned, of the jaxpr and what `eval_shape` returns.

    >>> w = jnp.float32(3.0)
    >>> print(make_jaxpr(lambda p: p["a"] * p["b"])({"a": w, "b": w}))
    { lambda ; a:f32[]. let b:f32[] = mul a a in (b,) }
    """
    how = Options.given(options, StaticOptions)
    arguments = Chosen(as_numbers(static_argnums), ())
    cast(Any, jax.make_jaxpr)(fun, axis_env=axis_env)  # checks the function

    @wraps(fun)
    def jaxpr(*args: P.args, **kwargs: P.kwargs) -> Any:
        # JAX remembers what it traced of a function, whatever that holds.
        _owner, function = kept_flat(anew(fun, how.namespace), how)
        make = cast(Any, jax.make_jaxpr)(function, axis_env=axis_env, return_shape=return_shape)
        shown = described_call(args, kwargs, how, arguments)
        call = Call.keyed(*shown, how, arguments)
        made = make(call)
        return (made[0], table_of_shapes(call).show(made[1]).tree) if return_shape else made

    return jaxpr
