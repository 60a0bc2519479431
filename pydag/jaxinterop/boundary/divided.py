# SPDX-License-Identifier: Apache-2.0
"""Warns where `wrt` takes a leaf in one of several parallel copies, and so in all of them."""

from collections.abc import Callable
from typing import Any

from pydag._core import PyDagSpec
from pydag.jaxinterop.messages.at_call import warn_at_call
from pydag.jaxinterop.prefixes.parallel_copies import Divided, SharedSelectionWarning
from pydag.jaxinterop.refs.access import is_top_level
from pydag.typing import Where

from .function_cache import cached_for_function, frozen


def tell_divided(
    fun: Callable[..., Any], wrt: Where | None, spec: PyDagSpec, find: Callable[[], Divided | None]
) -> None:
    """Warns at each trace; outside of one, once for each function, selection and structure.

    Args:
        spec: Of what is selected in.
        find: Finds such a leaf.
    """
    if wrt is None or not spec.num_shared:
        return
    if is_top_level():
        known: set[Any] = cached_for_function(fun, "divided", lambda _: set())[1]
        try:
            key = spec, frozen(wrt)
            if key in known:
                return
            known.add(key)
        except TypeError:  # a selection that can't be hashed
            pass
    found = find()
    if found is not None:
        warn_at_call(found.text("wrt"), SharedSelectionWarning)
