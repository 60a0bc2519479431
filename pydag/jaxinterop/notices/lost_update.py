# SPDX-License-Identifier: Apache-2.0
"""A warning about changes that a function makes in its arguments, and that are lost."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

import pydag._core as _core
from pydag.jaxinterop.content.dag import Dag as PackedDag
from pydag.jaxinterop.content.leaves import is_number, is_traced
from pydag.jaxinterop.content.options import CALL, MISSING, Options
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.foreign.equinox_private import is_equinox_module
from pydag.jaxinterop.naming import Source
from pydag.jaxinterop.treatments.arguments import Spot, spot_text
from pydag.jaxinterop.updates.changes import VALUES, Change, Changes, Given
from pydag.structure.text import short_repr
from pydag.typing import Dag


class LostUpdateWarning(UserWarning):
    """A function changed an object of an argument, and the change is lost."""


def warn_of_lost_updates(
    changes: Changes, result: Dag, source: Source, *, has_option: bool = False
) -> None:
    """Warns if the function changed modules or records, and returns neither these nor new values.

    Args:
        changes: What the function changed in the tree that it was given.
        has_option: Whether the wrapper has the option `update_argnums`.
    """
    options = changes.before.options
    nodes = _nodes_of(result, options)
    classes = {type(node) for node in nodes.values() if _is_registered(node, options.namespace)}
    leaves = {id(leaf) for leaf in _core.leaves(result, namespace=options.namespace)}
    leaves.update(map(id, changes.leaves.values()))

    def is_lost(change: Change) -> bool:
        holders, earlier = changes.holders(change.place)
        owners = [x for x in holders if _is_registered(x, options.namespace)]
        # A dict or list that nothing registered holds may be changed freely.
        is_free = not owners or all(owners[0] is not x for x in earlier)
        if is_free or type(owners[-1]) in classes:
            return False
        if id(change.new) in leaves or any(id(holder) in nodes for holder in holders):
            return False
        if change.new is MISSING:
            return True
        if is_traced(change.new) and not is_number(change.new):
            is_same = jax_private.is_handed_through(change.new, change.old)
            return not (is_same or jax_private.is_ref(change.new))
        if change.old is MISSING:  # an attribute that holds configuration is left alone
            return owners[-1] is not holders[-1]
        is_flag = isinstance(change.new, bool | np.bool_)
        is_other = not _core.is_same_value(change.new, change.old)
        return is_number(change.new) and not is_flag and is_other

    lost = list(filter(is_lost, changes.others))
    if not lost:
        return
    shown = ", ".join(changes.text(change.place) for change in lost[:4])
    shown += f" and {len(lost) - 4} more" if len(lost) > 4 else ""
    source.warn(
        f"{source.text} changed {shown}, and the change is lost: the changed object is not in its "
        "result\n  A function that is transformed works on copies; the caller's objects are "
        f"unchanged. {_cure(lost, changes, has_option)} If only this call needs it, change a copy: "
        "model = pydag.dag_copy(model).",
        LostUpdateWarning,
    )


def warn_of_unchangeable(given: Given, updated: Collection[Spot], source: Source) -> None:
    """Warns of arguments that are updated, and hold no object that a function could change.

    What `x = x + 1` or `state = state.replace(...)` makes in them would be lost.
    """
    for spot in updated:
        argument = given.tree[0][spot] if isinstance(spot, int) else given.tree[1][spot]
        classes = set(map(type, _nodes_of(argument, given.options).values()))
        parameters = {cls: getattr(cls, "__dataclass_params__", None) for cls in classes}
        frozen = {cls for cls, found in parameters.items() if getattr(found, "frozen", False)}
        leaves = _core.leaves(argument, namespace=given.options.namespace)
        if not all(map(is_equinox_module, classes - frozen)) or all(
            map(jax_private.is_ref, leaves)
        ):
            continue
        option = "update_argnums" if isinstance(spot, int) else "update_argnames"
        source.warn(
            f"{option} names {spot_text(spot)} of {source.text}, in which nothing can be changed: "
            f"it is {short_repr(argument)}\n"
            "  Only changes of objects, such as an attribute of a module or an item of a dict, are "
            "written into the caller's. Return the new value, without naming the argument there.",
            UserWarning,
        )


def _is_registered(node: Any, namespace: str) -> bool:
    """Whether an object is an instance of a registered class: a module, a record, one of NNX's."""
    if isinstance(node, dict | list | tuple) or type(node).__module__ == "collections":
        return False
    return not _core.is_leaf(node, namespace=namespace)


def _nodes_of(tree: Dag, options: Options) -> dict[int, Any]:
    """The objects with identity that hold something in a tree, and in Dags in it, by their ids."""
    found, waiting = dict[int, Any](), [tree]
    for part in waiting:
        given = Given.of(part, options, "tree")
        leaves = set(map(id, given.leaves))
        objects = {id(x): x for x in given.objects if not isinstance(x, VALUES)}
        new = {key: x for key, x in objects.items() if key not in leaves and key not in found}
        waiting += [node.tree for node in new.values() if isinstance(node, PackedDag)]
        found |= new
    return found


def _cure(lost: Sequence[Change], changes: Changes, has_option: bool) -> str:
    if not has_option or changes.before.roots != CALL:
        return "Return what was changed."
    paths = [changes.path(change.place) for change in lost]
    numbers = sorted({path[1] for path in paths if path[0] == 0})
    names = sorted({path[1] for path in paths if path[0] == 1})
    pairs = (("update_argnums", numbers), ("update_argnames", names))
    given = [f"{o}={(x[0] if len(x) == 1 else tuple(x))!r}" for o, x in pairs if x]
    cure = f"Return what was changed; or pass {' and '.join(given)}: then it is written into the "
    cure += "caller's objects."
    if any(is_number(c.old) for c in lost):
        cure += " A number of a module is static, and isn't written: make it an array."
    if any(c.old is MISSING and is_traced(c.new) for c in lost):
        cure += " What the caller's object lacks can't be written: create it before the call"
        cure += " (an array of zeros)."
    return cure
