# SPDX-License-Identifier: Apache-2.0
"""What JAX leaves out when an array is used that was donated: which one, and who donated it."""

import weakref
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from pydag._core import PyDagSpec
from pydag.jaxinterop.messages.naming import Source
from pydag.jaxinterop.messages.path_texts import path_texts
from pydag.jaxinterop.messages.roots import CALL
from pydag.jaxinterop.prefixes.arguments import Spot
from pydag.typing import Leaf

_MOST_NAMED = 4

# What JAX raises for one; older releases raise a ValueError on the way without Python.
DELETED = RuntimeError, ValueError

# Objects with a `source`, the latest last. Nobody notes which array was given to which: that would
# cost every call.
_donors: "weakref.WeakKeyDictionary[Any, None]" = weakref.WeakKeyDictionary()


def note_donor(compiled: Any) -> None:
    """Notes a compiled function that donates arguments."""
    _donors[compiled] = None


def is_about_deleted(error: Exception) -> bool:
    """Whether JAX may have raised an error because an array was deleted."""
    message = error.args[0] if error.args else None
    return type(message) is str and "deleted" in message


def blame_deleted(
    error: Exception,
    source: Source,
    leaves: Sequence[Leaf],
    spec: PyDagSpec,
    donated: AbstractSet[Spot],
) -> None:
    """Says which leaf of a call was deleted, and which functions donate theirs.

    Args:
        source: Of the function that was called.
        spec: Of the arguments, positional ones and keywords.
        donated: The arguments that this function donates.
    """
    deleted = [i for i, leaf in enumerate(leaves) if _is_deleted(leaf)]
    if not deleted:
        return
    texts = path_texts(spec, CALL)
    more = f", and {len(deleted) - 1} more" if len(deleted) > 1 else ""
    error.add_note(f"The array was deleted before this call: {texts[deleted[0]]}{more}.")
    donors = list(dict.fromkeys(donor.source.text for donor in reversed(list(_donors))))
    if spec.accessors()[deleted[0]][1].entry in donated:
        error.add_note(
            f"{source.text} donates this argument (donate_argnums, donate_argnames): a call uses "
            "up its arrays. Go on with what the call before returned."
        )
    elif donors:
        named = ", ".join(donors[:_MOST_NAMED]) + (", ..." if len(donors) > _MOST_NAMED else "")
        error.add_note(
            f"Of the functions compiled by pydag.jaxinterop.jit these donate arguments: {named}. "
            "Go on with what such a call returned."
        )


def _is_deleted(leaf: Leaf) -> bool:
    asked = getattr(leaf, "is_deleted", None)
    return type(leaf).__module__.partition(".")[0] == "jaxlib" and asked is not None and asked()
