# SPDX-License-Identifier: Apache-2.0
"""`jax.checkpoint` for functions of DAGs."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar, Unpack, cast

import jax

from pydag.jaxinterop.boundary.call import Call, kept_staged, per_leaf
from pydag.jaxinterop.boundary.held import anew, holds_data
from pydag.jaxinterop.messages.attributes import wraps
from pydag.jaxinterop.messages.naming import Source
from pydag.jaxinterop.messages.roots import CALL
from pydag.jaxinterop.options import UpdateOptions, with_wrapper_options
from pydag.jaxinterop.prefixes.arguments import Args, Chosen, Kwargs, as_names, as_numbers
from pydag.jaxinterop.prefixes.treatments import Question
from pydag.jaxinterop.refs.contents import RefCall
from pydag.jaxinterop.refs.ref_calls import may_lend, with_ref_contents
from pydag.jaxinterop.refs.table import RefTable
from pydag.jaxinterop.static.leaves import Static
from pydag.jaxinterop.static.untraced import Options
from pydag.jaxinterop.updates.choice import chosen_updates
from pydag.jaxinterop.updates.update import finished

P = ParamSpec("P")
R = TypeVar("R")

_CSE = Question(
    "checkpoint prevent_cse", lambda x: f"given {x}", "Give both places the same, or copy one."
)


@with_wrapper_options
def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: bool | Sequence[Any] = True,
    policy: Callable[..., bool] | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
    **options: Unpack[UpdateOptions],
) -> Callable[P, R]:
    """Compute `fun` again when it is differentiated, rather than keep its values.

    As `jax.checkpoint`. `remat` is the same function.

    Args:
        fun: The function.
        prevent_cse: Whether the compiler is kept from undoing it; with newer JAX also a tree
            prefix of the tuple of arguments.
        policy: Which values are kept all the same, as in JAX.
        static_argnums, static_argnames: Arguments that are not opened. With one that can't be
            hashed the function is traced at each call.

    >>> w = jnp.float32(3.0)
    >>> float(jax.grad(lambda w: checkpoint(lambda p: p["a"] * p["b"])({"a": w, "b": w}))(w))
    6.0
    """
    how = Options.given(options, UpdateOptions)
    if holds_data(fun, how.namespace):
        given: Any = {
            "prevent_cse": prevent_cse,
            "policy": policy,
            "static_argnums": static_argnums,
            "static_argnames": static_argnames,
            **options,
        }

        @wraps(fun)
        def once(*args: Any, **kwargs: Any) -> R:
            function: Any = checkpoint(anew(fun, how.namespace), **given)
            result: R = function(*args, **kwargs)
            return result

        return cast(Callable[P, R], once)
    arguments = Chosen.of(
        fun, as_numbers(static_argnums) or None, as_names(static_argnames) or None
    )

    updated = chosen_updates(fun, options, arguments)

    @wraps(fun)
    def again(*args: Any, **kwargs: Any) -> R:
        called, args, kwargs = _closing_over_unhashable(fun, arguments, args, kwargs)
        call, table = Call.keyed(args, kwargs, how, arguments), RefTable()
        bare = table.hide(call, adds=True)
        _owner, staged = kept_staged(called, how, updated, lends_read=True)

        def options_of(shown: Call, before: tuple[Any, ...] = ()) -> dict[str, Any]:
            cse: Any = prevent_cse
            if not isinstance(cse, bool):
                prefixes = {"args": tuple(cse), "kwargs": True}
                cse = (*before, per_leaf(call, prefixes, _CSE, how, shown))
            return {"prevent_cse": cse, "policy": policy}

        def run(lent: list[Any] | None) -> Any:
            lender = staged.of_contents
            if lent is None or not may_lend([*table.refs, *lent]):
                returned = jax.checkpoint(staged.plain, **options_of(call))(call)
                return finished(returned, (args, kwargs), table.tree)
            again = jax.checkpoint(lender.for_jax(lent), **options_of(bare, (False,)))
            outcome = RefCall([(Source(fun).text, lender)], table, bare._untraced, CALL, lent).run(
                lambda contents: again(contents, bare)
            )
            return finished(outcome, (args, kwargs), table.tree)

        result: R = with_ref_contents(run)
        return result

    return cast(Callable[P, R], again)


def _closing_over_unhashable(
    fun: Callable[..., R], static: Chosen, args: Args, kwargs: Kwargs
) -> tuple[Callable[..., R], Args, Kwargs]:
    """A call of which static arguments can be part of a key, as the others are.

    One that can't be hashed is closed over by another function, and None stands in its place; so
    it is traced at each call, as in JAX.
    """
    spots = static.spots(args, kwargs)
    numbers = [i for i in range(len(args)) if i in spots and not _is_hashable(args[i])]
    names = [name for name in kwargs if name in spots and not _is_hashable(kwargs[name])]
    if not numbers and not names:
        return fun, args, kwargs

    @wraps(fun)
    def closed(*given: Any, **named: Any) -> R:
        every = [args[i] if i in numbers else arg for i, arg in enumerate(given)]
        return fun(*every, **(named | {name: kwargs[name] for name in names}))

    left = tuple(None if i in numbers else arg for i, arg in enumerate(args))
    return closed, left, kwargs | dict.fromkeys(names)


def _is_hashable(value: Any) -> bool:
    try:
        Static(value).check_hashable()
    except TypeError:
        return False
    return True


remat = checkpoint
