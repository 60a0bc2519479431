# SPDX-License-Identifier: Apache-2.0
"""A judge of "the same object graph", which walks both at once and asks no spec."""

from collections import defaultdict, deque
from typing import Any

from reference_kinds import DICTS, has_identity, is_tuple_like, one_answer
from specimens import GLOBAL, LOCAL

CLASSES = {**GLOBAL, **LOCAL}
MARKS = ("Anchor", "Alias", "Node")  # pydag's own and the reference's are twins


def difference(a: Any, b: Any, *, same_leaves: bool = True) -> str:
    """Where two object graphs part, in words; empty if they don't.

    Args:
        same_leaves: Leaves with identity must be the same objects, not only twins.
    """
    twins: dict[int, Any] = {}
    originals: dict[int, Any] = {}

    def walk(a: Any, b: Any, path: str) -> str:
        name_a, name_b = type(a).__name__, type(b).__name__
        if type(a) is not type(b) and not (name_a == name_b and name_a in MARKS):
            return f"{path}: {name_a} and {name_b}"
        if has_identity(a, CLASSES):
            if id(a) in twins or id(b) in originals:
                known = twins.get(id(a)) is b and originals.get(id(b)) is a
                return "" if known else f"{path}: shared on one side only"
            twins[id(a)], originals[id(b)] = b, a
        parts_a, parts_b = parts(a), parts(b)
        if parts_a is None or parts_b is None:
            twin_objects = has_identity(a, CLASSES) and not same_leaves
            same = a is b or twin_objects or one_answer(a, b, CLASSES)
            return "" if same else f"{path}: leaves {a!r} and {b!r}"
        (label_a, entries_a, below_a), (label_b, entries_b, below_b) = parts_a, parts_b
        if label_a != label_b or entries_a != entries_b:
            return f"{path}: {label_a} {entries_a} and {label_b} {entries_b}"
        pairs = zip(entries_a, below_a, below_b, strict=True)
        return next(filter(None, (walk(x, y, f"{path}[{e!r}]") for e, x, y in pairs)), "")

    return walk(a, b, "tree")


def parts(obj: Any) -> tuple[Any, list[Any], list[Any]] | None:
    """What must be equal about a container, its entries and its children; `None` for a leaf."""
    cls = type(obj)
    if cls.__name__ in MARKS:
        label = [obj.type] if cls.__name__ == "Node" else [obj.index]
        below = {"Anchor": "value", "Node": "children"}.get(cls.__name__)
        return label, [below] * bool(below), [getattr(obj, below)] if below else []
    if cls in DICTS:
        factory = obj.default_factory if cls is defaultdict else None
        return factory, [(type(key), key) for key in obj], list(obj.values())
    if cls in (list, deque) or is_tuple_like(cls):
        maxlen = obj.maxlen if cls is deque else None
        return maxlen, list(range(len(obj))), list(obj)
    if cls in CLASSES:
        slots = [name for base in cls.__mro__ for name in vars(base).get("__slots__", ())]
        names = {*getattr(obj, "__dict__", ()), *(name for name in slots if hasattr(obj, name))}
        return None, sorted(names), [getattr(obj, name) for name in sorted(names)]
    return None
