# SPDX-License-Identifier: Apache-2.0
"""The functions of a carry that JAX's loops call. A ref in the carry stays the same object.

A ref in the carry isn't carried. The body gets the ref at its place and must leave it there; JAX
carries its content, and after the loop that is written into the ref.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from pydag.jaxinterop.function_cache import cached_for_function
from pydag.jaxinterop.messages.naming import ARGUMENTS, Source, named
from pydag.jaxinterop.messages.roots import place_text
from pydag.jaxinterop.packed.dag import InnerDag
from pydag.jaxinterop.refs.contents import OfContents, RefCall
from pydag.jaxinterop.refs.ref_calls import check_around, check_own_way, may_lend, with_ref_contents
from pydag.jaxinterop.refs.table import RefTable, numbers_of_refs

from .coming_apart import with_the_sharing_that_holds

R = TypeVar("R")

Get = Callable[[], Callable[..., Any]]
"""A function that returns the user's function."""

Step = Callable[..., Any]
"""A body of Dags: gets a table of refs, a carry without refs, and what else a loop gives."""


class Body(NamedTuple):
    """A body for JAX, in two forms: of a carry; of contents of refs and a carry."""

    plain: Callable[..., Any]
    of_contents: OfContents


def body_of(fun: Any, key: tuple[Any, ...], make: Callable[..., Step], signature: Any) -> Any:
    """What must be kept alive meanwhile, and the body that JAX gets for a user's function.

    Args:
        make: Gets a function that returns `fun`, and makes the step.
        signature: Has the names of the arguments.
    """

    def made(get: Callable[[], Any]) -> Body:
        step, source = make(get), Source(fun)

        def plain(*args: Any) -> Any:
            found = step(RefTable(), *args)
            check_around()
            return found

        def with_refs(refs: list[Any], *args: Any) -> Any:
            return step(RefTable(refs), *args)

        return Body(
            named(plain, source, signature), OfContents(named(with_refs, source, ARGUMENTS))
        )

    return cached_for_function(fun, key, made)


def looped(
    carry: InnerDag,
    root: str,
    bodies: list[tuple[str, OfContents]],
    plain: Callable[[InnerDag], tuple[InnerDag, R]],
    of_contents: Callable[[list[Any], list[Any], InnerDag], tuple[list[Any], InnerDag, R]],
    *others: InnerDag,
) -> tuple[InnerDag, R, RefTable]:
    """Runs a loop.

    Args:
        carry: The first one.
        root: Its name, for paths in errors.
        bodies: The functions, and what errors call them.
        plain: Calls JAX with a carry.
        of_contents: Calls JAX with the refs that are lent, contents, and a carry without refs.
        others: What else the body, the last of the functions, is given.

    Returns:
        The last carry, what else there is, and the refs whose numbers stand in both.
    """
    table = RefTable()
    bare = table.hide(carry, adds=True)

    def run(lent: list[Any] | None) -> tuple[InnerDag, R]:
        if lent is None or not may_lend([*table.refs, *lent]):
            if table.refs:
                check_own_way(f"a loop carries the ref {_place(bare, root)}")
            return with_the_sharing_that_holds(plain, carry, bodies[-1][1], *others)

        def once(first: InnerDag) -> tuple[InnerDag, R]:
            def call(contents: list[Any]) -> Any:
                after, last, rest = of_contents(lent, contents, first)
                return (last, rest), after

            found: tuple[InnerDag, R] = RefCall(bodies, table, bare._untraced, root, lent).run(call)
            return found

        return with_the_sharing_that_holds(once, bare, bodies[-1][1], *others)

    last, rest = with_ref_contents(run)
    return table.show(last), rest, table


def _place(bare: InnerDag, root: str) -> str | None:
    """The path of the first ref in a carry."""
    untraced = bare._untraced
    position = next(iter(numbers_of_refs(untraced)))
    return place_text(untraced.spec.accessors()[position], root)
