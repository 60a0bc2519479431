# SPDX-License-Identifier: Apache-2.0
"""How the core reads and writes attributes, and what `register_fields` refuses."""

import abc
import functools
import sys
import typing
from collections import OrderedDict, defaultdict
from typing import Any

import pytest

import pydag


def test_attributes_are_read_and_written_past_the_class() -> None:
    """No `__init__`, `__setattr__`, `__getattribute__` or `__delattr__` of the class runs."""

    @pydag.register_fields(data_fields=("x",), meta_fields=("m",))
    class Guarded:
        def __init__(self) -> None:
            raise AssertionError

        def __setattr__(self, name: str, value: Any) -> None:
            raise AssertionError

        def __getattribute__(self, name: str) -> Any:
            raise AssertionError

    node = object.__new__(Guarded)
    object.__setattr__(node, "x", 1)
    object.__setattr__(node, "m", "meta")
    out = pydag.dag_map(lambda x: x + 1, node)
    assert object.__getattribute__(out, "x") == 2
    assert object.__getattribute__(out, "m") == "meta"


def test_properties_and_other_descriptors() -> None:
    """A field may be a property: it is read, and written where it can be."""

    @pydag.register_fields(data_fields=("x",))
    class Celsius:
        def __init__(self, kelvin: float) -> None:
            self.kelvin = kelvin

        @property
        def x(self) -> float:
            return self.kelvin - 273

        @x.setter
        def x(self, value: float) -> None:
            self.kelvin = value + 273

    out = pydag.dag_map(lambda x: x + 1, Celsius(300))
    assert out.kelvin == 301


def test_descriptor_that_finds_a_skipped_object() -> None:
    """An object that a field's descriptor takes from elsewhere in the tree is shared with there."""
    hidden = [[0.5]]

    class Finder:
        def __get__(self, instance: Any, owner: Any) -> Any:
            return hidden[0]

    @pydag.register_fields(data_fields=("x",))
    class Layer:
        x = Finder()

    @pydag.register_fields(data_fields=("y",))
    class Lazy:
        @functools.cached_property
        def y(self) -> Any:
            return hidden[0]

    for cls in (Layer, Lazy):
        assert pydag.dag_structure((hidden, cls())).num_shared == 1


def test_meta_slot_whose_name_is_in_the_dict_too() -> None:
    """The slot hides the other attribute, which doesn't stand in for a field that is missing."""

    class Half:
        __slots__ = ("__dict__", "slot")
        slot: Any

    pydag.register_fields(Half, meta_fields=("slot", "other"))
    node = Half()
    node.slot = 1
    for hiding in ("slot", "".join(["sl", "ot"])):  # the name itself, and a string equal to it
        node.__dict__ = {hiding: 2}
        for _ in range(3):
            with pytest.raises(AttributeError, match="other"):
                pydag.dag_flatten(node)
        node.__dict__["other"] = 3
        assert repr(pydag.dag_structure([node])) == "PyDagSpec([Half(slot=1, other=3)])"


def test_slot_of_two_names() -> None:
    """A value that is written over, since two fields are one slot, is let go of."""

    class Aliased:
        __slots__ = ("a",)
        a: Any

    cls: Any = Aliased
    cls.b = cls.a
    pydag.register_fields(Aliased, data_fields=("a", "b"))
    first, second = object(), object()
    node = Aliased()
    node.a = 1
    spec = pydag.dag_structure(node)
    before = sys.getrefcount(first), sys.getrefcount(second)
    built = [pydag.dag_unflatten(spec, [first, second]) for _ in range(10)]
    assert {obj.b for obj in built} == {second}
    del built
    assert (sys.getrefcount(first), sys.getrefcount(second)) == before


def test_missing_field() -> None:
    """A field that isn't set is an AttributeError that names it and the place."""

    @pydag.register_fields(data_fields=("x",))
    class Open:
        pass

    @pydag.register_fields(data_fields=("x",))
    class Slotted:
        __slots__ = ("x",)

    for cls in (Open, Slotted):
        with pytest.raises(AttributeError, match="'x'") as info:
            pydag.dag_leaves({"k": cls()})
        assert "tree['k']" in info.value.__notes__[0]


@pytest.mark.parametrize(
    ("data", "meta", "error"),
    [
        (("x",), ("x",), ValueError),
        (("x", "x"), (), ValueError),
        (None, ("m", "m"), ValueError),
        ("xy", (), TypeError),
        (None, "m", TypeError),
        ((1,), (), TypeError),
        (None, (None,), TypeError),
        (7, (), TypeError),
    ],
)
def test_bad_names(data: Any, meta: Any, error: type[Exception]) -> None:
    """Names are distinct strings, and data or meta; a refused class can be registered later."""

    class Layer:
        pass

    with pytest.raises(error):
        pydag.register_fields(Layer, data, meta)
    pydag.register_fields(Layer)


class Abstract(abc.ABC):
    @abc.abstractmethod
    def method(self) -> None: ...


@pytest.mark.parametrize("base", [dict, list, tuple, int, str, set, BaseException, type, bytearray])
@pytest.mark.parametrize("extra", [{}, {"__del__": lambda self: None}])
def test_classes_that_hold_more_than_attributes(base: Any, extra: dict[str, Any]) -> None:
    """A class whose instances hold more than attributes is refused, whatever methods it has."""
    with pytest.raises(TypeError):
        pydag.register_fields(type("Sub", (base,), dict(extra)))
    with pytest.raises((TypeError, ValueError)):
        pydag.register_fields(base)
    if base is dict:
        with pytest.raises(TypeError):
            pydag.register_fields(type("Sub", (Abstract, base), dict(extra)))


def test_abstract_and_generic_classes() -> None:
    """Abstract, generic and finalized classes of attributes can be registered."""
    x = typing.TypeVar("x")

    class Finalized:
        def __del__(self) -> None: ...

    class Generic(typing.Generic[x]): ...

    for cls in (Abstract, Generic, Finalized):
        pydag.register_fields(cls)
    node: Any
    for node in (Generic(), Generic[int](), Finalized()):
        node.w = [0.5]
        assert pydag.dag_copy(node).w == [0.5]


def test_dict_that_is_an_instance_too() -> None:
    """A `__dict__` of its own in the tree shares its values with the instance, in either order."""

    @pydag.register_fields
    class Layer:
        pass

    make: Any
    for make in (dict, OrderedDict, lambda: defaultdict(None)):
        layer: Any = Layer()
        layer.__dict__ = make()
        layer.__dict__["w"] = [object()]
        assert pydag.dag_structure([layer, layer.__dict__]).num_shared == 1
        assert pydag.dag_structure([layer.__dict__, layer]).num_shared == 1
