# SPDX-License-Identifier: Apache-2.0
"""Arguments that are updated: leaves that a function wrote are written into the caller's objects.

The leaves are written when the call returns, each once, either all of them or none. Structure,
sharing and static leaves must not change. Objects keep their identity, in the result too.
"""

import functools
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import pydag._core as _core
from pydag.errors import SharingError
from pydag.jaxinterop.content.leaves import is_number, is_traced
from pydag.jaxinterop.content.options import CALL, MISSING
from pydag.jaxinterop.content.static import static_positions
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.treatments.arguments import Spot, spot_text
from pydag.sharing.update import find_writer
from pydag.structure.text import short_repr
from pydag.typing import Dag, Leaf

from .changes import Changes, Place


class Update(NamedTuple):
    """What a call writes into its arguments: new leaves; the plan says where."""

    plan: Any = None
    leaves: tuple[Leaf, ...] = ()

    @classmethod
    def of(
        cls, changes: Changes, result: Dag, donated: Collection[Leaf], is_staged: bool
    ) -> "Update":
        """What a function has written into arguments, and which of their objects it returns.

        The caller's objects get donated leaves back. A staged function is traced to be run later.
        """
        for structure in changes.structures:
            raise _other_structure(changes, *structure)
        written = _written(changes, is_staged)
        for tie in changes.ties:
            raise _other_tie(changes, *tie)
        before = changes.before.leaves
        overwritten, olds = set(map(id, donated)), set(map(id, before))
        for i, x in written.items():
            if id(x) in olds and not jax_private.is_ref(x):
                written[i] = jnp.copy(x)
        written = {i: before[i] for i in changes.leaves if id(before[i]) in overwritten} | written
        origins, returned = _returned(result, changes)
        if not written and returned is None:
            return cls()
        plan = _core.update_plan(
            spec=changes.before.spec,
            positions=tuple(written),
            writers=find_writer,
            origins=origins,
            returned=returned,
            roots=CALL,
        )
        return cls(plan, tuple(written.values()))


def _written(changes: Changes, is_staged: bool) -> dict[int, Leaf]:
    """The new leaves of updated arguments, by their numbers."""
    written: dict[int, Leaf] = {}
    given, static, selected = changes.before, frozenset[int](), list[int]()
    if not all(isinstance(change.old, jax.Array) for change in changes.own):
        if given.options.static is not None:
            selected = given.options.selected(given.leaves, given.spec, CALL, is_result=True)
        static = frozenset(static_positions(given.leaves, given.spec, CALL, selected))
    for place, number, old, new in changes.own:
        path = functools.partial(changes.text, place)
        if number is None or number in static:
            if number is not None and not _core.is_same_value(old, new):
                raise ValueError(
                    f"{path()} was {short_repr(old)} and is {short_repr(new)}: it is static, and "
                    "an update only writes arrays\n  If it changes from call to call, make it an "
                    "array; or return it, and set it after the call."
                )
            continue
        if not isinstance(new, jax.Array) and not is_traced(new):
            raise ValueError(
                f"{path()} was an array and is {short_repr(new)}: an update only writes arrays\n"
                "  Set what is configuration outside of the function."
            )
        if jax_private.is_dead(new):
            raise jax.errors.UnexpectedTracerError(
                f"{path()} was written inside of an inner function (jit, scan, cond ...) whose "
                "trace has ended\n  Pass the object to the inner function as an argument, and "
                "return what changed; jit, grad and checkpoint have update_argnums."
            )
        if is_staged and jax_private.is_ref(new):
            raise TypeError(
                f"the function puts another ref at {path()}, which can't come out of a compiled "
                "function as an update\n  Write into the ref that stands there: ref[...] = value."
            )
        # A number in the place of an array is one of no dimension, as what `jit` returns.
        written[number] = jnp.asarray(new) if is_number(new) else new
    return written


def _other_structure(
    changes: Changes, spot: Spot, before: _core.PyDagSpec, now: _core.PyDagSpec
) -> Exception:
    others = [changes.text(c.place) for c in changes.own if MISSING in (c.old, c.new)]
    is_prefix = before.is_prefix(now) or now.is_prefix(before)
    kind, what = ValueError, "its structure"
    cure = (
        "Make what is missing before the call (an array of zeros for None); set what is "
        "configuration, such as a flag, outside of the function; or return the new object."
    )
    if before.num_paths == now.num_paths and is_prefix and not others:
        kind, what = SharingError, "what is shared in it"
        cure = "Write jnp.copy(x) at one of the places; or give one object at both beforehand."
        if (now.num_nodes, now.num_leaves) > (before.num_nodes, before.num_leaves):
            cure = "Write at all places of the tie; or untie them before the call (pydag.untie)."
    shown = _core.explain(before, now, roots=spot_text(spot))
    if others:
        shown += f"\n  What came or went: {', '.join(others[:4])}"
    return kind(
        "an argument that is updated must keep its structure, but the function changes "
        f"{what}\n  (first: as it was given, second: as the function left it)\n{shown}\n  {cure}"
    )


def _other_tie(changes: Changes, first: Place, second: Place, was_one: bool) -> SharingError:
    makes, given, now = (
        ("cuts", "one object", "two") if was_one else ("makes", "two objects", "one")
    )
    cure = (
        "Write at both places, or into the object that stands there; or give one of them a copy "
        "before the call (pj.tree.copy(...))."
        if was_one
        else "Inside the function, write jnp.copy(x) for an array, pj.tree.copy(x) for what holds "
        "arrays; or update both arguments (update_argnums), and give them one object."
    )
    return SharingError(
        f"the function {makes} a tie between an argument that is updated and another place\n"
        f"  given: {changes.text(first)} and {changes.text(second)} are {given}\n"
        f"  now: they are {now}\n  {cure}"
    )


def _returned(result: Dag, changes: Changes) -> tuple[tuple[int, ...], Any]:
    """The nodes of updated arguments that came back, and what puts the caller's own there."""
    own, namespace = changes.objects, changes.before.options.namespace
    found, spec = _core.flatten(result, is_leaf=lambda x: id(x) in own, namespace=namespace)
    numbers = [i for i, x in enumerate(found) if id(x) in own]

    def put(result: Dag, origins: Sequence[Any]) -> Dag:
        # The result has the structure that it had when it was traced.
        parts = spec.flatten_up_to(result)
        for i, origin in zip(numbers, origins, strict=True):
            parts[i] = origin
        return _core.unflatten(spec, parts)

    return tuple(own[id(found[i])] for i in numbers), put if numbers else None
