# SPDX-License-Identifier: Apache-2.0
"""Classes that another library knows by their fields: the core opens them itself where it may."""

from collections.abc import Callable, Iterator
from typing import Any

import optree
import pytest

import pydag
from pydag import _core
from pydag.registry import lookup

OPENED: list[Any] = []  # by the other library's function
FOUND: dict[type, object] = {}  # the other library's registry
_core.watch_registry(FOUND)


class Known:
    def __init__(self, w: Any, name: str) -> None:
        self.w, self.name = w, name


class Number(int):  # holds more than attributes
    pass


def flatten(node: Any) -> Any:
    OPENED.append(node)
    return (node.w,), node.name


def unflatten(name: Any, children: Any) -> Any:
    (w,) = children
    return Known(w, name)


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Tells pydag of a class as another library would."""
    monkeypatch.setattr(lookup, "_fallbacks", [(FOUND.get, tuple)])

    def tell(cls: type, *, by_fields: bool = True, is_strict: bool = True) -> None:
        resolve = (lambda: (("w",), (), ("name",))) if by_fields else None
        FOUND[cls] = _core.foreign_registration(
            cls, flatten, unflatten, optree.GetAttrEntry, resolve, is_strict, False, False
        )
        _core.clear_caches()

    OPENED.clear()
    yield tell
    FOUND.clear()
    _core.clear_caches()


def test_opened_by_its_fields(register: Callable[..., None]) -> None:
    """Where it has its fields and nothing else no function of the other library is called."""
    register(Known)
    w = [1.5]
    for _ in range(2):
        tree = [Known(w, "a"), Known(w, "b")]
        out = pydag.dag_map(lambda x: x + 1, tree)
        assert [type(x) for x in out] == [Known, Known]
        assert (out[0].w, out[0].name, out[1].name) == ([2.5], "a", "b")
        assert out[0].w is out[1].w
        assert repr(pydag.dag_structure(tree[0])) == "PyDagSpec(Known(w=[*], name='a'))"
    assert OPENED == []


def test_a_name_twice_and_another_not_at_all(register: Callable[..., None]) -> None:
    """The function decides if there are as many attributes as fields, but not just these fields."""

    class Odd(str):
        __slots__ = ()
        __eq__ = object.__eq__
        __hash__ = object.__hash__

    register(Known)
    node = Known(1, "a")
    del node.name
    node.__dict__[Odd("w")] = 2
    for is_leaf in (None, lambda _: False):
        with pytest.raises(AttributeError, match="name"):
            pydag.dag_leaves([node], is_leaf)
    assert [node, node] == OPENED


@pytest.mark.parametrize("is_strict", [True, False])
def test_attributes_of_its_own(register: Callable[..., None], is_strict: bool) -> None:
    """An instance that has more is opened by the function, where it may say what there is."""
    register(Known, is_strict=is_strict)
    node, other = Known([1], "a"), Known([2], "b")
    other.more = 3  # type: ignore[attr-defined]  # that is what is tested
    for _ in range(2):
        assert pydag.dag_leaves([node, other, node]) == [1, 2]
        assert pydag.dag_copy([other])[0].w == [2]
    assert ([other] * 4 if is_strict else []) == OPENED


def test_an_attribute_less(register: Callable[..., None]) -> None:
    """An instance that lacks a field is opened by the function, too, whose error it is."""
    register(Known)
    node = Known([1], "a")
    del node.name
    with pytest.raises(AttributeError, match="name"):
        pydag.dag_leaves(node)
    assert [node] == OPENED


def test_opened_by_the_function(register: Callable[..., None]) -> None:
    """Without fields, and where instances hold more than attributes, the functions do it all."""
    register(Known, by_fields=False)
    assert pydag.dag_copy(Known([1], "a")).w == [1]
    assert len(OPENED) == 1
    register(Number)
    number = Number(3)
    number.w, number.name = [7], "n"  # type: ignore[attr-defined]  # an attribute
    assert pydag.dag_leaves(number) == [7]
    assert OPENED[1:] == [number]


@pytest.mark.parametrize("by_fields", [True, False])
def test_never_changed_in_place(register: Callable[..., None], by_fields: bool) -> None:
    """What the other library would do when a field is set isn't known: a TypeError."""
    register(Known, by_fields=by_fields)
    tree = {"k": [Known(1, "a")]}
    said = "another library, and its objects are not changed" if by_fields else "a flatten function"
    with pytest.raises(TypeError, match=rf"(?s){said}.*at tree\['k'\]\[0\]"):
        pydag.dag_update(tree, {"k": [Known(2, "a")]})
    assert tree["k"][0].w == 1
