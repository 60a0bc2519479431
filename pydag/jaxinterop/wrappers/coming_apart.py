# SPDX-License-Identifier: Apache-2.0
"""Loops whose body doesn't keep what the first carry shares: that comes apart, as in Python."""

import weakref
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from pydag.jaxinterop.boundary.common_sharing import CommonSharing, common_sharing
from pydag.jaxinterop.boundary.match import SharedOtherwiseError
from pydag.jaxinterop.messages.at_call import warn_at_call
from pydag.jaxinterop.notices.lost_tie import LostTieWarning, loses_a_tie
from pydag.jaxinterop.packed.dag import InnerDag

R = TypeVar("R")

# For each body that JAX gets: what comes apart, by the types that it is traced for. Like JAX, this
# assumes that a function does the same whenever it is given the same.
_known: "weakref.WeakKeyDictionary[Any, dict[Hashable, Apart]]" = weakref.WeakKeyDictionary()
_MOST_KNOWN = 64  # for one body


class Apart(NamedTuple):
    """How a carry comes apart, and what the warning about it says, if there is one."""

    common: CommonSharing
    warnings: tuple[str, ...]


def with_the_sharing_that_holds(
    run: Callable[[InnerDag], R], carry: InnerDag, body: Any, *others: InnerDag
) -> R:
    """Runs a loop, once more where its body gives back two objects for what is one in the carry.

    Where it did so at an earlier call, for the same types, it isn't tried again.

    Args:
        run: Calls JAX with the carry.
        body: What JAX traces.
        others: What else the body is given.
    """
    known = _known.setdefault(body, {})
    key = tuple((dag._untraced, tuple(map(_type_of, dag._leaves))) for dag in (carry, *others))
    given, apart = carry, known.get(key)
    if apart is not None:
        for text in apart.warnings:
            warn_of_modules(text)
        carry = apart.common.dag(given._leaves)
    texts: list[str] = []
    while True:
        try:
            return run(carry)
        except SharedOtherwiseError as error:
            found = common_sharing(error.given, error.returned, is_last=carry is not given)
            if found.untraced == error.given or error.given != carry._untraced:
                raise
            if found.has_modules and loses_a_tie(error.given.spec, error.returned.spec):
                texts.append(str(error))
                warn_of_modules(str(error))
            if carry is not given:  # for each place, the number of its leaf in the first carry
                order = [_order(apart, i) for i in found.order]
                found = found._replace(order=order)
            apart = Apart(found, tuple(texts))
            if len(known) >= _MOST_KNOWN:
                known.clear()
            known[key] = apart
            carry = found.dag(given._leaves)


def _order(apart: Apart | None, i: int) -> int:
    return i if apart is None else apart.common.order[i]


def _type_of(leaf: Any) -> Hashable:
    """What JAX traces for a leaf, as part of a key."""
    aval = getattr(leaf, "aval", None)
    return aval if aval is not None else (type(leaf), np.shape(leaf), getattr(leaf, "dtype", None))


def warn_of_modules(difference: Any) -> None:
    """Says that modules, or what they hold, come apart."""
    warn_at_call(
        f"{difference}\n"
        "  In what comes out they are two. Map with pydag.dag_map where plain jax.tree.map is "
        "called, or tie the result again (pydag.retie).",
        LostTieWarning,
    )
