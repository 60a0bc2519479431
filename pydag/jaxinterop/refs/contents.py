# SPDX-License-Identifier: Apache-2.0
"""Functions that JAX stages out, such as a loop's body: they get and return contents of refs.

Outside, the contents are read before, and what was written is written once afterwards. So under a
derivative, where JAX runs parts of such a function more than once, no write happens twice.

A ref that the function takes from around it, and writes into, is lent to it in the same way.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
from jax import tree_util

from pydag.jaxinterop import jax_private
from pydag.jaxinterop.static.differentiable import is_ref

from .access import new_ref

R = TypeVar("R")


class NeedsRefsError(Exception):
    """A function that is staged writes into refs from around it; it has to be lent these."""

    def __init__(self, refs: Sequence[Any]) -> None:
        super().__init__(refs)
        self.refs = list(refs)


def check_around() -> None:
    """Raises `NeedsRefsError` where what is traced writes into refs from around it."""
    written = jax_private.around()[1]
    if written:
        raise NeedsRefsError(written)


def lending(run: Callable[[list[Any]], R]) -> R:
    """Runs what stages a function, once more with the refs that this needs.

    Args:
        run: Is given the refs to lend.
    """
    lent: list[Any] = []
    while True:
        try:
            return run(lent)
        except NeedsRefsError as error:
            lent = _distinct([*lent, *error.refs])


def _distinct(refs: Sequence[Any]) -> list[Any]:
    return list({id(ref): ref for ref in refs}.values())


class OfContents:
    """A function of refs and pytrees as one of contents and pytrees.

    Args:
        function: Gets refs, a list, and pytrees without refs; it returns a pytree without refs.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._inner: Any = jax.jit(function, inline=True)
        self._around: dict[int, Any] = {}
        self.written: set[int] = set()
        """Which of the refs that it is given it was seen to write into."""

    def alone(self, contents: Sequence[Any], *args: Any) -> Any:
        """What the function returns, and the contents afterwards."""
        return self.lent((), contents, *args)

    def lent(self, lent: Sequence[Any], contents: Sequence[Any], *args: Any) -> Any:
        """The same with refs that the function takes from around it; their contents come last."""
        refs = [new_ref(content) for content in contents]
        own = refs[: len(refs) - len(lent)]
        traced = self._inner.trace(own, *args)
        around = [jax_private.referent(x) for x in jax_private.closed_over(traced) if is_ref(x)]
        self._around |= {id(ref): ref for ref in around}
        written = _written_around(traced)
        known = set(map(id, lent))
        if not known.issuperset(map(id, written)):
            raise NeedsRefsError(written)
        self.written |= {i for i in jax_private.written_inputs(traced) if i < len(own)}
        if lent:
            result = _run_with(traced, dict(zip(map(id, lent), refs[len(own) :], strict=True)), (own, *args))
        else:
            result = self._inner(own, *args)
        return result, [ref[...] for ref in refs]

    def for_jax(self, lent: Sequence[Any]) -> Callable[..., Any]:
        """The function that is staged: always the same one, where nothing is lent."""
        if not lent:
            return self.alone
        return lambda contents, *args: self.lent(lent, contents, *args)

    def takes(self, ref: Any) -> bool:
        """Whether the function takes a ref from around it."""
        return id(ref) in self._around


def _written_around(traced: Any) -> list[Any]:
    """The refs from around it that a traced function writes into."""
    jaxpr = traced.jaxpr
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    pairs = [*zip(inner.constvars, getattr(jaxpr, "consts", ()), strict=True)]
    pairs += zip(inner.invars, getattr(traced, "_consts", ()), strict=False)
    values = {id(var): jax_private.referent(value) for var, value in pairs}
    effects = (e for e in inner.effects if isinstance(e, jax_private.write_effects))
    return _distinct([values[id(e.input)] for e in effects if id(e.input) in values])


def _run_with(traced: Any, others: dict[int, Any], args: Any) -> Any:
    """What a traced function returns with other refs for those from around it."""

    def exchanged(value: Any) -> Any:
        return others.get(id(jax_private.referent(value)), value)

    jaxpr = traced.jaxpr
    consts = [exchanged(value) for value in getattr(jaxpr, "consts", ())]
    outer = [exchanged(value) for value in getattr(traced, "_consts", ())]
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    found = jax_private.eval_jaxpr(inner, consts, *outer, *tree_util.tree_leaves(args))
    return tree_util.tree_unflatten(traced.out_tree, found)


def may_lend(refs: Sequence[Any]) -> bool:
    """Whether refs, traced or not, are nothing but places for arrays, and can be told to be."""
    if not jax_private.write_effects or jax_private.eval_jaxpr is None:
        return False
    types = [jax.typeof(ref) for ref in refs]
    return all(getattr(t, "memory_space", 0) is None and t.kind is None for t in types)


def read(refs: Sequence[Any]) -> list[Any]:
    """The contents."""
    return [ref[...] for ref in refs]


def write(refs: Sequence[Any], contents: Sequence[Any], own: int, written: set[int]) -> None:
    """Writes into the refs that a function wrote into.

    Args:
        own: So many of the refs are arguments; the others were lent, and are written into.
        written: Which of the arguments are.
    """
    for number, (ref, content) in enumerate(zip(refs, contents, strict=True)):
        if number >= own or number in written:
            ref[...] = content
