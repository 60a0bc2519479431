# SPDX-License-Identifier: Apache-2.0
"""`jax.checkpoint` for functions of DAGs."""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar

import jax

from pydag.jaxinterop.boundary.call import Call, kept_staged, per_leaf
from pydag.jaxinterop.messages.naming import Source
from pydag.jaxinterop.messages.roots import CALL
from pydag.jaxinterop.prefixes.arguments import Chosen, as_names, as_numbers
from pydag.jaxinterop.prefixes.treatments import Question
from pydag.jaxinterop.refs.contents import Lent, lending, may_lend
from pydag.jaxinterop.refs.table import RefTable
from pydag.jaxinterop.static.untraced import Options
from pydag.typing import Identity, Where

P = ParamSpec("P")
R = TypeVar("R")

_CSE = Question(
    "checkpoint prevent_cse", lambda x: f"given {x}", "Give both places the same, or copy one."
)


def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: bool | Sequence[Any] = True,
    policy: Callable[..., bool] | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
    namespace: str = "",
    identity: Identity = "all",
    static: Where | None = None,
) -> Callable[P, R]:
    """Compute `fun` again when it is differentiated, rather than keep its values.

    As `jax.checkpoint`. `remat` is the same function.

    Args:
        fun: The function.
        prevent_cse: Whether the compiler is kept from undoing it; with newer JAX also a tree
            prefix of the tuple of arguments.
        policy: Which values are kept all the same, as in JAX.
        static_argnums, static_argnames: Arguments that are not opened.
        namespace: Not JAX's. Classes registered in this namespace are nodes, too.
        identity: Not JAX's. "nodes": only containers and modules have identity, arrays don't.
        static: Not JAX's. Which leaves are static, not traced: a predicate, a class or several, a
            pattern of the path, a prefix of booleans, or a list of such, as in `pydag.dag_mask`.

    >>> w = jnp.float32(3.0)
    >>> float(jax.grad(lambda w: checkpoint(lambda p: p["a"] * p["b"])({"a": w, "b": w}))(w))
    6.0
    """
    options = Options.of(namespace, identity, static)
    arguments = Chosen.of(
        fun, as_numbers(static_argnums) or None, as_names(static_argnames) or None
    )

    @functools.wraps(fun, updated=())
    def again(*args: P.args, **kwargs: P.kwargs) -> R:
        call, table = Call.keyed(args, kwargs, options, arguments), RefTable()
        bare = table.hide(call, adds=True)
        _owner, staged = kept_staged(fun, options)

        def options_of(shown: Call, before: tuple[Any, ...] = ()) -> dict[str, Any]:
            cse: Any = prevent_cse
            if not isinstance(cse, bool):
                prefixes = {"args": tuple(cse), "kwargs": True}
                cse = (*before, per_leaf(call, prefixes, _CSE, options, shown))
            return {"prevent_cse": cse, "policy": policy}

        def run(lent: list[Any]) -> Any:
            refs, lender = [*table.refs, *lent], staged.of_contents
            if not refs or not may_lend(refs):
                return jax.checkpoint(staged.plain, **options_of(call))(call).tree
            again = jax.checkpoint(lender.for_jax(lent), **options_of(bare, (False,)))
            outcome = Lent([(Source(fun).text, lender)], table, bare._untraced, CALL, lent).run(
                lambda contents: again(contents, bare)
            )
            return table.show(outcome).tree

        result: R = lending(run)
        return result

    return again


remat = checkpoint
