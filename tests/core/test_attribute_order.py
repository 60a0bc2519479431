# SPDX-License-Identifier: Apache-2.0
"""Attributes that are found on the instance: traversed by name, and set again as they were set."""

import pickle
import random
from typing import Any

import pytest
import reference
from registering import Part

import pydag


class Slotted:
    """Slots, and a `__dict__` for whatever else is set."""

    __slots__ = ("__dict__", "z_slot", "a_slot")  # noqa: RUF023 (in no order of the names)


pydag.register_fields(Slotted)


def order_of(node: Any) -> str:
    """The attributes in the order in which they were set."""
    return " ".join(vars(node))


def test_an_instance_is_rebuilt_as_it_was_set() -> None:
    """Every way to build one sets the attributes in the order in which they were set."""
    for node in (Part(w=1, b=2, scale=3), Part(scale=3, b=2, w=1), Part(b=2, scale=3, w=1)):
        for forget in (True, False):
            if forget:
                pydag.clear_caches()
            leaves, spec = pydag.dag_flatten(node)
            restored = pickle.loads(pickle.dumps(spec))
            assert restored == spec
            assert restored.is_same_order(spec)
            text = type(spec).from_json(spec.to_json())
            assert text == spec
            assert text.is_same_order(spec)
            built = [
                spec.unflatten(leaves),
                restored.unflatten(leaves),
                text.unflatten(leaves),
                pydag.dag_map(lambda x: x, node),
                pydag.dag_map(lambda x, _: x, node, Part(b=0, w=0, scale=0)),
                pydag.dag_copy(node),
                pydag.reref(pydag.deref([node]))[0],
            ]
            assert [order_of(x) for x in built] == [order_of(node)] * len(built)
            assert all(vars(x) == vars(node) for x in built)


def test_the_order_is_asked_for_besides() -> None:
    """`is_same_order` tells two instances apart that were set in another order, and no others."""
    one, two, again = Part(w=1, b=2), Part(b=3, w=4), Part(w=5, b=6)
    spec = pydag.dag_structure(one)
    assert not spec.is_same_order(pydag.dag_structure(two))
    assert spec.is_same_order(pydag.dag_structure(again))


def test_rests_and_prefixes_are_matched_by_name() -> None:
    """A second tree whose attributes were set in another order gives each leaf its own partner."""
    one, two = Part(w=1, b=2), Part(b=20, w=10)
    assert vars(pydag.dag_map(lambda x, y: x + y, one, two)) == {"w": 11, "b": 22}
    assert pydag.broadcast_prefix(Part(b="B", w="W"), Part(w=[1, 2], b=[3])) == ["B", "W", "W"]


@pytest.mark.parametrize("seed", range(30))
def test_as_the_reference_says(seed: int) -> None:
    """Random names in random order, nested and shared: leaves, paths, text and copies agree."""
    rng = random.Random(seed)
    registry = {Part: reference_fields(), Slotted: reference_fields()}

    def make(depth: int) -> Any:
        if depth == 0 or rng.random() < 0.3:
            return [object() if rng.random() < 0.5 else rng.random()]
        names = rng.sample(
            ["w", "b", "ab", "B", "é", "w2", "w10", "_x", "\U0001d49c"], rng.randint(0, 6)
        )
        if rng.random() < 0.3:
            node: Any = Slotted()
            for name in rng.sample([*names, "z_slot", "a_slot"], len(names) + 1):
                setattr(node, name, make(depth - 1))
            return node
        parts = [make(depth - 1) for _ in names]
        if parts:
            parts[-1] = parts[0]
        return Part(**dict(zip(names, parts, strict=True)))

    tree = make(3)
    leaves, spec = pydag.dag_flatten(tree)
    expected, model = reference.flatten(tree, registry=registry)
    assert all(map(lambda a, b: a is b, leaves, expected))
    assert len(leaves) == len(expected)
    assert spec.paths() == reference.paths(model)
    assert repr(spec) == reference.text(model)
    built, wanted = spec.unflatten(leaves), reference.unflatten(model, expected)
    again, other = pydag.dag_structure(built), pydag.dag_structure(wanted)
    assert again == spec == other
    assert again.is_same_order(spec)
    assert other.is_same_order(spec)


def reference_fields() -> Any:
    """How the reference model knows a class whose fields are found on its instances."""
    from reference_kinds import Fields

    return Fields()
