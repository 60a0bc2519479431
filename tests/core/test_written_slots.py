# SPDX-License-Identifier: Apache-2.0
"""A user's keys decide which slots of scratch memory are written: all are, or the walk gives up."""

from typing import Any

import pytest

import pydag


class Odd(str):
    """A name that a dict never finds under its text, nor takes for another one of the same text."""

    __slots__ = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__


@pydag.register_fields(meta_fields=("m", "n"))
class TwoMeta:
    """Two meta fields; all other attributes are data."""


@pydag.register_fields(data_fields=("a", "b"), meta_fields=("m",))
class Named:
    """All of its fields are named."""


@pydag.register_fields(meta_fields=("m", "n"))
class SlotMeta:
    """One meta field is a slot, the other one stands in the dict."""

    __slots__ = ("__dict__", "m")


def made(cls: Any, **attributes: Any) -> Any:
    node = cls()
    node.__dict__.update(attributes)
    return node


def with_odd(cls: Any, name: str, value: Any, **attributes: Any) -> Any:
    """An instance with one more attribute, whose name is the text of another one's."""
    node = made(cls, **attributes)
    node.__dict__[Odd(name)] = value
    return node


MISSING: dict[str, Any] = {
    "one meta field twice, the other not at all": with_odd(TwoMeta, "m", 1, m=1, x=3),
    "the same the other way round": with_odd(TwoMeta, "n", 1, n="N", x=3),
    "both under odd names": with_odd(TwoMeta, "n", 2, **{Odd("m"): 1}),
    "an odd name alone": with_odd(TwoMeta, "m", 1, n="N"),
    "a data field twice": with_odd(Named, "a", 1, a=1, m=1),
    "a data field for a meta field": with_odd(Named, "a", 1, a=1, b=2),
    "a slot that is not set": with_odd(SlotMeta, "n", 2, n=1),
    "a slot's name in the dict": with_odd(SlotMeta, "m", 2, m=1, n=1),
}


def rich(cls: Any) -> Any:
    """An instance that has all that its class wants."""
    node = made(cls, n="N", x=1) if cls is not Named else made(cls, a=1, b=2)
    node.m = 1
    return node


@pytest.mark.parametrize("what", MISSING)
def test_each_field_is_found(what: str) -> None:
    """That so many fields were found is not that each was: a missing one is an AttributeError."""
    bad = MISSING[what]
    good = rich(type(bad))
    spec = pydag.dag_structure([good])
    for _ in range(3):  # the structure is remembered: an object is compared with it first
        assert pydag.dag_structure([good]) == spec
    for work in (
        lambda: pydag.dag_structure([bad]),
        lambda: pydag.dag_flatten([bad], is_leaf=lambda _: False),
        lambda: pydag.dag_copy([good, bad]),
        lambda: pydag.dag_map(lambda x, y: y, [good], [bad]),
        lambda: spec.flatten_up_to([bad]),
        lambda: pydag.dag_update([good], [bad]),
        lambda: pydag.dag_map(lambda x: x, [good, good, bad]),
        lambda: list(pydag.dag_iter([bad])),
    ):
        with pytest.raises(AttributeError, match="a field of a registered class must be set"):
            work()


@pytest.mark.parametrize("values", [(1, 1), (1, 2)])
def test_two_keys_of_one_text(values: tuple[int, int]) -> None:
    """Of two names with a meta field's text none is left out silently; two data fields stand."""
    both = with_odd(TwoMeta, "m", values[1], m=values[0], n="N", x=3)
    for is_leaf in (None, lambda _: False):
        with pytest.raises(
            ValueError, match=r"two keys in the __dict__ of a TwoMeta have the text"
        ):
            pydag.dag_leaves([both], is_leaf)
    data = with_odd(TwoMeta, "x", 4, x=3, m=1, n=2)
    twice = [pydag.dag_copy(data) for _ in range(3)]
    assert [sorted(vars(x).values()) for x in twice] == [[1, 2, 3, 4]] * 3
    assert [type(name) for name in vars(twice[0])] == [str, Odd, str, str]
