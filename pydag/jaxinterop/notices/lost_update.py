# SPDX-License-Identifier: Apache-2.0
"""Warns of a function that changes what it was given, and doesn't return the change.

A wrapped function gets objects of its own, so the caller's objects stay as they are. Without the
warning such a change would be lost in silence.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.foreign.flax_private import graph_definitions, is_defined
from pydag.jaxinterop.messages.naming import Source
from pydag.jaxinterop.packed.changed import Changed, Written, is_module, static_fields
from pydag.jaxinterop.packed.dag import Dag
from pydag.jaxinterop.packed.given import GivenTree
from pydag.jaxinterop.static.leaves import Static
from pydag.jaxinterop.structure.pairing import numbers_of_alike
from pydag.structure.listing import Listing
from pydag.typing import Dag as AnyDag
from pydag.typing import Leaf


class LostUpdateWarning(UserWarning):
    """A function changed an object of an argument, and the change is lost.

    The argument isn't among those that `update_argnums` names. A change of a module, or of what a
    module holds, is lost if the changed object isn't in the result, as it is or mapped: an array
    that was written or removed, a number that changed, an item that was added or removed. A change
    of other dicts and lists is lost if an array that was written over an item isn't in the result;
    items that are added or removed are left out. The warning comes once for each trace.
    """


def run_on(fun: Callable[..., Any], dags: Sequence[Dag], names: Sequence[str], *first: Any) -> Any:
    """Runs a function on trees of its own; warns if it changed them and the change is lost.

    Args:
        names: What the user calls each of the trees.
        first: Arguments that stand before them.
    """
    trees = [
        GivenTree(dag._untraced, dag._leaves, name) for dag, name in zip(dags, names, strict=True)
    ]
    result = fun(*first, *(given.tree for given in trees))
    tell_lost(trees, result, fun)
    return result


def tell_lost(trees: Iterable[GivenTree], result: AnyDag, fun: Callable[..., Any] | Source) -> None:
    """Warns if a function changed one of these trees, and its result doesn't hold what is new."""
    for given in trees:
        changed = given.changed()
        if changed is not None:
            tell_lost_change(changed, result, fun)


def tell_lost_change(
    changed: Changed,
    result: AnyDag,
    fun: Callable[..., Any] | Source,
    is_kept: Callable[[Written], bool] = lambda _: False,
    has_option: bool = False,
) -> None:
    """`tell_lost`, for one tree that was changed.

    Args:
        is_kept: Whether something that was written reaches the caller in another way.
        has_option: Whether the wrapper has `update_argnums`.
    """
    try:
        held = _Held(changed, result)
    except Exception:  # the wrapper, which takes the result apart, says what is wrong
        return
    if held.has_all():
        return
    found = sorted(changed.written(), key=lambda written: written.position)
    lost = [w for w in found if not held.has(w) and not is_kept(w)]
    if lost:
        copies = _Copies(changed, held.listing, held.leaves)
        lost = [written for written in lost if not copies.has(written)]
    if lost:
        source = fun if isinstance(fun, Source) else Source(fun)
        text = _text(changed, lost, source, has_option)
        source.warn(text, LostUpdateWarning)


class _Held:
    """The objects and the leaves of a result."""

    def __init__(self, changed: Changed, result: AnyDag) -> None:
        self._changed, self._objects = changed, dict[int, Any]()
        self.leaves, self._spec = self._flatten(result)

    def _flatten(self, tree: AnyDag) -> tuple[list[Leaf], PyDagSpec]:
        options = self._changed.given.untraced.options
        return _core.flatten(
            tree, is_leaf=self._note, namespace=options.namespace, identity=options.identity
        )

    def _note(self, node: Any) -> bool:
        is_new = id(node) not in self._objects
        self._objects[id(node)] = node
        if is_new and isinstance(node, Dag):  # JAX isn't shown the objects of its tree
            self._flatten(node.tree)
        return False

    @cached_property
    def _definitions(self) -> list[Any]:
        """What the result says of modules of NNX that were split."""
        return graph_definitions(self._objects.values())

    @cached_property
    def listing(self) -> Listing:
        return Listing.of(self._spec)

    def has_all(self) -> bool:
        """Whether all that changed are leaves of arguments that are in the result themselves.

        False says nothing: this is a quick look.
        """
        changed = self._changed
        old, new = changed.given.leaves, changed.leaves
        if changed.spec != changed.given.untraced.spec:
            return False
        if any(old[i] is not new[i] for i in changed.given.untraced.positions):
            return False
        written = {id(after) for before, after in zip(old, new, strict=True) if before is not after}
        others = [arg for arg in changed.given.arguments() if id(arg) not in self._objects]
        options = changed.given.untraced.options
        return not any(id(leaf) in written for leaf in options.flatten(others)[0])

    def has(self, written: Written) -> bool:
        """Whether a change is in the result: the changed object is, or something that holds it.

        Outside of modules it is enough that the result has what was written.
        """
        if not written.is_of_module:
            return id(written.value) in self._objects
        position = written.holder
        while position >= 0:
            node = self._changed.objects[position]
            if id(node) in self._objects:
                return True
            # The arrays of a module that was split are looked for as those of a mapped one.
            if self._definitions and not written.is_array and is_defined(node, self._definitions):
                return True
            position = self._changed.listing.parents[position] if position else -1
        return False


_SHOWN = 4  # paths in a warning


def _text(changed: Changed, lost: Sequence[Written], source: Source, has_option: bool) -> str:
    paths = [changed.path(written.position) + written.name for written in lost]
    shown = ", ".join(paths[:_SHOWN])
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    option = " and ".join(_options(changed, lost))
    cure = "Return what was changed."
    if has_option:
        cure = (
            f"Return what was changed; or say {option or 'update_argnums'}: then it is written "
            "into the caller's objects."
        )
        if any(written.is_array and written.before is None for written in lost):
            cure += " What wasn't there can't be written: make it before (an array of zeros)."
    is_of_modules = all(written.is_of_module for written in lost)
    what = "the changed object" if is_of_modules else "what it wrote there"
    return (
        f"{source.text} changed {shown}{more}, and the change is lost: {what} is not in its "
        "result\n"
        "  A function that is transformed gets objects of its own, and the caller's stay as they "
        f"are. {cure} If only this call needs it, change a copy: model = pydag.dag_copy(model)."
    )


def _options(changed: Changed, lost: Sequence[Written]) -> Iterator[str]:
    """The options by which the arguments are updated in which these changes were made."""
    found = dict.fromkeys(filter(None, (changed.argument(each.position) for each in lost)))
    for root, option in (("args", "update_argnums"), ("kwargs", "update_argnames")):
        spots = [repr(spot) for kind, spot in found if kind == root]
        if spots:
            yield f"{option}={spots[0] if len(spots) == 1 else '(' + ', '.join(spots) + ')'}"


class _Copies:
    """Parts of a result with the structure of the changed tree, such as the model, mapped.

    A change isn't lost if such a part has, at the place of the written leaf, an array that was
    computed from that leaf in one step or two.
    """

    def __init__(self, changed: Changed, result: Listing, leaves: Sequence[Leaf]) -> None:
        self._given, self._result = changed.listing, result
        self._leaves = dict(zip(result.leaves, leaves, strict=True))
        known: dict[Any, int] = {}
        given, found = (
            numbers_of_alike(listing, lambda _: None, known, compares_details=False)
            for listing in (self._given, result)
        )
        self._numbers, self._alike = given, dict[int, list[int]]()
        for position, number in enumerate(found):
            if not result.records[position].is_alias:
                self._alike.setdefault(number, []).append(position)

    def has(self, written: Written) -> bool:
        way = [0, *self._given.way(written.position)]
        for depth, around in enumerate(way):
            record = self._given.records[around]
            is_known = record.type is not None and not issubclass(record.type, list | tuple)
            if not (is_known if written.is_array else is_module(record)):
                continue  # alike by accident
            steps = [
                self._given.children(parent).index(child)
                for parent, child in zip(way[depth:], way[depth + 1 :], strict=False)
            ]
            for position in self._alike.get(self._numbers[around], ()):
                at = position
                for step in steps:
                    at = self._result.target(self._result.children(at)[step])
                if self._is_written(at, written):
                    return True
        return False

    def _is_written(self, at: int, written: Written) -> bool:
        if written.is_array:
            found = self._leaves[at]
            return found is not written.before and _comes_from(found, written.value)
        if written.value is None:
            return True  # something was removed, and isn't here either
        if at in self._leaves:
            return Static(self._leaves[at]) == Static(written.value)
        fields = static_fields(self._result.records[at]) or {}
        return Static(fields.get(written.name[1:])) == Static(written.value)


def _comes_from(found: Leaf, written: Leaf) -> bool:
    """Whether a leaf was computed from another one in two steps; True if that can't be told."""
    if found is written:
        return True
    leaves = [found]
    for _ in range(2):
        inputs: list[Any] = []
        for leaf in leaves:
            of_leaf = jax_private.inputs_of(leaf)
            if of_leaf is None:
                return True
            inputs += of_leaf
        if any(leaf is written for leaf in inputs):
            return True
        leaves = inputs
    return False
