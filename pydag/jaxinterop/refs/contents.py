# SPDX-License-Identifier: Apache-2.0
"""Contents of refs, for functions that JAX stages out and may run more than once, or not at all.

The contents are passed among the arguments, and the new contents of written refs are returned.
Inside, the function gets refs of its own.
"""

import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

import pydag._core as _core
from pydag.jaxinterop.foreign import jax_private
from pydag.typing import Leaf

_core.set_identity_everywhere(jax.Ref)  # two Variables of NNX that hold one ref hold one object


def _may_replace() -> bool:
    return jax_private.is_top_level() and jax_private.is_staging()


access = _core.ref_access(
    jax.Ref, jax_private.ArrayImpl, jax.sharding.SingleDeviceSharding, _may_replace, jax.new_ref
)
"""How the core reads and writes contents."""


class WritesMoreError(Exception):
    """A function, traced for other shapes, writes into refs that it wasn't known to write.

    The refs are given by their positions among the traced leaves.
    """

    def __init__(self, written: frozenset[int]) -> None:
        super().__init__(written)
        self.written = written


def are_replaceable(refs: Iterable[Any]) -> bool:
    """Whether the contents of refs can be passed in their place.

    They can where JAX traces nothing and compiles, and the refs do nothing but hold an array.
    """
    return _may_replace() and all(map(jax_private.is_ordinary_ref, refs))


def check_not_closed_over(
    traced: Any, leaves: Sequence[Leaf], refs: Sequence[int], place: Callable[[int], str]
) -> bool:
    """Whether a traced function closes over refs.

    Raises:
        ValueError: One of them is among its arguments, too. Inside they would be two.
    """
    consts = jax_private.closed_over(traced)
    around = [consts[i] for i in jax_private.ref_positions(consts)]
    known = {id(jax_private.get_referent(ref)) for ref in around}
    for i in refs:
        if id(jax_private.get_referent(leaves[i])) in known:
            raise ValueError(
                f"a mutable array reference was both closed over and passed as the argument "
                f"{place(i)}\n  Pass it as an argument alone, or close over it alone."
            )
    return bool(around)


def contents_in(
    leaves: Sequence[Leaf], refs: Sequence[int], written: Collection[int]
) -> list[Leaf]:
    """The leaves, with contents in the place of refs. Written contents have no other owner."""
    found = list(leaves)
    for i in refs:
        content = jax_private.content_of(found[i])
        if i in written and type(found[i]) is jax.Ref and sys.getrefcount(content) > 3:
            content = jnp.copy(content)  # somebody else holds it, such as who called `jax.freeze`
        found[i] = content
    return found


def with_contents(inner: Any, refs: Sequence[int], written: Sequence[int]) -> Callable[..., Any]:
    """A function of leaves with contents for refs, made of a jitted function that takes the refs.

    It returns the result; and the new contents of the written refs, if there are any. Positions
    are among the leaves.
    """

    def flat(*leaves: Leaf) -> Any:
        inside = list(leaves)
        for i in refs:
            inside[i] = jax.new_ref(inside[i])
        found = jax_private.written_inputs(inner.trace(*inside)).intersection(refs)
        if not found.issubset(written):
            raise WritesMoreError(found)
        result = inner(*inside)
        return (result, tuple(inside[i][...] for i in written)) if written else result

    return flat


def threaded(
    flat: Callable[..., Any],
    refs: Sequence[Leaf],
    place: Callable[[int], str],
    *,
    may_write: bool = True,
) -> Callable[..., Any]:
    """A function that takes contents last and also returns the new contents.

    Args:
        flat: The function. It takes refs last.
        refs: The caller's refs.
        place: Returns the path of each.
        may_write: Whether the function may write into them; else it returns its result alone.

    Raises:
        ValueError: When called: the function closes over one of the refs, or writes.
    """
    inner = jax.jit(flat)

    def run(*before_and_contents: Any) -> Any:
        *before, contents = before_and_contents
        inside = list(map(jax.new_ref, contents))
        traced = inner.trace(*before, inside)
        check_not_closed_over(traced, refs, range(len(refs)), place)
        if not may_write and jax_private.written_inputs(traced):
            raise ValueError(
                f"{flat.__name__} writes into a ref of the carry, and is a condition\n"
                "  Write in the body of the loop."
            )
        result = inner(*before, inside)
        return (result, [ref[...] for ref in inside]) if may_write else result

    return run


def write(leaves: Sequence[Leaf], written: Sequence[int], contents: Sequence[Any]) -> None:
    """Makes these the contents of some refs."""
    for i, content in zip(written, contents, strict=True):
        jax_private.set_content(leaves[i], content)
