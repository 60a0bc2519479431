# SPDX-License-Identifier: Apache-2.0
"""What the JAX boundary knows of classes and structures, by what they are, as long as they live."""

import gc
from typing import Any

import pytest

from pydag.registry.class_table import ClassTable
from pydag.registry.weak_table import WeakTable


class Thing:
    """Equal to anything, and without a hash."""

    __hash__ = None  # type: ignore[assignment]  # that is tested

    def __eq__(self, other: object) -> bool:
        return True


def test_values_of_objects() -> None:
    """An object has the value that was set last; an equal one has none; a dead one is forgotten."""
    table: WeakTable[int] = WeakTable()
    one, other = Thing(), Thing()
    table.set(one, 1)
    table.set(one, 2)
    assert (table.get(one, 0), table.get(other, 0), len(table)) == (2, 0, 1)
    table.discard(other)
    assert len(table) == 1
    table.set(other, 3)
    table.discard(one)
    assert (table.get(one, 0), table.get(other, 0), len(table)) == (0, 3, 1)
    del other
    gc.collect()
    assert len(table) == 0


def test_object_without_weak_references() -> None:
    """It is refused, and the table stays as it was."""
    table: WeakTable[int] = WeakTable()
    with pytest.raises(TypeError):
        table.set(1, 1)
    assert len(table) == 0


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


def test_many_dead_ones_are_forgotten() -> None:
    """Entries whose callbacks never came are dropped when the table has grown."""
    table: WeakTable[int] = WeakTable()
    gone = Thing()
    table.set(gone, 0)
    [dead] = table._known.values()
    del gone
    for place in range(1000):
        table._known[-place] = dead
    living = Thing()
    table.set(living, 1)
    assert (len(table), table.get(living, 0)) == (1, 1)


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
