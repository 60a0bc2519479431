# SPDX-License-Identifier: Apache-2.0
"""What the JAX boundary knows of classes and structures, by what they are, as long as they live."""

import gc
from typing import Any

from pydag.registry.class_table import ClassTable
from pydag.registry.weak_table import WeakTable


class Thing:
    """Equal to anything, and without a hash."""

    __hash__ = None  # type: ignore[assignment]  # that is tested

    def __eq__(self, other: object) -> bool:
        return True


def test_a_table_doesn_t_take_one_for_a_dead_one() -> None:
    """Neither a weak reference that is cleared without a word nor a late callback does harm."""
    table: WeakTable[str] = WeakTable()
    one, other = Thing(), Thing()
    table.set(one, "one")
    stale = table._known[id(one)]
    table._known[id(other)] = stale  # as if it had been at this address
    assert table.get(other, "unknown") == "unknown"
    table.set(other, "other")
    callback = stale[0].__callback__
    assert callback is not None
    callback(stale[0])
    assert table.get(other, "unknown") == "other"


def test_classes_that_are_used_by_finalizers() -> None:
    """What was found out about a class in its last moment isn't taken for the next class there."""
    table: ClassTable[str] = ClassTable(lambda x: type(x).__name__)

    class Holder:
        def __init__(self, held: Any) -> None:
            self.held, self.me = held, self

        def __del__(self) -> None:
            table.of(self.held)

    for i in range(100):
        cls: Any = type(f"Before{i}", (), {})
        cls.holder = Holder(cls())
        del cls
        gc.collect()
        after = [type(f"After{i}{k}", (), {}) for k in range(3)]
        assert [table.of(made()) for made in after] == [made.__name__ for made in after]
        del after
