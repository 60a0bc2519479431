# SPDX-License-Identifier: Apache-2.0
"""A warning about changes that a function makes in its arguments, and that are lost."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

import pydag._core as _core
from pydag.jaxinterop.content.leaves import is_number, is_traced
from pydag.jaxinterop.content.paths import CALL, MISSING
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.foreign.equinox_private import is_equinox_module
from pydag.jaxinterop.treatments.arguments import Spot, pick, spot_text
from pydag.jaxinterop.updates.changes import Change, Given, is_registered, nodes_of
from pydag.structure.text import short_repr
from pydag.typing import Dag

from .source import Source


class LostUpdateWarning(UserWarning):
    """A function changed an object of an argument, and the change is lost."""


def warn_of_lost_updates(
    given: Given,
    changes: Sequence[Change],
    result: Dag,
    source: Source,
    *,
    updated: Collection[Spot] = (),
    has_option: bool = False,
) -> None:
    """Warns if the function changed modules or records, and returns neither these nor new values.

    Args:
        changes: What the function changed in the tree that it was given.
        updated: The arguments that are updated.
        has_option: Whether the wrapper has the option `update_argnums`.
    """
    options = given.options
    nodes = nodes_of(result, options)
    classes = {type(node) for node in nodes.values() if is_registered(node, options.namespace)}
    leaves = {id(leaf) for leaf in _core.leaves(result, namespace=options.namespace)}
    if updated:
        own = pick(given.tree, updated)
        nodes |= nodes_of(own, options)
        leaves |= {id(leaf) for leaf in _core.leaves(own, namespace=options.namespace)}
    were_there = set(map(id, given.outermost))

    def is_lost(change: Change) -> bool:
        owners = [h for h in change.holders if is_registered(h, options.namespace)]
        if not owners or id(owners[0]) not in were_there or type(owners[-1]) in classes:
            return False  # a dict or list that nothing registered holds may be changed freely
        if id(change.new) in leaves or any(id(holder) in nodes for holder in change.holders):
            return False
        if change.new is MISSING:
            return True
        if is_traced(change.new) and not is_number(change.new):
            return not jax_private.is_ref(change.new)
        if change.old is MISSING:  # an attribute that holds configuration is left alone
            return owners[-1] is not change.holders[-1]
        is_flag = isinstance(change.new, bool | np.bool_)
        is_other = not _core.is_same_value(change.new, change.old)
        return is_number(change.new) and not is_flag and is_other

    lost = list(filter(is_lost, changes))
    if not lost:
        return
    shown = ", ".join(change.text for change in lost[:4])
    shown += f" and {len(lost) - 4} more" if len(lost) > 4 else ""
    source.warn(
        f"{source.text} changed {shown}, and the change is lost: the changed object is not in its "
        "result\n"
        "  A function that is transformed gets objects of its own, and the caller's stay as they "
        f"are. {_cure(lost, given, has_option)} If only this call needs it, change a copy: "
        "model = pydag.dag_copy(model).",
        LostUpdateWarning,
    )


def warn_of_unchangeable(given: Given, updated: Collection[Spot], source: Source) -> None:
    """Warns of arguments that are updated, and hold no object that a function could change.

    What `x = x + 1` or `state = state.replace(...)` makes in them would be lost.
    """
    for spot in updated:
        [argument] = pick(given.tree, [spot])
        nodes = nodes_of(argument, given.options).values()
        leaves = _core.leaves(argument, namespace=given.options.namespace)
        if any(map(_can_change, nodes)) or all(jax_private.is_ref(x) for x in leaves):
            continue
        option = "update_argnums" if isinstance(spot, int) else "update_argnames"
        source.warn(
            f"{option} names {spot_text(spot)} of {source.text}, in which nothing can be changed: "
            f"it is {short_repr(argument)}\n"
            "  Only changes of objects, such as an attribute of a module or an item of a dict, are "
            "written into the caller's. Return the new value, without naming the argument there.",
            UserWarning,
        )


def _can_change(node: Any) -> bool:
    is_frozen = getattr(getattr(node, "__dataclass_params__", None), "frozen", False)
    return not (is_frozen or is_equinox_module(type(node)))


def _cure(lost: Sequence[Change], given: Given, has_option: bool) -> str:
    if not has_option or given.roots != CALL:
        return "Return what was changed."
    numbers = sorted({c.path[1] for c in lost if c.path[0] == 0})
    names = sorted({c.path[1] for c in lost if c.path[0] == 1})
    pairs = (("update_argnums", numbers), ("update_argnames", names))
    say = [
        f"{o}={(spots[0] if len(spots) == 1 else tuple(spots))!r}" for o, spots in pairs if spots
    ]
    cure = (
        f"Return what was changed; or say {' and '.join(say)}: then it is written into the "
        "caller's objects."
    )
    if any(c.old is MISSING and is_traced(c.new) for c in lost):
        cure += " What wasn't there can't be written: make it before (an array of zeros)."
    return cure
