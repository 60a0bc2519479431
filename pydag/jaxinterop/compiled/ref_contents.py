# SPDX-License-Identifier: Apache-2.0
"""Calls with refs: the compiled function gets their contents, where that can be."""

from collections.abc import Sequence

import jax

import pydag._core as _core
from pydag._core import CallKey
from pydag.jaxinterop.refs.access import may_pass_contents, refs_around
from pydag.jaxinterop.static.leaves import Carried
from pydag.typing import Leaf

from .extra_results import (
    ExtraKey,
    ExtraResults,
    TracedCall,
    check_not_closed_over,
    contents_in,
    pins_of,
    written_refs,
)
from .flat_functions import FlatFunctions
from .key import Keys
from .leaf_groups import LeafGroups
from .shardings import Shardings

Refs = tuple[int, ...]
"""Where refs stand, among all leaves."""


class RefContents:
    """Takes calls with refs apart, for one function by `jit`."""

    def __init__(self, functions: FlatFunctions, shardings: Shardings, as_one: Keys) -> None:
        self._functions, self._shardings, self._as_one = functions, shardings, as_one

    def traced_call(
        self, groups: LeafGroups, key: CallKey, leaves: Sequence[Leaf], refs: Refs
    ) -> tuple[TracedCall, _core.CallPlan | None]:
        """A call with refs, ready for JAX, and how the core makes the next one, where it can."""
        refs = tuple(i for i in refs if i not in groups.positions)
        self._shardings.check_refs(leaves, refs, groups.flat_arguments.groups, groups.spec)
        if not may_pass_contents([leaves[i] for i in refs]):
            flat_arguments = groups.flat_arguments
            arguments = flat_arguments.pick(key, leaves)
            closed_over = refs_around(self._functions.jitted.trace(*arguments))
            check_not_closed_over(closed_over, leaves, groups.spec, self._functions.source.text)
            return TracedCall(self._functions.jitted, arguments, leaves), None
        inner = groups.inner_key(key)
        extras = groups.extras.get(inner)
        if extras is None:
            # At most once for arrays of the same shapes: JAX keeps what it traced.
            traced = self._functions.inner.trace(*groups.all_kept().pick(inner, leaves))
            written = written_refs(traced, groups.numbers(refs))
            found = ExtraResults(refs, refs_around(traced), written)
            extras = groups.extras.setdefault(inner, found)
        check_not_closed_over(extras.closed_over, leaves, groups.spec, self._functions.source.text)
        return self._with_contents(groups, key, inner, leaves, extras)

    def _with_contents(
        self,
        groups: LeafGroups,
        outer: CallKey,
        inner: CallKey,
        leaves: Sequence[Leaf],
        extras: ExtraResults,
    ) -> tuple[TracedCall, _core.CallPlan | None]:
        known = extras.written
        numbers = tuple(sorted(known.positions))
        written = tuple(groups.traced[i] for i in numbers)
        flat_arguments = known.flat_arguments
        if flat_arguments is None:
            gone = groups.gone().union(written)
            flat_arguments = groups.donating(gone, self._shardings.number)
            self._functions.names.remember(flat_arguments)
            known.flat_arguments = flat_arguments
        pins = pins_of(leaves, written)
        call_key = known.keys.get(pins)
        if call_key is None:
            key = ExtraKey(
                inner,
                Carried(groups.all_kept().tag),
                flat_arguments.donated,
                flat_arguments.order,
                groups.numbers(extras.refs),
                numbers,
                pins,
            )
            call_key = known.keys[pins] = self._as_one(key)
        plan = None
        if not (extras.closed_over or any(pins) or self._shardings.has_given_in):
            more = {
                "key": call_key,
                "refs": extras.refs,
                "written": written,
                "function": self._functions.with_extras,
                "has_devices": jax.local_device_count() > 1,
            }
            plan = groups.plan(outer, leaves, flat_arguments, **more)
        arguments = flat_arguments.pick(call_key, contents_in(leaves, extras.refs, written))
        to_write = [leaves[i] for i in written]
        traced_call = TracedCall(self._functions.with_extras, arguments, leaves, written=to_write)
        return traced_call, plan
