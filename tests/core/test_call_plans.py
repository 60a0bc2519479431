# SPDX-License-Identifier: Apache-2.0
"""Plans, by which the core makes the calls of a compiled function; and what that returns."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import pydag
from pydag import _core

TREE: Any = (([1.0, "a", 2.0, 3.0],), {})
CLASSES = (float, str, float, float)


def key(tree: Any) -> _core.SpecKey:
    return _core.spec_key(pydag.dag_structure(tree))


class Compiled:
    """Stands for a function by `jit`; knows the name of each call, and the leaves that it got."""

    def __init__(self, namespace: str = "", access: Any = None) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self._functions: dict[Any, Callable[..., Any]] = {}
        self.plans = _core.call_plans(namespace, "all", access)
        self.caller = _core.jit_caller(
            plans=self.plans,
            unties=[],
            note_untie=lambda: None,
            places={},
            static_numbers=(),
            static_names=frozenset(),
            run=lambda args, kwargs: NotImplemented,
            recover=lambda error, args, kwargs: NotImplemented,
        )

    def take(self, name: Any, leaves: Sequence[Any]) -> Any:
        self.calls.append((name, *leaves))
        return _core.make_result(pydag.dag_structure((1, 2)), (5, 6))

    def add(
        self, name: Any, positions: Any = (), statics: Any = (), tree: Any = TREE, **more: Any
    ) -> None:
        leaves = pydag.dag_leaves(tree)
        plan = _core.call_plan(
            classes=tuple(map(type, leaves)),
            static_positions=positions,
            statics=statics,
            function=self._functions.setdefault(name, lambda *given: self.take(name, given)),
            traced=[i for i in range(len(leaves)) if i not in positions],
            **more,
        )
        _core.add_plan(self.plans, key(tree), plan)

    def call(self, tree: Any = TREE) -> Any:
        args, kwargs = tree
        return self.caller(*args, **kwargs)


GOOD: dict[str, Any] = {
    "classes": CLASSES,
    "static_positions": (1,),
    "statics": ("a",),
    "function": print,
    "traced": (0, 2, 3),
}


@pytest.mark.parametrize(
    "wrong",
    [
        {"classes": 3},
        {"classes": None},
        {"classes": ()},
        {"classes": (float,) * 5},
        {"static_positions": 3},
        {"static_positions": ("text",)},
        {"static_positions": ()},
        {"static_positions": (4,)},
        {"statics": 5},
        {"traced": None},
        {"traced": (-1,)},
        {"traced": (7,)},
        {"donated": 5},
        {"donated": (7,)},
        {"refs": (4,)},
        {"refs": (0,), "written": (2,)},
    ],
)
def test_a_malformed_plan(wrong: Any) -> None:
    """What tells how to call a compiled function is checked: an error, and no crash."""
    compiled = Compiled()
    _core.call_plan(**GOOD)
    with pytest.raises((TypeError, IndexError, OverflowError)):
        _core.add_plan(compiled.plans, key(TREE), _core.call_plan(**{**GOOD, **wrong}))
    assert compiled.call() is NotImplemented


def test_a_plan_that_goes_while_it_is_followed() -> None:
    """A function may forget the plan by which it is being called."""

    class Forgets(Compiled):
        def take(self, name: Any, leaves: Sequence[Any]) -> Any:
            _core.forget_plans(self.plans, None)
            self._functions.clear()
            gc.collect()
            return _core.make_result(pydag.dag_structure([1]), leaves[1:2])

    compiled = Forgets()
    for _ in range(4):
        compiled.add("key", (1,), ("a",))
        assert compiled.call() == [2.0]
        assert compiled.call() is NotImplemented


class Asked:
    """A node that its own functions open; `act` runs while it is opened."""

    def __init__(self, x: Any, note: Any, act: Any = None) -> None:
        self.x, self.note, self.act = x, note, act


def flatten_asked(node: Asked) -> Any:
    if node.act is not None:
        node.act()
    return (node.x,), tuple(node.note)


@pytest.fixture
def asked() -> Iterator[None]:
    pydag.register_pydag_node(Asked, flatten_asked, lambda note, x: Asked(x[0], note))
    yield
    pydag.unregister_pydag_node(Asked)


def call_of(node: Asked) -> Any:
    return ([node, 2.0],), {}


@pytest.mark.usefixtures("asked")
def test_what_a_node_does_while_a_call_follows_it() -> None:
    """A node that forgets the plans, calls again, empties caches, registers or raises."""
    compiled = Compiled()

    class Later:
        pass

    def again() -> None:
        compiled.call(call_of(Asked(1.0, [2])))
        gc.collect()

    def register() -> None:
        pydag.register_fields(Later, namespace="asked later")
        pydag.clear_caches()

    def fail() -> None:
        raise ZeroDivisionError("while it is opened")

    def prepare() -> None:
        _core.forget_plans(compiled.plans, None)
        for note in (1, 2):
            compiled.add(f"key {note}", tree=call_of(Asked(1.0, [note])))
        for _ in range(3):
            assert compiled.call(call_of(Asked(1.0, [1]))) == (5, 6)

    prepare()
    assert compiled.call(call_of(Asked(1.0, [1], again))) == (5, 6)
    assert compiled.calls[-1][0] == "key 1"
    prepare()
    assert compiled.call(call_of(Asked(1.0, [1], register))) == (5, 6)
    prepare()
    with pytest.raises(ZeroDivisionError, match="while it is opened"):
        compiled.call(call_of(Asked(1.0, [1], fail)))
    prepare()
    forget = lambda: _core.forget_plans(compiled.plans, None)  # noqa: E731 (an action)
    compiled.call(call_of(Asked(1.0, [1], forget)))
    assert compiled.call(call_of(Asked(1.0, [1]))) is NotImplemented


def test_a_cycle_through_plans() -> None:
    """The cycle is collected: what is static may hold the compiled function."""
    compiled = Compiled()
    compiled.add("key", (1,), (compiled,))
    gone = weakref.ref(compiled)
    del compiled
    gc.collect()
    assert gone() is None


def test_plans_that_somebody_changed() -> None:
    """What is put among the plans through the collector isn't followed, nor another tree's."""
    small: Any = (([1.0],), {})
    compiled = Compiled()
    compiled.add("key", (1,), ("a",))
    by_key = next(each for each in gc.get_referents(compiled.plans) if type(each) is dict)
    good = by_key[key(TREE)]
    for bad in (5, None, (5,), [*good], (*good, None)):
        by_key[key(TREE)] = bad
        assert compiled.call() is NotImplemented
    by_key[key(small)] = good
    assert compiled.call(small) is NotImplemented
    by_key[key(TREE)] = good
    assert compiled.call() == (5, 6)


class Statics:
    """Leaves of a result that JAX doesn't trace."""

    def __init__(self, positions: Any, values: Any) -> None:
        self.positions, self.values = positions, values


@pytest.mark.parametrize(
    ("positions", "values", "error", "text"),
    [
        ((0,), ("a", "b"), ValueError, "a value for each position"),
        ([0], ("a",), TypeError, "expected a tuple"),
        ((0, 9), ("a", "b"), IndexError, "too few leaves"),
        ((3, 0), ("a", "b"), IndexError, "too few leaves"),
        (("x", 1), ("a", "b"), TypeError, "integer"),
    ],
    ids=["numbers differ", "list", "out of range", "descending", "no number"],
)
def test_static_leaves_that_fit_nowhere(
    positions: Any, values: Any, error: type[Exception], text: str
) -> None:
    """Such leaves are refused."""
    spec = pydag.dag_structure([0, 1, 2, 3])
    with pytest.raises(error, match=text):
        _core.build_result(_core.make_result((spec, None, Statics(positions, values)), (5, 6)))
