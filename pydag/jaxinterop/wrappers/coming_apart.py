# SPDX-License-Identifier: Apache-2.0
"""Loops whose body doesn't keep what the first carry shares: that comes apart, as in Python."""

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from pydag.jaxinterop.boundary.dag import InnerDag
from pydag.jaxinterop.boundary.match import SharedOtherwiseError
from pydag.jaxinterop.boundary.meet import meet
from pydag.jaxinterop.compiled.lost_tie import LostTieWarning

R = TypeVar("R")


def with_the_sharing_that_holds(run: Callable[[InnerDag], R], carry: InnerDag) -> R:
    """Runs a loop, once more where its body gives back two objects for what is one in the carry.

    Args:
        run: Calls JAX with the carry.
    """
    is_again = False
    while True:
        try:
            return run(carry)
        except SharedOtherwiseError as error:
            found = meet(error.given, error.returned, is_last=is_again)
            if found.untraced == error.given or error.given != carry._untraced:
                raise
            if found.has_modules:
                warn_of_modules(str(error))
            carry, is_again = found.dag(carry._leaves), True


def warn_of_modules(difference: Any) -> None:
    """Says that modules, or what they hold, come apart."""
    warnings.warn(
        f"{difference}\n"
        "  In what comes out they are two. Map with pydag.dag_map where plain jax.tree.map is "
        "called, or tie the result again (pydag.retie).",
        LostTieWarning,
        stacklevel=4,
    )
