# SPDX-License-Identifier: Apache-2.0
"""Tries out whether the core can open and build the instances of a class itself.

It can if the library does so in a known way. What is known may be wrong for another release, or for
a class that does something else. So the core also opens the first instance of a class, or of a
layout (its attributes, and which of them are children), that the library has opened, and builds the
first that the library has built. If the two differ, the library's functions are called for each
instance of the class.
"""

from typing import Any

import pydag._core as _core
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.foreign.flax_private import ByAttributes, BySlots, opened_by_flax

# (children, aux_data, names of the children), as the core gets them of a flatten function.
Opened = tuple[tuple[Any, ...], Any, tuple[Any, ...] | None]

_MOST_FAILURES = 8


class Whole:
    """Instances have no children, and are their own aux_data."""


class Trial:
    """Whether the core can stand in for the functions of one class."""

    def __init__(self, cls: type, entry: Any) -> None:
        self._cls, self._entry = cls, entry
        self.how = self._ask()
        self.registration: object = None
        self.failures = 0

    def _ask(self) -> BySlots | ByAttributes | Whole | None:
        if jax_private.is_by_register_static(self._entry):
            return Whole()
        return opened_by_flax(self._cls, self._entry)

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
        if self.how is None:
            return False
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
        if _is_same(found, opened):
            return found
        self._give_up()
        return None

    def _give_up(self) -> None:
        _core.drop_stand_in(self.registration)
        self.failures = _MOST_FAILURES

    def build(self, aux_data: Any, children: tuple[Any, ...]) -> Any:
        """What the library builds. The core builds such instances from now on if it can."""
        expected = self._entry.from_iter(aux_data, children)
        built = _core.build_by_stand_in(self.registration, aux_data, children)
        if built is not None and self._is_alike(built, expected):
            _core.set_stand_in_tried(self.registration, aux_data, len(children))
        elif built is not None:
            self._give_up()
        return expected

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
