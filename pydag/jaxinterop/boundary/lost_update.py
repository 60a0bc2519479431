# SPDX-License-Identifier: Apache-2.0
"""Warns of a function that changes what it was given, and doesn't return the change.

A wrapped function gets objects of its own, so the caller's objects stay as they are. Without the
warning such a change would be lost in silence.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from pydag.jaxinterop import jax_private
from pydag.jaxinterop.messages.naming import Source
from pydag.jaxinterop.structure.pairing import numbers_of_alike
from pydag.structure.listing import Listing
from pydag.typing import Dag as AnyDag
from pydag.typing import Leaf

from .dag import Dag
from .given import Changed, GivenTree, Written


class LostUpdateWarning(UserWarning):
    """A function changed an object of an argument, and the change is lost.

    What it wrote there, an array in the place of another one or a new one in an attribute, isn't in
    its result, and the argument isn't among those that `update_argnums` names. The warning comes
    once for each trace. It leaves out static leaves, and items that are added to lists and dicts or
    removed from them.
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
    options = changed.given.untraced.options
    try:
        leaves, spec = options.flatten(result)
    except Exception:  # the wrapper, which takes the result apart, says what is wrong
        return
    returned = set(map(id, leaves))
    is_same = changed.spec == changed.given.untraced.spec
    if is_same and all(id(leaf) in returned for leaf in changed.replaced()):
        return
    found = sorted(changed.written(), key=lambda written: written.position)
    lost = [w for w in found if id(w.leaf) not in returned and not is_kept(w)]
    if lost:
        copies = _Copies(changed, Listing.of(spec), leaves)
        lost = [written for written in lost if not copies.has(written)]
    if lost:
        source = fun if isinstance(fun, Source) else Source(fun)
        source.warn(
            _text([changed.path(w.position) for w in lost], source, has_option), LostUpdateWarning
        )


_SHOWN = 4  # paths in a warning

_ARGUMENT = re.compile(r"(args|kwargs)\[(\d+|'\w*')\]")


def _text(paths: Sequence[str], source: Source, has_option: bool) -> str:
    shown = ", ".join(paths[:_SHOWN])
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    option = " and ".join(_options(paths))
    cure = "Return what was changed."
    if all(path.startswith("self") for path in paths):
        cure += (
            " Or pass the object as an argument, and name that in update_argnums of jit or grad."
        )
    elif has_option:
        cure = (
            f"Return what was changed; or say {option or 'update_argnums'}: then it is written "
            "into the caller's objects."
        )
    return (
        f"{source.text} changed {shown}{more}, and the change is lost: what it wrote there is "
        "not in its result\n"
        "  A function that is transformed gets objects of its own, and the caller's stay as they "
        f"are. {cure} If only this call needs it, change a copy: model = pydag.dag_copy(model)."
    )


def _options(paths: Iterable[str]) -> Iterator[str]:
    """The options by which the arguments that these paths lead into are updated."""
    found = [match for path in paths if (match := _ARGUMENT.match(path))]
    for root, option in (("args", "update_argnums"), ("kwargs", "update_argnames")):
        spots = list(dict.fromkeys(match[2] for match in found if match[1] == root))
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
        for depth, around in enumerate(way[:-1]):
            cls = self._given.records[around].type
            if cls is None or issubclass(cls, list | tuple):
                continue  # alike by accident
            steps = [
                self._given.children(parent).index(child)
                for parent, child in zip(way[depth:], way[depth + 1 :], strict=False)
            ]
            for position in self._alike.get(self._numbers[around], ()):
                at = position
                for step in steps:
                    at = self._result.target(self._result.children(at)[step])
                found = self._leaves[at]
                if found is not written.before and _comes_from(found, written.leaf):
                    return True
        return False


def _comes_from(found: Leaf, written: Leaf) -> bool:
    """Whether a leaf was computed from another one in two steps; True if that can't be told."""
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
