# SPDX-License-Identifier: Apache-2.0
"""A call across the boundary: all of its arguments as one pytree, and the function of that.

This is the mechanism of every wrapper but `jit`, which does the same with less work per call.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import jax
from jax import tree_util

from pydag.typing import Identity, Leaf

from ._arguments import Args, Chosen, Kwargs, argument_text, held, released
from ._dag import Dag, fresh, packed, rebuilt
from ._form import Form, Options
from ._kept import made_for, name_of

_NONE = Chosen((), ())


class Call(Dag):
    """The arguments of a call: one identity table spans them all. Its tree is `(args, kwargs)`."""

    __slots__ = ()

    @classmethod
    def of(cls, args: Args, kwargs: Kwargs, options: Options, static: Chosen = _NONE) -> "Call":
        if static != _NONE:
            args, kwargs = held(static, args, kwargs)
        return cls((args, kwargs), namespace=options.namespace, identity=options.identity)

    def run(self, fun: Callable[..., Any]) -> Any:
        """What a function returns for these arguments."""
        args, kwargs = fresh(self)
        return fun(*map(released, args), **{name: released(arg) for name, arg in kwargs.items()})


def _call_with_keys(call: Call) -> tuple[list[tuple[Any, Leaf]], Form]:
    accessors = call.spec.accessors()
    keys = [
        tree_util.GetAttrKey(argument_text(accessors[i])) for i in call._form.traced_positions()
    ]
    return list(zip(keys, call._leaves, strict=True)), call._form


tree_util.register_pytree_with_keys(
    Call,
    _call_with_keys,
    lambda form, leaves: rebuilt(form, leaves, Call),
    lambda call: (call._leaves, call._form),
)


def flat(
    get: Callable[[], Callable[..., Any]], name: str, pack: Callable[[Any], Any]
) -> Callable[[Call], Any]:
    """The function that JAX gets in the place of the one that `get` gives: of a `Call`.

    Args:
        pack: Makes of the result what JAX gets.
    """

    def flat(call: Call) -> Any:
        return pack(call.run(get()))

    return named(flat, name)


F = TypeVar("F", bound=Callable[..., Any])


def named(function: F, name: str) -> F:
    """The function, under the name that JAX shows."""
    function.__name__ = function.__qualname__ = name
    return function


def kept_flat(fun: Callable[..., Any], options: Options) -> tuple[Any, Callable[[Call], Dag]]:
    """The flat function, one for all calls of `fun`; before it what must be owned meanwhile.

    For what JAX traces at once, and not for what it may call later on.
    """

    def pack(result: Any) -> Dag:
        return packed(result, options)

    return made_for(fun, ("flat", options), lambda get: flat(get, name_of(fun), pack))


def trees(result: Any) -> Any:
    """What JAX returned, with trees for Dags."""

    def is_dag(x: Any) -> bool:
        return isinstance(x, Dag)

    return jax.tree.map(lambda x: x.tree if is_dag(x) else x, result, is_leaf=is_dag)


def keep_sharing(
    transformation: Callable[..., Callable[..., Any]],
    *,
    namespace: str = "",
    identity: Identity = "all",
) -> Callable[..., Callable[..., Any]]:
    """Make one of JAX's transformations keep sharing: for those that have no wrapper here.

    What is made takes a function of DAGs, and the options of the transformation. JAX sees a
    function of one argument, whose leaves are the distinct leaves of all arguments; options that
    speak of arguments (`argnums`, axes) mean that one. Leaves that JAX can't trace are static. A
    function that JAX calls later than it is passed on (a callback) must be kept by somebody else.

    Args:
        transformation: Takes a function, and perhaps options, and gives a function that calls it.

    Returns:
        A function like `transformation`. Where that gives back something that has the form of the
        arguments, such as a gradient, there comes a pair `(args, kwargs)`.

    >>> import functools
    >>> in_batches = keep_sharing(lambda f, **options: functools.partial(jax.lax.map, f, **options))
    >>> w = jnp.arange(4.0)
    >>> out = in_batches(lambda p: {"c": p["a"] * p["b"]}, batch_size=2)({"a": w, "b": w})
    >>> out["c"].tolist()
    [0.0, 1.0, 4.0, 9.0]
    """
    how = Options(namespace, identity)

    def transformed(fun: Callable[..., Any], /, *options: Any, **more: Any) -> Any:
        @wraps(fun, updated=())
        def call(*args: Any, **kwargs: Any) -> Any:
            _owner, function = kept_flat(fun, how)
            return trees(transformation(function, *options, **more)(Call.of(args, kwargs, how)))

        return call

    return transformed
