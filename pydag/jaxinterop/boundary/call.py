# SPDX-License-Identifier: Apache-2.0
"""A call across the boundary: all of its arguments as one pytree, and the function of that.

This is the mechanism of every wrapper but `jit`, which does the same with less work per call.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from jax import tree_util

from pydag.typing import Leaf

from .arguments import Args, Chosen, Kwargs, argument_text, unwrap_static, wrap_static
from .dag import Dag, hashable, rebuilt, to_dag, to_tree
from .function_cache import cached_for_function, name_of
from .prefixes import Question, treatments
from .static_part import Options, StaticPart

_NONE = Chosen((), ())


class Call(Dag):
    """The arguments of a call: one identity table spans them all. Its tree is `(args, kwargs)`."""

    __slots__ = ()

    @classmethod
    def of(cls, args: Args, kwargs: Kwargs, options: Options, static: Chosen = _NONE) -> "Call":
        if static != _NONE:
            args, kwargs = wrap_static(static, args, kwargs)
        return cls((args, kwargs), namespace=options.namespace, identity=options.identity)

    @classmethod
    def keyed(cls, args: Args, kwargs: Kwargs, options: Options, static: Chosen = _NONE) -> "Call":
        """A call that is part of the key of what JAX traces: `hashable`."""
        return hashable(cls.of(args, kwargs, options, static), argument_text)

    def run(self, fun: Callable[..., Any]) -> Any:
        """What a function returns for these arguments."""
        args, kwargs = to_tree(self)
        return fun(
            *map(unwrap_static, args), **{name: unwrap_static(arg) for name, arg in kwargs.items()}
        )


def _call_with_keys(call: Call) -> tuple[list[tuple[Any, Leaf]], StaticPart]:
    accessors = call.spec.accessors()
    keys = [
        tree_util.GetAttrKey(argument_text(accessors[i]))
        for i in call._static_part.traced_positions()
    ]
    return list(zip(keys, call._leaves, strict=True)), call._static_part


tree_util.register_pytree_with_keys(
    Call,
    _call_with_keys,
    lambda static_part, leaves: rebuilt(static_part, leaves, Call),
    lambda call: (call._leaves, call._static_part),
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
        return to_dag(result, options)

    return cached_for_function(fun, ("flat", options), lambda get: flat(get, name_of(fun), pack))


def per_leaf(call: Call, prefixes: dict[str, Any], question: Question, options: Options) -> Call:
    """What the prefixes say about each leaf of a call."""
    args, kwargs = call.tree
    named = {"args": args, "kwargs": kwargs} if kwargs else {"args": args}
    given = treatments(named, {root: prefixes[root] for root in named}, question, options)
    return rebuilt(
        call._static_part, [given[i] for i in call._static_part.traced_positions()], Call
    )
