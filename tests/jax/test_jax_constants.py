# SPDX-License-Identifier: Apache-2.0
"""A constant object is looked at again at every call: what it holds is part of the key."""

import enum
from typing import Any

import jax.numpy as jnp
import pytest

import pydag
import pydag.jaxinterop as pj

W = jnp.ones(2)


class Config:
    """A class that nobody registered."""

    def __init__(self) -> None:
        self.rate, self.name, self.inner = 0.5, "sgd", [1]


class Slotted:
    """The same in slots."""

    __slots__ = ("name", "rate")

    def __init__(self) -> None:
        self.rate = 0.5


def counted(function: Any) -> Any:
    """A compiled function, and how often it was traced."""
    traces: list[None] = []

    def traced(*args: Any) -> Any:
        traces.append(None)
        return function(*args)

    return pj.jit(traced), traces


@pytest.mark.parametrize("make", [Config, Slotted])
def test_a_number_that_changes(make: Any) -> None:
    """The next call sees it, also after many calls; and what was compiled before is found again."""
    config = make()
    step, traces = counted(lambda w, c: w * c.rate)
    for rate in (0.5, 0.25, 0.5):
        config.rate = rate
        for _ in range(3):
            assert step(W, config).tolist() == [rate, rate]
    assert len(traces) == 2


def test_equal_values() -> None:
    """Numbers and text are compared by value, and all else by identity."""
    config = Config()
    step, traces = counted(lambda w, c: w * c.rate)
    step(W, config)
    config.rate, config.name = float("0.5"), "".join(["s", "gd"])
    step(W, config)
    assert len(traces) == 1
    vars(config)["rate"] = jnp.float32  # another kind of value
    config.inner = [1]
    config.rate = 0.5
    step(W, config)
    assert len(traces) == 2
    config.rate = 1
    step(W, config)
    config.rate = True
    step(W, config)
    assert len(traces) == 4


def test_other_attributes() -> None:
    """One more, one less, and another name for the same value are changes."""
    config: Any = Config()
    step, traces = counted(lambda w, c: w * len(vars(c)))
    assert step(W, config).tolist() == [3.0, 3.0]
    config.more = 1
    assert step(W, config).tolist() == [4.0, 4.0]
    config.other = vars(config).pop("more")
    assert step(W, config).tolist() == [4.0, 4.0]
    del config.other
    assert step(W, config).tolist() == [3.0, 3.0]
    assert len(traces) == 3


@pytest.mark.parametrize("tree", [lambda c: c, lambda c: {"deep": [c]}])
def test_an_array_that_has_come_in(tree: Any) -> None:
    """It is the error that it would have been at the first call."""
    config: Any = Config()
    step, _ = counted(lambda w, c: w)
    for _ in range(3):
        step(W, tree(config))
    config.mask = W
    with pytest.raises(TypeError, match=r"holds an array: args\[1\]\S*\.mask is f32\[2\]"):
        step(W, tree(config))
    del config.mask
    assert step(W, tree(config)).tolist() == [1.0, 1.0]


def test_two_objects_in_turn() -> None:
    """Each is known by itself; nothing is traced again while both stay as they are."""
    one, two = Config(), Config()
    two.rate = 2.0
    step, traces = counted(lambda w, c: w * c.rate)
    for _ in range(3):
        assert step(W, one).tolist() == [0.5, 0.5]
        assert step(W, two).tolist() == [2.0, 2.0]
    assert len(traces) == 2


def test_many_objects() -> None:
    """A function that is called with many of them still notices each change."""
    configs = [Config() for _ in range(40)]
    step, traces = counted(lambda w, c: w * c.rate)
    for config in configs * 2:
        step(W, config)
    assert len(traces) == 40
    configs[3].rate = 4.0
    assert step(W, configs[3]).tolist() == [4.0, 4.0]
    assert step(W, configs[4]).tolist() == [0.5, 0.5]


class Kind(enum.Enum):
    ONE = 1


class Equal:
    """Says itself what it is equal to."""

    def __init__(self, name: str) -> None:
        self.name, self.count = name, 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


def test_what_is_exempt() -> None:
    """Functions, classes, members of enums and objects with an equality of their own."""

    def function() -> None: ...

    equal = Equal("x")
    step, traces = counted(lambda w, *others: w)
    for i in range(3):
        function.count = Config.count = equal.count = i  # type: ignore[attr-defined]  # new attributes
        step(W, function, Config, Kind.ONE, equal)
    del Config.count  # type: ignore[attr-defined]  # as above
    assert len(traces) == 1


def test_loops_and_nested_functions() -> None:
    """What is compiled inside of other wrappers is compiled anew as well."""
    config = Config()

    def total(w: Any) -> Any:
        def body(carry: Any, _: Any) -> Any:
            return {**carry, "w": carry["w"] * carry["c"].rate}, None

        return pj.scan(body, {"w": w, "c": config}, length=2)[0]["w"]

    assert total(W).tolist() == [0.25, 0.25]
    config.rate = 1.0
    assert total(W).tolist() == [1.0, 1.0]


def test_in_a_module() -> None:
    """A constant that a module holds is one, too, under `vmap` in a compiled function."""

    @pydag.register_module
    class Net:
        def __init__(self) -> None:
            self.w, self.config = W, Config()

    net = Net()
    double, traces = counted(lambda net: net.w * net.config.rate)
    assert double(net).tolist() == [0.5, 0.5]
    net.config.rate = 3.0
    assert double(net).tolist() == [3.0, 3.0]
    assert len(traces) == 2
