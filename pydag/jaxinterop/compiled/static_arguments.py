# SPDX-License-Identifier: Apache-2.0
"""The arguments of a compiled function, as they are flattened: static ones are leaves."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import pydag._core as _core
from pydag.jaxinterop.prefixes.arguments import Args, Chosen, Kwargs
from pydag.jaxinterop.static.leaves import Static, is_made_of_fields, is_made_of_items, is_settled

from .leaf_groups import MOST

Names = tuple[str, ...]

# Instances of one of these that are equal are interchangeable.
_PLAIN = frozenset((str, bytes, int, bool, type(None)))


class KeywordOrder:
    """Puts keyword arguments in the order of the signature, where the function can't see another.

    Without it a call that names the same arguments in another order would be traced again.
    """

    def __init__(self, fun: Callable[..., Any]) -> None:
        try:
            parameters = list(inspect.signature(fun).parameters.values())
        except (ValueError, TypeError):
            parameters = []
        takes_all = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
        self._places = {} if takes_all else {p.name: i for i, p in enumerate(parameters)}
        # For names as they came the order; an empty tuple for that very one.
        self.orders: dict[Names, Names] = {}

    def of(self, kwargs: Kwargs) -> Kwargs:
        """The keyword arguments in order; as they are where one isn't the function's."""
        if len(kwargs) < 2:
            return kwargs
        names = tuple(kwargs)
        order = self.orders.get(names)
        if order is None:
            order = self._add_order(names)
        return {name: kwargs[name] for name in order} if order else kwargs

    def _add_order(self, names: Names) -> Names:
        order: Names = ()
        if self._places.keys() >= set(names):
            order = tuple(sorted(names, key=self._places.__getitem__))
        if len(self.orders) >= MOST:
            self.orders.clear()
        found = self.orders[names] = () if order == names else order
        return found


class StaticArguments:
    """Replaces each static argument by a leaf: the same leaf for all values that are equal.

    So calls with the same static arguments are recognized by identity. A value that may change
    while it stays the same object is compared each time.
    """

    def __init__(self, chosen: Chosen) -> None:
        self.chosen = chosen
        self._numbers, self._names = chosen
        self._known: dict[Static, Static] = {}
        # The core looks into these two, and is not told when they are emptied.
        # By the id of the value, which the leaf owns; and what says whether the leaf holds.
        self.settled: dict[int, tuple[Static, Callable[[], bool] | None]] = {}
        # By value, for each plain class, and for each tuple of them the tuples with such items.
        self.plain: dict[Any, dict[Any, Static]] = {cls: {} for cls in _PLAIN}

    def wrap(self, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
        """The arguments, with leaves for those that are static."""
        if self._numbers and args:
            items, count = list(args), len(args)
            for i in self._numbers:
                if i < 0:
                    i += count
                if 0 <= i < count:
                    items[i] = self._leaf(items[i])
            args = tuple(items)
        if kwargs and self._names:
            kwargs = {
                name: self._leaf(value) if name in self._names else value
                for name, value in kwargs.items()
            }
        return args, kwargs

    def _leaf(self, value: Any) -> Static:
        found, holds_still = self.settled.get(id(value), (None, None))
        if found is not None and found.value is value and (holds_still is None or holds_still()):
            return found
        plain = self._plain_table(value)
        known = None if plain is None else plain.get(value)
        if known is not None:
            return known
        leaf = Static(value)
        try:
            leaf.check_hashable()
            same = self._known.setdefault(leaf, leaf)
        except Exception:  # the error comes, with the path, when a key is made of it
            return leaf
        self.settled.pop(id(value), None)
        if same is leaf and len(self._known) > MOST:
            self._forget()
        if same.value is value and is_settled(value):
            self.settled[id(value)] = same, holds(value)
        if same is leaf and plain is not None:
            plain[value] = leaf
        return same

    def _plain_table(self, value: Any) -> dict[Any, Static] | None:
        """Where a value that may be made anew is looked up; None where equality says less."""
        cls = type(value)
        if cls is not tuple:
            return self.plain.get(cls)
        classes = (*map(type, value),)  # a tuple of its final size: it counts for no collection
        table = self.plain.get(classes)
        if table is None and _PLAIN.issuperset(classes):
            table = self.plain.setdefault(classes, {})
        return table

    def _forget(self) -> None:
        self._known.clear()
        self.settled.clear()
        self.plain.clear()
        self.plain.update((cls, {}) for cls in _PLAIN)


_IMMUTABLE_TYPE = 1 << 8  # of CPython's flags of types


class _Held:
    """What a value held when it was looked at.

    Args:
        value: A settled one.
    """

    __slots__ = ("_fields", "_stamps")

    def __init__(self, value: Any) -> None:
        self._stamps: list[tuple[type, int]] = []
        self._fields: list[tuple[Any, str, Any]] = []
        self._look(value)

    def _look(self, value: Any) -> None:
        cls = type(value)
        if not cls.__flags__ & _IMMUTABLE_TYPE:
            self._stamps.append((cls, _core.class_stamp(cls)))
        if is_made_of_items(value):
            for item in tuple.__iter__(value):
                self._look(item)
        elif is_made_of_fields(value):
            for field in dataclasses.fields(value):
                part = getattr(value, field.name)
                self._fields.append((value, field.name, part))
                self._look(part)

    def is_constant(self) -> bool:
        return not self._stamps and not self._fields

    def holds(self) -> bool:
        """Whether nothing of it was changed."""
        for cls, stamp in self._stamps:
            if not stamp or _core.class_stamp(cls) != stamp:
                return False
        return all(getattr(owner, name, self) is part for owner, name, part in self._fields)


def holds(value: Any) -> Callable[[], bool] | None:
    """A function that says whether a settled value is what it was; None for what can't change."""
    held = _Held(value)
    return None if held.is_constant() else held.holds
