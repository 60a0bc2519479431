# SPDX-License-Identifier: Apache-2.0
"""Tries out whether the core can open and build the instances of a class itself.

It can where a library does that in a way that is known. What is known of a library may be wrong for
another release, or for a class that does something else. So the first instance of each class, and
of each layout (which attributes there are, and which of them are children), is opened and built in
both ways. Where they differ, the library's functions are called for each instance of the class.
"""

from collections.abc import Callable
from typing import Any

import pydag._core as _core
from pydag.jaxinterop import jax_private
from pydag.jaxinterop.flax_private import ByAttributes, BySlots, opened_by_flax

# (children, aux_data, names of the children), as the core gets them of a flatten function.
Opened = tuple[tuple[Any, ...], Any, tuple[Any, ...] | None]

_MOST_FAILURES = 8


class Whole:
    """Instances have no children, and are their own aux_data."""


class Trial:
    """Whether the core can stand in for the functions of one class."""

    def __init__(self, cls: type, entry: Any) -> None:
        self.how: BySlots | ByAttributes | Whole | None = opened_by_flax(cls, entry)
        if jax_private.is_by_register_static(entry):
            self.how = Whole()
        self.unflatten: Callable[[Any, Any], Any] = entry.from_iter
        self.registration: object = None
        self.failures = 0

    def learn(self, node: Any, opened: Opened) -> Opened | None:
        """Lets the core open such instances from now on, if it does so as the library did.

        Returns what it opened; None where the library is to go on.
        """
        if self.how is None or self.failures >= _MOST_FAILURES:
            return None
        if (known := _core.open_by_stand_in(self.registration, node)) is not None:
            return known  # who asks isn't the core
        found = self._found_by_core(node, opened) if self._prepare(node, opened) else None
        if found is None:
            self.failures += 1
        return found

    def _prepare(self, node: Any, opened: Opened) -> bool:
        _, aux_data, names = opened
        if isinstance(self.how, BySlots):
            return _core.stand_in_by_slots(self.registration, *self.how)
        if isinstance(self.how, Whole):
            return _core.stand_in_as_whole(self.registration)
        assert self.how is not None
        try:
            parts, (child_keys, other_keys, _) = vars(node), aux_data
        except (TypeError, ValueError):
            return False
        attributes = tuple(str(key) for key in (*child_keys, *other_keys))
        is_all = len(attributes) == len(parts) and all(name in parts for name in attributes)
        if not is_all or any(name in parts for name in self.how.not_of_instances):
            return False
        kinds, kinds_class, mapping, _ = self.how
        if not _core.has_stand_in(self.registration):
            _core.stand_in_by_attributes(self.registration, kinds, kinds_class, mapping)
        return _core.add_layout(self.registration, child_keys, other_keys, attributes, names)

    def _found_by_core(self, node: Any, opened: Opened) -> Opened | None:
        found = _core.open_by_stand_in(self.registration, node)
        if found is None:
            return None  # such an instance isn't the core's to open
        built = _core.build_by_stand_in(self.registration, found[1], found[0])
        if _is_same(found, opened) and self._is_alike(built, self.unflatten(opened[1], opened[0])):
            return found
        _core.drop_stand_in(self.registration)
        self.how = None
        return None

    def _is_alike(self, built: Any, expected: Any) -> bool:
        """Whether two instances are made of the same parts."""
        if isinstance(self.how, Whole):
            return built is expected
        if type(built) is not type(expected):
            return False
        if not isinstance(self.how, BySlots):
            return _is_same(tuple(vars(built).items()), tuple(vars(expected).items()))
        _, _, items, plain, fresh, *_ = self.how
        child = self.how.child
        parts = [*plain] if child is None else [child, *plain]
        if any(getattr(built, name) is not getattr(expected, name) for name in parts):
            return False
        a, b = getattr(built, fresh), getattr(expected, fresh)
        if type(a) is not type(b) or a != b:
            return False
        if items is None:
            return True
        first, second = getattr(built, items), getattr(expected, items)
        return type(first) is dict and _is_same(tuple(first.items()), tuple(second.items()))


def _is_same(a: Any, b: Any) -> bool:
    """Whether both are the same object, equal names, or tuples of such."""
    if type(a) is not tuple:
        return a is b or (type(a) in (str, int) and type(a) is type(b) and a == b)
    return type(b) is tuple and len(a) == len(b) and all(map(_is_same, a, b))
