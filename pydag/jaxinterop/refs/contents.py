# SPDX-License-Identifier: Apache-2.0
"""Functions that JAX stages out, such as a loop's body: they get and return contents of refs.

Before the call the contents are read; after it, those that changed are written into the refs, once.
So no write happens twice under a derivative, where JAX runs parts of such a function several times.

A ref that the function takes from around it, and writes into, is lent to it in the same way.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial, wraps
from typing import Any, TypeVar

import jax
from jax import tree_util

from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.foreign.jax_private import identity
from pydag.jaxinterop.messages.roots import Roots, place_text
from pydag.jaxinterop.static.differentiable import is_differentiable
from pydag.jaxinterop.static.untraced import Untraced

from .access import new_ref, refs_around
from .interpret import UnknownStepError, run_pure
from .ref_calls import NeedsRefsError, ask_for_refs, distinct, staging
from .table import RefTable, both_texts, numbers_of_refs

R = TypeVar("R")


def _nothing() -> None:
    pass


class _Checks(threading.local):
    check: Callable[[], None] = staticmethod(_nothing)


class OfContents:
    """A function of refs and pytrees as one of contents and pytrees.

    Args:
        function: Gets refs, a list, and pytrees without refs; it returns a pytree without refs.
    """

    def __init__(self, function: Callable[..., Any]) -> None:

        @wraps(function)
        def traced(refs: list[Any], *args: Any) -> Any:
            with staging():
                return function(refs, *args)

        self._inner: Any = jax.jit(traced, inline=True)
        self._around: dict[int, Any] = {}
        self._made: dict[str, Callable[..., Any]] = {}
        self.written: set[int] = set()
        """Which of the refs that it is given it was seen to write into."""
        self.written_around: set[int] = set()
        """The identities of the refs from around it into which it was seen to write."""
        self._checks = _Checks()

    def alone(self, contents: Sequence[Any], *args: Any) -> Any:
        """What the function returns, and the contents afterwards."""
        return self.lent((), contents, *args)

    def lent(
        self, lent: Sequence[Any], contents: Sequence[Any], *args: Any, may_give_refs: bool = False
    ) -> Any:
        """The same with refs that the function takes from around it; their contents come last.

        Args:
            may_give_refs: Whether the caller can do without contents, whatever the function writes.

        Raises:
            NeedsOwnWayError: The function gives refs to another one that has rules.
        """
        own = contents[: len(contents) - len(lent)]
        traced = self._traced(own, args)
        around = distinct(refs_around(traced))
        self._around |= {identity(ref): ref for ref in around}
        self._checks.check()
        if not set(map(identity, lent)).issuperset(map(identity, around)):
            raise NeedsRefsError(around)
        self.written |= {i for i in jax_private.written_inputs(traced) if i < len(own)}
        return self._run(traced, lent, contents, own, args, may_give_refs)

    def _traced(self, contents: Sequence[Any], args: tuple[Any, ...]) -> Any:
        """What JAX traces for refs of these contents: at most once for the same types."""
        found: list[Any] = []

        def trace(contents: Sequence[Any]) -> None:
            # Refs that are made here leave no trace in the function that is traced around this.
            found.append(self._inner.trace(list(map(new_ref, contents)), *args))

        jax.eval_shape(trace, list(contents))
        return found[0]

    def _run(
        self,
        traced: Any,
        lent: Sequence[Any],
        contents: Sequence[Any],
        own: Sequence[Any],
        args: tuple[Any, ...],
        may_give_refs: bool,
    ) -> Any:
        """What a traced function returns, and the contents afterwards, by its pure form."""
        jaxpr = traced.jaxpr
        others = dict(zip(map(identity, lent), range(len(own), len(contents)), strict=True))
        around = list(getattr(jaxpr, "consts", ()))
        consts = [*around, *getattr(traced, "_consts", ())]
        indices = [others.get(identity(value)) for value in consts]
        given = [x if i is None else contents[i] for x, i in zip(consts, indices, strict=True)]
        rest, count = tree_util.tree_leaves(args), len(around)
        try:
            found, last = run_pure(jaxpr, given[:count], [*given[count:], *own, *rest])
        except UnknownStepError:
            if may_give_refs or not jax_private.writes(traced):
                ask_for_refs(is_lent=True)
            self.written_around.update(map(identity, lent))
            return self._run_impure(traced, indices, consts, contents, len(own), rest)
        # There is a content for each ref, in the order of the inputs.
        after = list(contents)
        order = [*(i for i in indices if i is not None), *range(len(own))]
        for number, content in zip(order, last, strict=True):
            if number >= len(own) and content is not contents[number]:
                self.written_around.add(identity(lent[number - len(own)]))
            after[number] = content
        return tree_util.tree_unflatten(traced.out_tree, found), after

    @staticmethod
    def _run_impure(
        traced: Any,
        indices: Sequence[int | None],
        consts: Sequence[Any],
        contents: Sequence[Any],
        own: int,
        rest: Sequence[Any],
    ) -> Any:
        """As `_run`, with refs made of the contents."""
        refs = [new_ref(content) for content in contents]
        given = [x if i is None else refs[i] for x, i in zip(consts, indices, strict=True)]
        jaxpr = traced.jaxpr
        count = len(getattr(jaxpr, "consts", ()))
        inner = getattr(jaxpr, "jaxpr", jaxpr)
        found = jax_private.eval_jaxpr(inner, given[:count], *given[count:], *refs[:own], *rest)
        return tree_util.tree_unflatten(traced.out_tree, found), read(refs)

    def for_jax(self, lent: Sequence[Any]) -> Callable[..., Any]:
        """The function that is staged: always the same one, where nothing is lent."""
        if not lent:
            return self.alone
        return lambda contents, *args: self.lent(lent, contents, *args)

    def made(self, name: str, lent: Sequence[Any], function: Callable[..., Any]) -> Any:
        """What is made of this function for a loop: always the same one, where nothing is lent."""
        return function if lent else self._made.setdefault(name, function)

    @contextmanager
    def checking(self, check: Callable[[], None]) -> Iterator[None]:
        """A context that calls `check` now, and whenever the function was traced."""
        before, self._checks.check = self._checks.check, check
        try:
            check()
            yield
        finally:
            self._checks.check = before

    def takes(self, ref: Any) -> bool:
        """Whether the function takes a ref from around it."""
        return identity(ref) in self._around


class RefCall:
    """Refs that are lent to functions for one call.

    Args:
        functions: Each with the name that errors have for it.
        table: The refs among the arguments.
        untraced: That of the arguments, with numbers in the place of these refs.
        roots: What errors call the arguments.
        around: Refs that the functions take from around them.
    """

    def __init__(
        self,
        functions: Sequence[tuple[str, OfContents]],
        table: RefTable,
        untraced: Untraced,
        roots: Roots,
        around: Sequence[Any],
    ) -> None:
        self.functions, self.table, self.around = functions, table, around
        self.untraced, self.roots = untraced, roots
        self.refs = [*table.refs, *around]

    def run(self, call: Callable[[list[Any]], tuple[Any, Sequence[Any]]]) -> Any:
        """Makes a call, writes the contents that it gives, and returns what else it gives.

        Args:
            call: Gets contents, and gives a pair: anything, and the contents afterwards.

        Raises:
            ValueError: A ref among the arguments is taken from around a function, too.
        """
        with ExitStack() as stack:
            for name, function in self.functions:
                stack.enter_context(function.checking(partial(self._check, name, function)))
            result, contents = call(read(self.refs))
        own = len(self.table.refs)
        for number, (ref, content) in enumerate(zip(self.refs, contents, strict=True)):
            if any(_writes(f, number if number < own else None, ref) for _, f in self.functions):
                ref[...] = content
        return result

    def _check(self, name: str, function: OfContents) -> None:
        """Raises what JAX raises where a ref of a call is taken from around a function, too."""
        for number, ref in enumerate(self.table.refs):
            if function.takes(ref):
                found = numbers_of_refs(self.untraced)
                position = next(p for p, known in found.items() if known == number)
                where = place_text(self.untraced.spec.accessors()[position], self.roots)
                raise ValueError(both_texts(name, where))


def _writes(function: OfContents, number: int | None, ref: Any) -> bool:
    if number is not None:
        return number in function.written
    return identity(ref) in function.written_around


def read(refs: Sequence[Any]) -> list[Any]:
    """The contents."""
    return [ref[...] for ref in refs]


@jax.custom_jvp
def _with_derivative_of(old: Any, new: Any) -> Any:
    return new


_with_derivative_of.defjvp(lambda primals, tangents: (primals[1], tangents[0]))


def exchange(ref: Any, old: Any, new: Any) -> None:
    """Writes the content that a function with rules has left in a ref.

    The derivative stays that of the old content, as in JAX: the rules say nothing about it.
    """
    new = jax.lax.stop_gradient(new)
    ref[...] = _with_derivative_of(old, new) if is_differentiable(old) else new
