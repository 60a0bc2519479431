# SPDX-License-Identifier: Apache-2.0
"""`register_fields`: which attributes are fields, and how they are read and written."""

import collections
import dataclasses
import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

import pydag


def test_every_form() -> None:
    """A function, a bare decorator, a decorator with arguments: each returns the class."""

    class Plain:
        pass

    assert pydag.register_fields(Plain) is Plain

    @pydag.register_fields
    class Bare:
        pass

    @pydag.register_fields(data_fields=("a",), meta_fields=["m"], namespace="some")
    class Full:
        pass

    for cls, namespace in ((Plain, ""), (Bare, ""), (Full, "some")):
        node: Any = cls()
        node.a, node.m = [0.5], "m"
        leaves = pydag.dag_leaves(node, namespace=namespace)
        assert leaves == ([0.5] if cls is Full else [0.5, "m"])


def test_all_attributes_by_name() -> None:
    """Without names, the fields are the instance's `__dict__`, by name; it is filled as it was."""

    @pydag.register_fields(meta_fields=("m",))
    class Layer:
        pass

    layer: Any = Layer()
    layer.z, layer.m, layer.a = 1, "meta", 2
    leaves, spec = pydag.dag_flatten(layer)
    assert leaves == [2, 1]
    assert repr(spec) == "PyDagSpec(Layer(a=*, z=*, m='meta'))"
    assert spec.paths() == [("a",), ("z",)]
    assert [a.codify("t") for a in spec.accessors()] == ["t.a", "t.z"]
    back = pydag.dag_unflatten(spec, leaves)
    assert back.__dict__ == {"z": 1, "a": 2, "m": "meta"}
    assert list(back.__dict__)[:2] == ["z", "a"]


def test_slots() -> None:
    """Slots that are set are fields, bases first, private ones too; unset ones stay unset."""

    class Base:
        __slots__ = ("x", "__private")  # noqa: RUF023 (the declared order counts)

        def hide(self, value: Any) -> None:
            self.__private = value

        def find(self) -> Any:
            return self.__private

    @pydag.register_fields
    class Child(Base):
        __slots__ = ("unset", "y")

    child: Any = Child()
    child.y, child.x = 2, 1
    child.hide([3])
    paths, leaves, spec = pydag.dag_flatten_with_path(child)
    assert paths == [("x",), ("_Base__private", 0), ("y",)]
    back = pydag.dag_unflatten(spec, leaves)
    assert (back.x, back.find(), back.y) == (1, [3], 2)
    assert not hasattr(back, "unset")
    child.unset = 4
    assert pydag.dag_leaves(child) == [1, 3, 4, 2]


def test_slots_beside_a_dict() -> None:
    """Attributes in `__dict__` come first, slots after them; one name can't be in both."""

    @pydag.register_fields
    class Both:
        __slots__ = ("__dict__", "x")

    both: Any = Both()
    both.x, both.y = 1, 2
    assert pydag.dag_paths(both) == [("y",), ("x",)]
    both.__dict__["x"] = 3
    with pytest.raises(ValueError, match="'x'"):
        pydag.dag_structure(both)


def test_dataclass() -> None:
    """A dataclass's fields are children, but for those marked static, in either way."""

    @pydag.register_fields
    @dataclass(frozen=True, slots=True)
    class Layer:
        w: Any
        name: str = dataclasses.field(metadata={"static": True})
        b: Any = 0.0
        size: int = dataclasses.field(default=3, metadata={"pytree_node": False})
        late: Any = dataclasses.field(init=False, default=5)

    leaves, spec = pydag.dag_flatten(Layer([1.5], "n"))
    assert leaves == [1.5, 0.0, 5]
    assert repr(spec) == "PyDagSpec(Layer(w=[*], b=*, late=*, name='n', size=3))"
    assert pydag.dag_unflatten(spec, leaves) == Layer([1.5], "n")
    assert spec != pydag.dag_structure(Layer([1.5], "other"))


def test_dataclass_made_after_registration() -> None:
    """In `__init_subclass__`, where `@dataclass` runs only later, fields are found all the same."""

    class Module:
        def __init_subclass__(cls) -> None:
            pydag.register_fields(cls)

    @dataclass
    class Layer(Module):
        w: Any
        name: str = dataclasses.field(metadata={"static": True})

    layer = Layer([1.5], "n")
    assert pydag.dag_leaves(layer) == [1.5]
    assert pydag.dag_copy(layer) == layer

    class Plain(Layer):
        def __init__(self) -> None:
            super().__init__([2.5], "m")
            self.more = [3.5]

    assert pydag.dag_leaves(Plain()) == [3.5, 2.5]


class Slotted:
    __slots__ = ("a", "b")


@dataclass
class Declared:
    w: Any
    scale: float = 1.0
    size: int = dataclasses.field(init=False, default=3)
    kind: ClassVar[str] = "declared"
    seed: dataclasses.InitVar[int] = 0
    _: dataclasses.KW_ONLY
    name: str = "layer"


class Inheriting(Declared):
    pass


@pytest.mark.parametrize(
    ("cls", "names", "left_out"),
    [
        (Declared, ["w"], "['scale', 'size', 'name']"),
        (Declared, ["w", "scale", "name"], "['size']"),
        (Inheriting, ["w", "scale", "size"], "['name']"),
        (Slotted, ["a"], "['b']"),
        (type("Sub", (Slotted,), {"__slots__": ("c",)}), ["c"], "['a', 'b']"),
    ],
)
def test_names_that_leave_out_a_field(cls: Any, names: list[str], left_out: str) -> None:
    """A field of a dataclass, or a slot, that isn't named is an error when the class is registered.

    What is built would have the default in the place of its value. The same at first use, where
    `@dataclass` comes later.
    """
    for register in (pydag.register_fields, pydag.register_module):
        for data, meta in ((names, []), (names[1:], names[:1])):
            with pytest.raises(ValueError, match="besides those that were named") as info:
                register(cls, data, meta)
            assert f" has the fields {left_out} besides" in str(info.value)

    @dataclass
    @pydag.register_fields(data_fields=["w"])
    class Later:
        w: Any
        b: Any = None

    with pytest.raises(ValueError, match=r"Later'> has the fields \['b'\] besides"):
        pydag.dag_leaves([Later(1)])
    pydag.unregister_pydag_node(Later)


class Named:
    """Its fields were named."""

    def __init__(self) -> None:
        self.w = [1.5]


class SlotsAlone(Slotted):
    """Its fields are slots, and it has a dict."""

    def __init__(self) -> None:
        self.a = self.b = 1


@dataclass
class Finished:
    """A dataclass whose `__post_init__` may set more."""

    w: Any = 1
    kind: ClassVar[str] = "finished"


@dataclass
class Empty:
    """A dataclass without fields."""


pydag.register_fields(Named, ["w"])
pydag.register_fields(SlotsAlone, ["a"], ["b"])
pydag.register_fields(Finished)
pydag.register_module(Empty)


@pytest.mark.parametrize("cls", [Named, SlotsAlone, Finished, Empty])
@pytest.mark.parametrize("name", ["extra", "kind", "w b"])
def test_an_attribute_that_would_be_lost(cls: Any, name: str) -> None:
    """An attribute beside the fields that were named or declared is an error with the path."""
    good, bad = cls(), cls()
    setattr(bad, name, 7)
    spec = pydag.dag_structure([good])
    for work in (
        lambda: pydag.dag_leaves({"k": bad}),
        lambda: pydag.dag_leaves({"k": bad}, is_leaf=lambda _: False),
        lambda: pydag.dag_copy({"k": bad}),
        lambda: pydag.dag_map(lambda x: x, {"j": good, "k": bad}),
    ):
        for _ in range(3):  # the structure of a good one is remembered
            assert pydag.dag_structure([good]) == spec
            with pytest.raises(ValueError, match=f"has the attribute '{name}', which is") as info:
                work()
            assert str(info.value).endswith("\n  at tree['k']")
    assert pydag.dag_structure([good]) == spec


@pytest.mark.parametrize(
    "hide",
    [
        lambda array: array,
        lambda array: (1, (array,)),
        lambda array: {"a": [array]},
        lambda array: collections.deque([array]),
        lambda array: functools.partial(print, x=array),
    ],
)
def test_an_array_in_a_meta_field_is_refused(hide: Any) -> None:
    """An array in a meta field, in builtin containers and partials too, is a `TypeError`."""
    numpy = pytest.importorskip("numpy")

    @pydag.register_fields(meta_fields=("kept",))
    class Kept:
        def __init__(self, kept: Any) -> None:
            self.weight, self.kept = 1, kept

    value = hide(numpy.ones(2))
    for call in (pydag.dag_leaves, pydag.dag_structure, pydag.dag_copy):
        with pytest.raises(TypeError, match=r"^tree\['m'\]\[0\]\.kept is a meta field of"):
            call({"m": [Kept(value)]})
    assert pydag.dag_leaves(Kept(hide(numpy.float32(2)))) == [1]


class Cached:
    def __init__(self, w: Any) -> None:
        self.w = w

    @functools.cached_property
    def double(self) -> Any:
        return 2 * self.w


@pydag.register_module
class CachedModule(Cached):
    __slots__ = ()

    aliased = functools.cached_property(lambda self: 3 * self.w)


@pydag.register_fields
class Hiding(Cached):
    double: Any = 0  # hides what is cached


pydag.register_fields(Cached)
pydag.register_fields(NamedCached := type("NamedCached", (Cached,), {}), ("w", "double"))


@pytest.mark.parametrize("cls", [Cached, CachedModule])
def test_a_cached_property_is_no_field(cls: Any) -> None:
    """The property is neither leaf nor structure; a rebuilt or updated object computes it anew."""
    used = cls(1.5)
    assert (used.double, getattr(used, "aliased", 4.5)) == (3.0, 4.5)
    assert pydag.dag_leaves(used) == [1.5]
    assert pydag.dag_structure(used) == pydag.dag_structure(cls(1.5))
    new = pydag.dag_map(lambda w: w + 1, used)
    assert new.double == 5.0
    assert dict(vars(new)) == {"w": 2.5, "double": 5.0}
    assert "double" not in vars(pydag.dag_copy(used))
    pydag.dag_update(used, cls(4.0))
    assert "double" not in vars(used)
    assert used.double == 8.0


def test_a_cached_property_that_was_named_is_a_field() -> None:
    """`data_fields` counts; so does an attribute of a class that hides the property."""
    named, plain = NamedCached(1.5), Hiding(1.5)
    assert named.double == 3.0
    assert pydag.dag_leaves(named) == [1.5, 3.0]
    plain.double = 7.0
    assert pydag.dag_leaves(plain) == [7.0, 1.5]


class Lazy:
    """A lazy attribute as libraries write it: the instance stores what was computed."""

    def __init__(self, function: Any) -> None:
        self.function, self.name = function, function.__name__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        return instance.__dict__.setdefault(self.name, self.function(instance))


class SubLazy(Lazy):
    """Inherits the protocol."""


class Watched(Lazy):
    """Must not be asked by pydag: only its class is."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        assert instance is not None, "read from the class"
        return super().__get__(instance, owner)


class WithData:
    """Has `__set__`: what it stores was given to it."""

    def __set_name__(self, owner: Any, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else instance.__dict__[self.name]

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self.name] = value


class OfWeight:
    def __init__(self, w: Any) -> None:
        self.w = w


def lazy_class(lazy: Any, *base: type, **options: Any) -> Any:
    """A class with a lazy attribute `double`."""

    def double(self: Any) -> Any:
        return 2 * self.w

    cls = type("Lazily", (*base, OfWeight), {"double": lazy(double)})
    return pydag.register_fields(cls, **options)


@pytest.mark.parametrize("lazy", [functools.cached_property, Lazy, SubLazy, Watched])
@pytest.mark.parametrize("options", [{}, {"data_fields": ("w",)}, {"meta_fields": ("name",)}])
def test_what_a_lazy_attribute_stores_is_no_field(lazy: Any, options: Any) -> None:
    """What a descriptor with `__get__`, without `__set__`, stores is computed anew, never kept."""
    cls = lazy_class(lazy, **options)
    used, fresh = cls(1.5), cls(1.5)
    used.name = fresh.name = "n"
    if "data_fields" in options:
        del used.name, fresh.name
    assert used.double == 3.0
    assert 3.0 not in pydag.dag_leaves(used)
    assert pydag.dag_structure(used) == pydag.dag_structure(fresh)
    new = pydag.dag_map(lambda x: x + 1 if x == 1.5 else x, used)
    assert "double" not in vars(new)
    assert new.double == 5.0
    pydag.dag_update(used, new)
    assert used.double == 5.0


def test_a_lazy_attribute_of_a_base_class() -> None:
    """The attribute is inherited; a subclass that hides it by a plain value has a field there."""
    base = lazy_class(Lazy)
    below = pydag.register_fields(type("Below", (base,), {}))(1.5)
    hiding = pydag.register_fields(type("Hiding", (base,), {"double": None}))(1.5)
    assert below.double == 3.0
    hiding.double = 7.0
    assert pydag.dag_leaves(below) == [1.5]
    assert pydag.dag_leaves(hiding) == [7.0, 1.5]


def test_the_metaclass_says_nothing_of_instances() -> None:
    """A lazy attribute of the metaclass is none of the class."""
    meta = type("Meta", (type,), {"double": Lazy(lambda cls: 1)})
    node: Any = pydag.register_fields(meta("Node", (), {}))()
    node.double = 7.0
    assert pydag.dag_leaves(node) == [7.0]


@pytest.mark.parametrize(
    "method",
    [
        lambda self: 1,
        staticmethod(lambda: 1),
        classmethod(lambda cls: 1),
        functools.partialmethod(lambda self, x: x, 1),
        functools.singledispatchmethod(lambda self, x: x),
        functools.lru_cache(lambda self: 1),
        functools.partial(int, "1"),
        pydag.dag_leaves,
        type("Call", (Lazy,), {"__call__": lambda self: 1})(lambda self: 1),
        5.0,
        int,
    ],
)
def test_a_method_that_an_instance_overrides_is_a_field(method: Any) -> None:
    """Methods of every kind, callables and plain values are no caches."""
    node: Any = pydag.register_fields(type("Node", (), {"call": method}))()
    node.call = 7.0
    assert pydag.dag_leaves(node) == [7.0]
    assert pydag.dag_map(lambda x: x + 1, node).call == 8.0


def test_a_descriptor_that_stores_what_it_was_given_is_a_field() -> None:
    """With `__set__` the value isn't computed; nor is the value of a declared or named field."""

    @pydag.register_fields
    class Checked:
        w = WithData()

    @pydag.register_fields
    @dataclass
    class Declared:
        w: Any = Lazy(lambda self: 1)

    node: Any = Checked()
    node.w = 7.0
    named = lazy_class(Lazy, data_fields=("w", "double"))(1.5)
    assert named.double == 3.0
    assert pydag.dag_leaves([node, Declared(2.0), named]) == [7.0, 2.0, 1.5, 3.0]


def test_dataclass_that_initializes_otherwise() -> None:
    """`__init__`, `__post_init__` and InitVars play no part in building an instance."""

    @pydag.register_fields
    @dataclass
    class Layer:
        w: Any
        scale: dataclasses.InitVar[int]

        def __post_init__(self, scale: int) -> None:
            self.w = self.w * scale

    assert pydag.dag_copy(Layer(2, 3)).w == 6
