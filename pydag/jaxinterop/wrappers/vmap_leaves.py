# SPDX-License-Identifier: Apache-2.0
"""`vmap` of leaves alone: where they are arrays, JAX opens a list faster than a `Call`.

A `Call` has the paths of its leaves, for JAX's errors about arrays that can't be mapped. JAX raises
these before it calls the function; so then it is given the `Call`, and says which leaf is meant.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from pydag.jaxinterop.boundary.call import Call
from pydag.jaxinterop.messages.naming import COUNTED, Source, named
from pydag.jaxinterop.packed.dag import rebuilt
from pydag.jaxinterop.static.differentiable import holds_ref
from pydag.jaxinterop.static.untraced import Untraced
from pydag.typing import Leaf

Function = Callable[[Call], Any]


class _Running(threading.local):
    """For each call that runs in this thread whether its function was called."""

    def __init__(self) -> None:
        self.calls: list[list[bool]] = []


_running = _Running()


class MappedLeaves:
    """A function of calls with one untraced part and with arrays alone.

    Args:
        untraced: That part.
        axes: Those of the leaves.
        function: The function that is mapped.
        mapping: Maps a function of one argument, given its axes.
    """

    def __init__(
        self,
        untraced: Untraced,
        axes: Call,
        function: Function,
        source: Source,
        mapping: Callable[[Callable[[Any], Any], Any], Callable[[Any], Any]],
    ) -> None:
        self._axes, self._function, self._mapping = axes, function, mapping

        def of_leaves(leaves: Sequence[Leaf]) -> Any:
            _running.calls[-1].append(True)
            return function(rebuilt(untraced, leaves, Call))

        self._mapped = mapping(named(of_leaves, source, COUNTED), list(axes._leaves))

    @staticmethod
    def fits(call: Call) -> bool:
        """Whether a call has nothing but arrays."""
        return not call._untraced.positions and not holds_ref(call._leaves)

    def __call__(self, call: Call) -> Any:
        calls, entries = _running.calls, list[bool]()
        calls.append(entries)
        try:
            return self._mapped(list(call._leaves))
        except (TypeError, ValueError):
            if entries:
                raise
        finally:
            calls.pop()
        return self._mapping(self._function, self._axes)(call)
