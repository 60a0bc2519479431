# SPDX-License-Identifier: Apache-2.0
"""A call across the boundary: all of its arguments as one pytree, and a function of that pytree.

This is the mechanism of every wrapper but `jit`, which does the same with less work per call.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from pydag.jaxinterop.function_cache import cached_for_function, kept_with_function
from pydag.jaxinterop.messages.naming import ARGUMENTS, Source, named
from pydag.jaxinterop.messages.roots import CALL
from pydag.jaxinterop.notices.blame import blame_value
from pydag.jaxinterop.packed.dag import InnerDag, Outcome, Role, dag_of, opened_by_jax, rebuilt
from pydag.jaxinterop.packed.given import GivenTree
from pydag.jaxinterop.prefixes.arguments import (
    Args,
    Chosen,
    Kwargs,
    unwrap_static,
    wrap_static,
)
from pydag.jaxinterop.prefixes.treatments import Question, treatments
from pydag.jaxinterop.refs.contents import OfContents
from pydag.jaxinterop.refs.ref_calls import check_around
from pydag.jaxinterop.refs.table import RefTable
from pydag.jaxinterop.static.paths import paths_of
from pydag.jaxinterop.static.untraced import Options, Untraced
from pydag.jaxinterop.updates.update import Update, update_of
from pydag.typing import Leaf

_NONE = Chosen((), ())

Maker = Callable[[Callable[[], Callable[..., Any]]], Callable[["Call"], Outcome]]


@opened_by_jax
class Call(InnerDag):
    """The arguments of a call: one identity table spans them all. Its tree is `(args, kwargs)`."""

    __slots__ = ()

    @classmethod
    def of(
        cls,
        args: Args,
        kwargs: Kwargs,
        options: Options,
        static: Chosen = _NONE,
        role: Role = Role.ARGUMENT,
    ) -> "Call":
        if static != _NONE:
            args, kwargs = wrap_static(static, args, kwargs)
        return dag_of((args, kwargs), options, CALL, role, cls=cls)

    @classmethod
    def with_separate_arrays(cls, args: Args, kwargs: Kwargs, options: Options) -> "Call":
        """A call in which each argument that is itself an array is a variable of its own."""
        if len(args) + len(kwargs) < 2:
            return cls.of(args, kwargs, options)
        found = options.separated((*args, *kwargs.values()))
        names = dict(zip(kwargs, found[len(args) :], strict=True))
        return cls.of(tuple(found[: len(args)]), names, options)

    @classmethod
    def keyed(cls, args: Args, kwargs: Kwargs, options: Options, static: Chosen = _NONE) -> "Call":
        """A call that is part of the key of what JAX traces."""
        return cls.of(args, kwargs, options, static, Role.KEY)

    def with_paths(self, root: str = "") -> Iterator[tuple[str, Leaf]]:
        """The traced leaves with their paths, which begin with `args` or `kwargs`."""
        return zip(argument_paths(self._untraced), self._leaves, strict=True)

    def run(self, fun: Callable[..., Any]) -> Any:
        """What a function returns for these arguments."""
        return self.run_and_update(fun, None)[0]

    def run_and_update(
        self, fun: Callable[..., Any], updated: Chosen | None, is_staged: bool = False
    ) -> tuple[Any, Update]:
        """What a function returns for these arguments, and what it changes in some of them.

        Args:
            is_staged: As for `update_of`.
        """
        given = GivenTree(self._untraced, self._leaves, CALL)
        args, kwargs = given.tree
        if self._untraced.positions:
            args = tuple(map(unwrap_static, args))
            kwargs = {name: unwrap_static(arg) for name, arg in kwargs.items()}
        try:
            result = fun(*args, **kwargs)
        except TypeError as error:
            blame_value(error, self._untraced, self._leaves, CALL)
            raise
        return result, update_of(given, updated, result, fun, is_staged=is_staged)


def argument_paths(untraced: Untraced) -> Sequence[str]:
    """The path of each traced leaf of a call, such as `args[0]['layers'][3].w`."""
    return paths_of(untraced, CALL)


def flat(
    get: Callable[[], Callable[..., Any]],
    source: Source,
    pack: Callable[[Any, RefTable], Any],
    updated: Chosen | None = None,
) -> Callable[[Call], Any]:
    """The function of a `Call` that JAX gets in the place of the user's function.

    Args:
        get: Returns the user's function.
        source: Of the function.
        pack: Makes of the result, and the refs that the function was given, what JAX gets.
        updated: Arguments that are updated, where there are any: `updates.finished` writes them.
    """

    def flat(call: Call) -> Any:
        result, update = call.run_and_update(get(), updated)
        packed = pack(result, RefTable.of(call._leaves))
        return packed if update.plan is None else update.beside(packed)

    return named(flat, source)


def kept_flat(
    fun: Callable[..., Any], options: Options, updated: Chosen | None = None
) -> tuple[Any, Callable[[Call], Any]]:
    """What must be kept alive meanwhile, and the flat function: one for all calls of `fun`.

    It is meant for what JAX traces at once. What JAX may call later on needs `owning_flat`.
    """
    return cached_for_function(fun, ("flat", options, updated), _maker(fun, options, updated))


def owning_flat(fun: Callable[..., Any], options: Options) -> Callable[[Call], Outcome]:
    """The flat function for what JAX may call later on: it keeps what it calls alive."""
    return kept_with_function(fun, ("flat", options), _maker(fun, options))


def _maker(fun: Callable[..., Any], options: Options, updated: Chosen | None = None) -> Maker:
    def pack(result: Any, table: RefTable) -> Outcome:
        return table.hide(dag_of(result, options, cls=Outcome))

    return lambda get: flat(get, Source(fun), pack, updated)


class Staged(NamedTuple):
    """A function for JAX to stage out, in two forms: of a call; of contents of refs and a call."""

    plain: Callable[[Call], Any]
    of_contents: OfContents


def kept_staged(
    fun: Callable[..., Any],
    options: Options,
    updated: Chosen | None = None,
    lends_read: bool = False,
) -> tuple[Any, Staged]:
    """As `kept_flat`, with the two forms of a function that JAX stages out.

    Args:
        lends_read: Whether refs from around it must be lent to it although it only reads them.
    """
    return cached_for_function(
        fun,
        ("staged", options, updated, lends_read),
        lambda get: _staged(get, Source(fun), options, updated, lends_read),
    )


def _staged(
    get: Callable[[], Callable[..., Any]],
    source: Source,
    options: Options,
    updated: Chosen | None,
    lends_read: bool,
) -> Staged:
    def plain(call: Call) -> Any:
        result, update = call.run_and_update(get(), updated, is_staged=True)
        outcome = dag_of(result, options, cls=Outcome)
        check_around(lends_read)
        return outcome if update.plan is None else update.beside(outcome)

    def with_refs(refs: list[Any], call: Call) -> Any:
        table = RefTable(refs)
        result, update = table.show(call).run_and_update(get(), updated, is_staged=True)
        outcome = table.hide(dag_of(result, options, cls=Outcome))
        return outcome if update.plan is None else update.beside(outcome)

    return Staged(named(plain, source), OfContents(named(with_refs, source, ARGUMENTS)))


def per_leaf(
    call: Call,
    prefixes: dict[str, Any],
    question: Question,
    options: Options,
    shown: Call | None = None,
) -> Call:
    """What the prefixes say about each leaf of a call.

    Args:
        shown: The call that has numbers for refs, if the prefixes say nothing about refs.
    """
    wanted = (shown or call)._untraced
    args, kwargs = call.tree
    trees = {"args": args, "kwargs": kwargs} if kwargs else {"args": args}
    traced = frozenset(call._untraced.traced_positions())
    chosen = {root: prefixes[root] for root in trees}
    given = treatments(trees, chosen, question, options, traced)
    return rebuilt(wanted, [given[i] for i in wanted.traced_positions()], Call)
