# SPDX-License-Identifier: Apache-2.0
"""Why arguments can't be updated: they no longer have the structure, or the ties, that they had."""

from typing import Any

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.errors import SharingError
from pydag.jaxinterop.messages.roots import with_roots


def cut_tie(written: str, kept: str) -> SharingError:
    """The error where an object that stays as it is holds what is updated, too.

    Args:
        written: The path at which another object stands now.
        kept: The path at which it doesn't.
    """
    return SharingError(
        f"the function cuts a tie of what it updates\n"
        f"  given: {written} and {kept} are one object\n"
        f"  now: another one stands at {written} alone\n"
        "  Write it at both places; or give one of them a copy before the call "
        '(pj.tree.map(jnp.copy, ...)), or say identity="nodes".'
    )


def another_structure(
    old: PyDagSpec,
    new: PyDagSpec,
    before: tuple[Any, ...],
    after: tuple[Any, ...],
    names: tuple[str, ...],
) -> ValueError:
    """The error where an argument that is updated has another structure than it had.

    Args:
        before: The arguments as they were given.
        after: The same as the function left them.
        names: What the caller calls them.
    """
    error: type[ValueError] = ValueError
    for spec, tree in ((old, after), (new, before)):
        try:
            spec.flatten_up_to(tree)
        except SharingError:
            error = SharingError
        except ValueError:
            error = ValueError
            break
    what = "what is shared in it" if error is SharingError else "its structure"
    text = "\n".join("  " + line for line in _core.explain(old, new).splitlines())
    return error(
        "an argument that is updated must keep its structure, but the function changes "
        f"{what}\n"
        "  (first: as it was given, second: as the function left it)\n"
        f"{with_roots(text, names)}\n"
        "  Leaves alone are written into the caller's objects. "
        + (
            "Write one object at both places, or give one of them a copy before the call; "
            'with identity="nodes" arrays have no identity.'
            if error is SharingError
            else "Make what is missing before the call (an array of zeros for None), or return "
            "the new object."
        )
    )
