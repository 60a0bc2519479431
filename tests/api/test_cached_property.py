# SPDX-License-Identifier: Apache-2.0
"""What `functools.cached_property` has stored is no field: a rebuilt object computes it anew."""

import functools
from typing import Any

import pytest

import pydag


class Base:
    def __init__(self, w: Any) -> None:
        self.w = w

    @functools.cached_property
    def double(self) -> Any:
        return 2 * self.w


@pydag.register_fields
class Record(Base):
    pass


@pydag.register_module
class Module(Base):
    __slots__ = ()

    aliased = functools.cached_property(lambda self: 3 * self.w)


@pydag.register_fields
class Plain(Base):
    double: Any = 0  # hides what is cached


@pydag.register_fields(data_fields=("w", "double"))
class Named(Base):
    pass


@pytest.mark.parametrize("cls", [Record, Module])
def test_it_is_no_field(cls: Any) -> None:
    """Neither a leaf nor a part of the structure."""
    fresh, used = cls(1.5), cls(1.5)
    assert used.double == 3.0
    if cls is Module:
        assert used.aliased == 4.5
    assert pydag.dag_leaves(used) == [1.5]
    assert pydag.dag_structure(used) == pydag.dag_structure(fresh)
    assert pydag.dag_paths(used) == [("w",)]


@pytest.mark.parametrize("cls", [Record, Module])
def test_a_rebuilt_object_computes_it_anew(cls: Any) -> None:
    """A map, a copy, and also an object that is updated in place."""
    used = cls(1.5)
    assert used.double == 3.0
    new = pydag.dag_map(lambda w: w + 1, used)
    assert new.double == 5.0
    assert dict(vars(new)) == {"w": 2.5, "double": 5.0}
    assert "double" not in vars(pydag.dag_copy(used))
    pydag.dag_update(used, cls(4.0))
    assert "double" not in vars(used)
    assert used.double == 8.0


def test_what_was_named_is_a_field() -> None:
    """`data_fields` counts; so does an attribute of a class that hides the property."""
    named, plain = Named(1.5), Plain(1.5)
    assert named.double == 3.0
    assert pydag.dag_leaves(named) == [1.5, 3.0]
    plain.double = 7.0
    assert pydag.dag_leaves(plain) == [7.0, 1.5]
