# SPDX-License-Identifier: Apache-2.0
"""The arguments of a compiled function, as they are flattened: static ones are leaves."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import pydag._core as _core
from pydag.jaxinterop.prefixes.arguments import Args, Chosen, Kwargs
from pydag.jaxinterop.static.leaves import Static, is_made_of_fields, is_made_of_items, is_settled

from .key import MOST


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
        self.places = {} if takes_all else {p.name: i for i, p in enumerate(parameters)}
        """By name; the core sorts by it, too."""

    def of(self, kwargs: Kwargs) -> Kwargs:
        """The keyword arguments in order; as they are where one isn't the function's."""
        if len(kwargs) < 2 or not self.places.keys() >= kwargs.keys():
            return kwargs
        return {name: kwargs[name] for name in sorted(kwargs, key=self.places.__getitem__)}


class StaticArguments:
    """Replaces each static argument by a leaf: the same leaf for all values that are equal.

    So calls with the same static arguments are recognized by identity. A value that may change
    while it stays the same object is compared each time.

    Args:
        plans: The core's: it finds the leaves of the values that can't change.
    """

    def __init__(self, chosen: Chosen, plans: _core.CallPlans) -> None:
        self.chosen, self._plans = chosen, plans
        self._numbers, self._names = chosen
        self._known: dict[Static, Static] = {}

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
        found: Static | None = _core.static_leaf(self._plans, value)
        if found is not None:
            return found
        leaf = Static(value)
        try:
            leaf.check_hashable()
            same = self._known.setdefault(leaf, leaf)
        except Exception:  # the error comes, with the path, when a key is made of it
            return leaf
        if same is leaf and len(self._known) > MOST:
            self._known.clear()
            _core.forget_static_leaves(self._plans)
        if same.value is value and is_settled(value):
            _core.add_static_leaf(self._plans, same, holds(value))
        return same


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
