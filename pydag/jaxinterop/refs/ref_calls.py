# SPDX-License-Identifier: Apache-2.0
"""How functions that JAX stages out get at refs: which are lent, and when JAX is given them itself.

JAX is given refs that can't be lent, since they have a kind or a memory of their own, and those
that the rule backward of a `custom_vjp` may write into: it runs when lent refs are gone. The
latter only if the function writes into no ref before: under a derivative JAX would do so twice.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import jax

from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.foreign.jax_private import identity
from pydag.jaxinterop.static.differentiable import is_ref

from .steps import can_purify

R = TypeVar("R")


class NeedsRefsError(Exception):
    """A function that is staged writes into refs from around it; it has to be lent these."""

    def __init__(self, refs: Sequence[Any]) -> None:
        super().__init__(refs)
        self.refs = list(refs)


class NeedsOwnWayError(Exception):
    """A rule may write into lent refs when they are gone: JAX has to be given the refs."""


class OutOfReachError(ValueError):
    """A rule that runs after a staged function was traced writes into refs from inside of it."""


class _State(threading.local):
    """What is true of the function that is traced now.

    Attributes:
        is_own_way: Whether JAX is given refs, which it handles in its own way.
        is_for_a_rule: Whether that is so since a rule backward may write into them.
        out_of_reach: The error about a rule that writes where JAX can't be given the refs.
        stages: How many functions that were lent refs are being traced.
        is_asked: Whether a rule is run just to see what it writes.
    """

    is_own_way = False
    is_for_a_rule = False
    out_of_reach: OutOfReachError | None = None
    stages = 0
    is_asked = False


_state = _State()


@contextmanager
def _during(**attributes: Any) -> Iterator[None]:
    before = {name: getattr(_state, name) for name in attributes}
    vars(_state).update(attributes)
    try:
        yield
    finally:
        vars(_state).update(before)


def staging() -> AbstractContextManager[None]:
    """A context in which a function is traced that was lent refs."""
    return _during(stages=_state.stages + 1)


def asking() -> AbstractContextManager[None]:
    """A context in which rules are run just to see what they write."""
    return _during(is_asked=True)


def is_asking() -> bool:
    """Whether rules are run just to see what they write."""
    return _state.is_asked


def check_around(reads: bool = False) -> None:
    """Raises `NeedsRefsError` where what is traced needs to be lent refs from around it.

    It does if it writes into them, unless JAX is left to do that in its own way.

    Args:
        reads: Whether it needs those that it reads, too.
    """
    taken, written = jax_private.around()
    if written or jax_private.writes_into_inputs():
        check_own_way("a function writes into a ref")
    needed = list(filter(is_ref, taken)) if reads else written
    if needed and not _state.is_own_way:
        raise NeedsRefsError(needed)


def ask_for_refs(is_lent: bool = False) -> OutOfReachError | None:
    """Asks for refs that a rule backward may write into; gives an error where there is no way.

    Args:
        is_lent: Whether the refs are lent for sure; else they are if what is traced now was lent
            refs.

    Raises:
        NeedsOwnWayError: They are lent, and needn't be.
    """
    if not (is_lent or _state.stages):
        return None
    if _state.out_of_reach is None:
        raise NeedsOwnWayError
    return _state.out_of_reach


def check_own_way(why: str) -> None:
    """Raises `OutOfReachError` where JAX is given refs for a rule, and can't be."""
    if _state.is_for_a_rule:
        raise _out_of_reach(why)


def _out_of_reach(why: str) -> OutOfReachError:
    return OutOfReachError(
        "the rule backward of a custom_vjp writes into a ref, and runs when the ref is gone: "
        f"{why}, and JAX differentiates loops, branches and checkpoints as a whole\n"
        "  Call the function that has the rule outside of them; or let it close over the ref, "
        "with nothing else there that writes into refs; or give it another argument, zeros, "
        "and let the rule return what it would write as the cotangent of that."
    )


_NO_INPUT = "does not have a corresponding jaxpr input"
_RETURNED = "mutable array references cannot be returned"
_OURS = str(Path(__file__).parents[1])


def _is_of_rule(error: Exception) -> bool:
    if isinstance(error, AssertionError) and not error.args:
        return True
    text = str(error)
    # A function of a wrapper returns no refs. JAX names it if a rule kept one that was lent to it.
    return _NO_INPUT in text or (_RETURNED in text and _OURS in text)


def blame_rule(error: Exception, where: Callable[[], Sequence[str]]) -> None:
    """Raises `OutOfReachError` for what JAX raises of a ref that a plain `jax.custom_vjp` kept.

    Such a rule can't be looked into, and JAX has an assertion, or a word on its own terms.

    Args:
        where: Gives the paths of the refs that the function was given.
    """
    if isinstance(error, OutOfReachError) or not _is_of_rule(error):
        return
    paths = where()
    if paths:
        raise _out_of_reach(f"{', '.join(paths)} is lent to what is differentiated") from error


@jax_private.shortens_tracebacks
def with_ref_contents(run: Callable[[list[Any] | None], R]) -> R:
    """Runs what stages a function; if that needs refs from around it, runs it again with these.

    Args:
        run: Gets the refs to lend; None where a ref can't be lent, and JAX must do it in its way.
    """
    lent: list[Any] | None = []
    wanted: list[Any] | None = None  # what was lent before a rule asked for refs
    out_of_reach = _state.out_of_reach
    while True:
        is_for_a_rule = lent is None and wanted is not None
        try:
            with _during(
                is_own_way=lent is None, is_for_a_rule=is_for_a_rule, out_of_reach=out_of_reach
            ):
                return run(lent)
        except NeedsRefsError as error:
            if lent is None:
                raise
            more = distinct([*lent, *error.refs])
            lent = more if len(more) > len(lent) and may_lend(more) else None
        except NeedsOwnWayError:
            if lent is None:
                raise
            lent, wanted = None, lent
        except OutOfReachError as error:
            if not is_for_a_rule:
                raise
            lent, out_of_reach = wanted, error  # raised if the function is differentiated


def distinct(refs: Sequence[Any]) -> list[Any]:
    """The refs, each once."""
    return list({identity(ref): ref for ref in refs}.values())


def may_lend(refs: Sequence[Any]) -> bool:
    """Whether there are refs, traced or not, all known to do nothing but hold an array."""
    if not (refs and jax_private.write_effects and can_purify()):
        return False
    types = [jax.typeof(ref) for ref in refs]
    return all(getattr(t, "memory_space", 0) is None and t.kind is None for t in types)
