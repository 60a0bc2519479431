# SPDX-License-Identifier: Apache-2.0
"""Models of pydantic that are registered by their fields."""

import pickle
from typing import Any

import pytest

import pydag

pydantic: Any = pytest.importorskip("pydantic")


@pydag.register_fields
class Bus(pydantic.BaseModel):  # type: ignore[misc, unused-ignore]  # untyped base
    """A model that notes which of its fields were set."""

    load: list[float]
    name: str = "bus"


@pydag.register_fields(meta_fields=["label"])
class Open(pydantic.BaseModel):  # type: ignore[misc, unused-ignore]  # untyped base
    """A model with fields that it doesn't declare, a private one and a meta field."""

    model_config = pydantic.ConfigDict(extra="allow")

    w: Any
    label: str = "a"
    _cache: Any = pydantic.PrivateAttr(default=None)


@pytest.mark.parametrize("copied", [pydag.dag_copy, lambda x: pydag.dag_map(lambda leaf: leaf, x)])
def test_a_copy_has_its_own_set(copied: Any) -> None:
    """To assign to the copy doesn't change what the original dumps, nor the other way round."""
    bus = Bus(load=[1.0])
    new = copied(bus)
    new.name = "other"
    assert bus.model_dump(exclude_unset=True) == {"load": [1.0]}
    assert new.model_dump(exclude_unset=True) == {"load": [1.0], "name": "other"}
    bus.name = "third"
    assert new.name == "other"
    assert bus.model_fields_set == {"load", "name"}


def test_the_set_is_no_leaf() -> None:
    """The set is a part of the structure, which later assignments don't change."""
    bus = Bus(load=[1.0])
    leaves, spec = pydag.dag_flatten(bus)
    assert pydag.dag_paths(bus) == [("load", 0), ("name",)]
    assert spec == pydag.dag_structure(Bus(load=[2.0]))
    assert spec != pydag.dag_structure(Bus(load=[1.0], name="x"))
    bus.name = "x"
    assert pydag.dag_unflatten(spec, leaves).model_fields_set == {"load"}
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_extra_and_private_attributes_are_copied() -> None:
    """These attributes are data of the instance: their dicts are containers."""
    model = Open(w=1.0, more=2.0)
    model._cache = [3.0]
    new = pydag.dag_map(lambda x: 2 * x, model)
    assert (new.w, new.more, new._cache, new.label) == (2.0, 4.0, [6.0], "a")
    new.third, new._cache[0] = 5, 7.0
    assert model.model_dump() == {"w": 1.0, "label": "a", "more": 2.0}
    assert model._cache == [3.0]


def test_a_set_in_a_meta_field_is_copied() -> None:
    """What may change in place isn't shared by two instances, whatever the class."""

    @pydag.register_fields(meta_fields=["tags"])
    class Tagged:
        def __init__(self) -> None:
            self.w, self.tags = 1.0, {"a"}

    one = Tagged()
    other = pydag.dag_copy(one)
    other.tags.add("b")
    assert (one.tags, other.tags) == ({"a"}, {"a", "b"})
    assert pydag.dag_structure(one) != pydag.dag_structure(other)
