# SPDX-License-Identifier: Apache-2.0
"""What was found out about structures, for all trees that have an equal one.

A tree that nobody takes apart twice at a time has another spec each time, so what is known may not
end with the spec.
"""

import contextlib
from collections.abc import Hashable
from typing import Generic, TypeVar

from pydag._core import PyDagSpec

Value = TypeVar("Value")
MOST = 256


class KnownOfStructures(Generic[Value]):
    """A value for each of at most 256 structures; then all are dropped.

    A structure whose keys or meta fields raise where they are compared is never known.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[PyDagSpec, Hashable], Value] = {}

    def get(self, spec: PyDagSpec, more: Hashable = None) -> Value | None:
        """What is known of a structure, and of what else it depends on."""
        try:
            return self._known.get((spec, more))
        except Exception:  # code of the user's
            return None

    def set(self, spec: PyDagSpec, value: Value, more: Hashable = None) -> None:
        """Remembers a value."""
        if len(self._known) >= MOST:
            self._known.clear()
        with contextlib.suppress(Exception):  # as above
            self._known[spec, more] = value
