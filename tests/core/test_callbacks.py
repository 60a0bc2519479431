# SPDX-License-Identifier: Apache-2.0
"""What callbacks raise, and what is left behind when they do."""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pydag


@pytest.fixture
def node() -> Iterator[Callable[..., Any]]:
    """Makes a class that is registered with the two functions, and takes it out at the end."""
    made: list[type] = []

    def make(flatten: Any, unflatten: Any = lambda aux, children: None) -> Any:
        cls = type("Node", (), {"__init__": lambda self, *c: self.__dict__.update(c=c)})
        pydag.register_pydag_node(cls, flatten, unflatten)
        made.append(cls)
        return cls

    yield make
    for cls in made:
        pydag.unregister_pydag_node(cls)


class OwnError(Exception):
    """Raised by callbacks here."""


def test_exceptions_pass_through_unchanged(node: Callable[..., Any]) -> None:
    """What a callback raises comes out as the same object, with a note of where it was."""
    error = OwnError("the user's")

    def raise_it(*_: Any) -> Any:
        raise error

    broken = node(raise_it)
    for work in (
        lambda: pydag.dag_flatten({"a": [broken()]}),
        lambda: pydag.dag_flatten({"a": [7]}, is_leaf=lambda x: x == 7 and raise_it()),
        lambda: pydag.dag_map(raise_it, {"a": [7]}),
        lambda: pydag.dag_map_with_path(raise_it, {"a": [7]}),
    ):
        error.__notes__ = []
        with pytest.raises(OwnError) as info:
            work()
        assert info.value is error
        assert len(error.__notes__) == 1
        assert "tree['a'][0]" in error.__notes__[0]


@pytest.mark.parametrize("error", [TypeError, AttributeError, KeyError, StopIteration, ValueError])
def test_no_type_of_exception_is_swallowed(error: type[Exception]) -> None:
    """A callback's TypeError is no "not comparable", its StopIteration ends no loop."""

    def fail(*_: Any) -> Any:
        raise error("the user's")

    with pytest.raises(error, match="the user's"):
        pydag.dag_leaves([1], is_leaf=fail)
    with pytest.raises(error, match="the user's"):
        pydag.dag_map(fail, [1])


def test_notes_do_not_pile_up() -> None:
    """One exception that is raised again and again gets each note once, and not without end."""
    error = OwnError("the user's")

    def fail(_: Any) -> Any:
        raise error

    for _ in range(100):
        for tree in ({"a": [1]}, {"b": [1]}):
            with pytest.raises(OwnError):
                pydag.dag_map(fail, tree)
    assert error.__notes__ == [
        "raised while mapping tree['a'][0]",
        "raised while mapping tree['b'][0]",
    ]
    error.add_note("the user's own")
    for i in range(1000):
        with pytest.raises(OwnError):
            pydag.dag_map(fail, {i: 1})
    assert error.__notes__[2] == "the user's own"
    assert len(error.__notes__) < 50
    error.__notes__ = "no list"  # type: ignore[assignment]  # meant
    with pytest.raises(OwnError):
        pydag.dag_map(fail, [1])


def test_missing_field_names_its_place() -> None:
    """About a field that isn't set every walk names the class, the field and the path."""

    @pydag.register_fields(data_fields=("x", "y"), meta_fields=("m",))
    class Plain:
        pass

    @pydag.register_fields(data_fields=("x", "y"), meta_fields=("m",))
    class Slotted:
        __slots__ = ("m", "x", "y")

    def make(cls: Any, *names: str) -> Any:
        node = cls()
        for name in names:
            setattr(node, name, 1)
        return node

    for cls in (Plain, Slotted):
        spec = pydag.dag_structure({"a": [make(cls, "x", "y", "m")]})
        for missing, names in (("y", ("x", "m")), ("m", ("x", "y"))):
            tree = {"a": [make(cls, *names)]}
            for work in (pydag.dag_leaves, pydag.dag_copy, pydag.deref, spec.flatten_up_to):
                with pytest.raises(AttributeError) as info:
                    work(tree)
                said = f"'{cls.__name__}' object has no attribute '{missing}': a field"
                assert str(info.value).startswith(said)
                assert str(info.value).endswith(" must be set\n  at tree['a'][0]")


def test_raising_from_the_nth_callback(node: Callable[..., Any]) -> None:
    """After an exception at any point, the spec, the tree and the leaves are as they were."""
    countdown = [0]

    def tick() -> None:
        countdown[0] -= 1
        if countdown[0] == 0:
            raise OwnError

    def flatten(x: Any) -> Any:
        tick()
        return x.c, None

    def unflatten(_: Any, children: Any) -> Any:
        tick()
        return cls(*children)

    cls = node(flatten, unflatten)
    shared = cls([0.5], cls())
    tree = [shared, {"a": shared, "b": cls(shared, 1.5)}]
    leaves, spec = pydag.dag_flatten(tree)
    counts = [sys.getrefcount(x) for x in (*leaves, shared, tree)]
    for n in (1, 2, 3):
        countdown[0] = n
        with pytest.raises(OwnError):
            pydag.dag_flatten(tree)
        countdown[0] = n
        with pytest.raises(OwnError):
            pydag.dag_unflatten(spec, leaves)
    assert [sys.getrefcount(x) for x in (*leaves, shared, tree)] == counts
    assert pydag.dag_structure(tree) == spec
    assert pydag.dag_structure(pydag.dag_unflatten(spec, leaves)) == spec


def test_caught_errors_cost_no_recursion_levels() -> None:
    """After 20,000 errors in a callback 50 levels deep, and cycles, the process is as before."""

    @pydag.register_fields
    class Loop:
        pass

    loop: Any = Loop()
    loop.itself = [loop]
    alone: list[Any] = []
    alone.append(alone)
    tree: Any = 7
    for _ in range(50):
        tree = [tree]

    def fail(x: Any) -> bool:
        if x == 7:
            raise OwnError
        return False

    caught = 0
    for _ in range(20_000):
        for work in (
            lambda: pydag.dag_leaves(tree, is_leaf=fail),
            lambda: pydag.dag_flatten(loop),
            lambda: pydag.dag_flatten(alone),
        ):
            try:  # quicker than pytest.raises
                work()
            except (OwnError, pydag.CycleError):
                caught += 1
    assert caught == 60_000
    assert repr(tree) == "[" * 50 + "7" + "]" * 50
    assert sorted([3, 1, 2], key=lambda x: x) == [1, 2, 3]
    assert pydag.dag_leaves(tree) == [7]


def test_class_unregistered_while_it_is_opened(node: Callable[..., Any]) -> None:
    """A predicate, a flatten and an unflatten function may unregister the class at hand."""

    class Fleeting:
        pass

    def flatten(_: Any) -> Any:
        return (1, 2), None

    def is_leaf(x: Any) -> bool:
        if isinstance(x, Fleeting):
            pydag.unregister_pydag_node(Fleeting)
        return False

    def unflatten(_: Any, children: Any) -> Any:
        pydag.unregister_pydag_node(Fleeting)
        return children

    pydag.register_pydag_node(Fleeting, flatten, unflatten)
    leaves, spec = pydag.dag_flatten([Fleeting()], is_leaf=is_leaf)
    assert leaves == [1, 2]
    pydag.register_pydag_node(Fleeting, flatten, unflatten)
    assert pydag.dag_unflatten(spec, leaves) == [(1, 2)]


def test_finalizer_that_comes_back_while_unregistering() -> None:
    """A finalizer that runs as a registration goes may register and flatten."""
    came_back = []

    class Function:
        def __call__(self, *_: Any) -> Any:
            return (), None

        def __del__(self) -> None:
            pydag.register_pydag_node(Other, lambda _: ((1,), None), lambda *_: None)
            came_back.extend(pydag.dag_leaves(Other()))

    class Some:
        pass

    class Other:
        pass

    pydag.register_pydag_node(Some, Function(), Function.__call__)
    pydag.unregister_pydag_node(Some)
    assert came_back == [1]


def test_error_text_that_comes_back() -> None:
    """A class whose `repr` uses the library may stand in the library's error messages."""

    class Meta(type):
        def __repr__(cls) -> str:
            return f"<class with {pydag.dag_leaves([[1], [1]])}>"

    class Some(metaclass=Meta):
        pass

    pydag.register_fields(Some)
    with pytest.raises(ValueError, match=r"<class with \[1, 1\]> is already registered"):
        pydag.register_fields(Some)
