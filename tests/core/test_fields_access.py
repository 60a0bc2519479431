# SPDX-License-Identifier: Apache-2.0
"""How the core reads and writes attributes, and what `register_fields` refuses."""

import abc
import dataclasses
import sys
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


def _copies(node: Any) -> list[Any]:
    """Copies of an instance, each made on another way through the core."""
    pydag.clear_caches()
    leaves, spec = pydag.dag_flatten([node], lambda _: False)  # the general walk
    ways = [pydag.dag_unflatten(spec, leaves)]
    for forget in (True, False):  # nothing is known of the tree; then it is a known one
        if forget:
            pydag.clear_caches()
        leaves, spec = pydag.dag_flatten([node])
        ways.append(pydag.dag_unflatten(spec, leaves))
    ways.append(pydag.dag_unflatten(spec, spec.flatten_up_to([node])))
    ways.append(pydag.dag_unflatten(spec, spec.flatten_up_to(ways[0])))
    make, arguments, state = spec.__reduce__()
    restored = make(*arguments)  # as pickle does, which can't find a local class
    restored.__setstate__(state)
    ways.append(pydag.dag_unflatten(restored, leaves))
    ways.append(pydag.dag_map(lambda x, _: x, [node], ways[1]))
    ways.append(pydag.dag_copy([node]))
    ways.append(pydag.reref(pydag.deref([node])))
    assert all(type(way[0]) is type(node) for way in ways)
    return [way[0] for way in ways]


class Doubling:
    """A data descriptor that changes what it is given."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else ("read", vars(instance)[self.name])

    def __set__(self, instance: Any, value: Any) -> None:
        vars(instance)[self.name] = ("written", value)


class Base:
    def __init__(self, w: Any) -> None:
        vars(self)["w"] = w


HIDING: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "a property": (property(lambda self: "computed"), ()),
    "a descriptor": (Doubling(), ()),
    "a named one": (Doubling(), (("w",),)),
    "a meta field": (Doubling(), ((), ("w",))),
    "a default": ("of the class", ()),
    "a method": (lambda self: None, ()),
}


@pytest.fixture(params=HIDING)
def hiding(request: pytest.FixtureRequest) -> Any:
    """A class that has something of its own under the name of an attribute."""
    value, names = HIDING[request.param]
    cls = type("Hiding", (type("Inherited", (Base,), {"w": value}),), {})
    pydag.register_fields(cls, *names)
    return cls


def test_no_descriptor_has_a_say(hiding: Any) -> None:
    """Attributes are read from and written to `__dict__`, whatever the class has of that name."""
    node = hiding([0.5])
    for copy in _copies(node):
        assert vars(copy) == {"w": [0.5]}
    assert pydag.dag_leaves(node) in ([], [0.5])
    if pydag.dag_leaves(node):
        pydag.dag_update(node, hiding([1.5]))
        assert vars(node) == {"w": [1.5]}


class Slotted:
    __slots__ = ("w", "x")


@pydag.register_fields
class Hiding(Slotted):
    __slots__ = ()

    @property
    def w(self) -> Any:
        return "computed"


@pydag.register_fields(data_fields=("w",), meta_fields=("x",))
class HidingNamed(Slotted):
    __slots__ = ()
    w = Doubling()
    x = Doubling()


@pytest.mark.parametrize("cls", [Hiding, HidingNamed])
def test_slot_that_a_property_hides(cls: Any) -> None:
    """A slot is read and written where it lies, though a property of a subclass hides it."""
    node = cls()
    slots: Any = vars(Slotted)
    slots["w"].__set__(node, [0.5])
    slots["x"].__set__(node, 1.5)
    for copy in _copies(node):
        assert slots["w"].__get__(copy) == [0.5]
        assert slots["x"].__get__(copy) == 1.5


def test_slot_that_a_default_hides() -> None:
    """Where a class attribute hides a slot, values are in `__dict__`, and are found there."""

    @dataclasses.dataclass
    class Slim:
        __slots__ = ("w",)
        w: Any

    @pydag.register_fields
    @dataclasses.dataclass
    class Wide(Slim):
        w: Any = 0.5

    wide = Wide([1.5])
    assert vars(wide) == {"w": [1.5]}
    for copy in _copies(wide):
        assert vars(copy) == {"w": [1.5]}


def _replace(cls: Any) -> None:
    cls.w = property(lambda self: 42)


def _default(cls: Any) -> None:
    cls.w = 42


def _remove(cls: Any) -> None:
    if "w" in vars(cls):
        del cls.w


def _teach(cls: Any) -> None:
    cls.w = Untaught()
    Untaught.__set__ = lambda self, instance, value: None  # type: ignore[attr-defined]  # it is added


def _rebase(cls: Any) -> None:
    cls.__bases__ = (type("Other", cls.__bases__, {"w": Doubling(), "__slots__": ()}),)


class Untaught: ...


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize("slots", [True, False])
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("change", [_replace, _default, _remove, _teach, _rebase])
def test_class_that_changes(change: Any, named: bool, slots: bool, seen: bool) -> None:
    """What is done to a class after its instances were made changes nothing, seen before or not."""

    class Layer(Base):
        if slots:
            __slots__ = ("w",)

    pydag.register_fields(Layer, ("w",) if named else None)
    node: Any = object.__new__(Layer)
    node.w = [0.5]
    slot = vars(Layer).get("w")
    read: Any = slot.__get__ if slot else (lambda obj: vars(obj)["w"])
    if seen:
        _copies(node)
    try:
        change(Layer)
        for copy in _copies(node):
            assert read(copy) == [0.5]
    finally:
        if hasattr(Untaught, "__set__"):
            del Untaught.__set__


@pytest.mark.parametrize("named", [{"data_fields": ("kelvin", "w")}, {"meta_fields": ("w",)}])
def test_a_property_is_no_field(named: Any) -> None:
    """Nothing is stored under its name: an error where the class is registered."""

    class Celsius:
        def __init__(self) -> None:
            self.kelvin = 300

        @property
        def w(self) -> float:
            return self.kelvin - 273

    with pytest.raises(ValueError, match=r"\['w'\] can't be fields: these are properties"):
        pydag.register_fields(Celsius, **named)
    pydag.register_fields(Celsius)
    assert pydag.dag_leaves(Celsius()) == [300]


def test_default_that_the_class_keeps() -> None:
    """A dataclass field that only the class has a value for, since `init=False`, has that value."""

    @pydag.register_fields
    @dataclasses.dataclass
    class Layer:
        w: Any
        count: int = dataclasses.field(default=3, init=False)

    layer = Layer([0.5])
    assert vars(layer) == {"w": [0.5]}
    for copy in _copies(layer):
        assert vars(copy) == {"w": [0.5], "count": 3}


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


@pytest.mark.parametrize("is_set", [True, False])
def test_name_of_a_slot_in_the_dict(is_set: bool) -> None:
    """A name in `__dict__` that is a slot's, set or not, is an error: where would it go back to?"""

    @pydag.register_fields
    class Both:
        __slots__ = ("__dict__", "s")
        s: Any

    plain = Both()
    plain.s = 1
    pydag.dag_flatten(plain)
    both = Both()
    if is_set:
        both.s = 1
    for name in ("s", "".join(["", "s"]), Text("s")):
        both.__dict__ = {name: 2}
        for is_leaf in (None, lambda _: False):
            with pytest.raises(ValueError, match=r"'s' of a .*Both is both a slot and in __dict__"):
                pydag.dag_flatten([both], is_leaf)
            with pytest.raises(ValueError, match="both a slot and in __dict__"):
                pydag.dag_structure([plain]).flatten_up_to([both])


class Text(str):
    __slots__ = ()


def test_names_that_are_texts_of_their_own() -> None:
    """An attribute whose name isn't interned, or is a subclass of str, is the one of that text."""

    @pydag.register_fields(data_fields=("w",), meta_fields=("m",))
    class Layer: ...

    for make in (str, lambda x: (x + "!")[:-1], Text):
        layer = Layer()
        layer.__dict__ = {make("m"): 1.5, make("w"): [0.5]}
        for copy in _copies(layer):
            assert vars(copy) == {"w": [0.5], "m": 1.5}
