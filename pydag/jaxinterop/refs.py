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


class Refs(list[Leaf]):
    """The refs among the leaves of a call.

    JAX stages out functions that close over them, or that get their contents (`with_contents`).

    Attributes:
        positions: Which of the leaves they are.
        origins: Which of them each is, by its id: so results name those that come back.
    """

    def __init__(self, leaves: Sequence[Leaf]) -> None:
        self.positions = tuple(jax_private.ref_positions(leaves))
        super().__init__([leaves[i] for i in self.positions])
        self.origins = {id(ref): number for number, ref in enumerate(self)}

    def without(self, items: Sequence[Any]) -> list[Any]:
        """The items that belong to other leaves, given an item for each leaf."""
        return [item for i, item in enumerate(items) if i not in self.positions]

    def among(self, others: Sequence[Leaf]) -> list[Leaf]:
        """All leaves, given the others."""
        leaves = list(others)
        for i, ref in zip(self.positions, self, strict=True):
            leaves.insert(i, ref)
        return leaves

    def assign(self, contents: Sequence[Any]) -> None:
        """Writes new contents into the refs, as the user does."""
        for ref, content in zip(self, contents, strict=True):
            ref[...] = content


class WritesMoreError(Exception):
    """A function, traced for other shapes, writes into more refs: at these positions of leaves."""


def are_replaceable(refs: Iterable[Any]) -> bool:
    """Whether the contents of refs can be passed in their place.

    They can where JAX traces nothing and compiles, and the refs do nothing but hold an array.
    """
    return _may_replace() and all(map(jax_private.is_ordinary_ref, refs))


def check_not_closed_over(
    traced: Any, leaves: Sequence[Leaf], refs: Sequence[int], place: Callable[[int], str]
) -> bool:
    """Whether a traced function closes over refs; `ValueError` if it gets one of these, too."""
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


def with_contents(
    inner: Any, refs: Sequence[int], written: Sequence[int], check: Callable[[Any], None]
) -> Callable[..., Any]:
    """A function that takes contents for refs, made of a jitted function that takes the refs.

    It returns the result; and the new contents of the written refs, if there are any.

    Args:
        refs, written: The positions of arguments.
        check: Gets what JAX has traced, before it runs.
    """

    def flat(*args: Any) -> Any:
        inside = list(args)
        for i in refs:
            inside[i] = jax.new_ref(inside[i])
        check(inner.trace(*inside))
        result = inner(*inside)
        return (result, tuple(inside[i][...] for i in written)) if written else result

    return flat
