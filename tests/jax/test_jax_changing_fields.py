"""The warning about a number in a static field that is another one at each call."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import jax
import pytest
from jax import tree_util

import pydag
from pydag import jaxinterop as pj


@dataclasses.dataclass
class Record:
    w: Any
    rate: Any


tree_util.register_dataclass(Record, data_fields=["w"], meta_fields=["rate"])


@dataclasses.dataclass
class Checked:
    w: Any
    rate: Any

    def __post_init__(self) -> None:
        self.w = self.w


tree_util.register_dataclass(Checked, data_fields=["w"], meta_fields=["rate"])


@pydag.register_module(meta_fields=("rate",))
class Module:
    def __init__(self, w: Any, rate: Any) -> None:
        self.w, self.rate = w, rate


@pydag.register_fields(meta_fields=("rate",))
class Fields:
    def __init__(self, w: Any, rate: Any) -> None:
        self.w, self.rate = w, rate


class Custom:
    def __init__(self, w: Any, rate: Any) -> None:
        self.w, self.rate = w, rate


pydag.register_pydag_node(
    Custom, lambda c: ((c.w,), c.rate), lambda rate, c: Custom(next(iter(c)), rate)
)

Make = Callable[[Any, Any], Any]


def warnings_of(trees: Iterable[Any]) -> list[str]:
    """What is said when a function is called with these, one after the other."""

    @pj.jit
    def step(tree: Any) -> Any:
        return sum(pydag.dag_leaves(tree))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for tree in trees:
            step(tree)
    assert all(warning.filename == __file__ for warning in caught)
    return [str(warning.message) for warning in caught]


def ones() -> Any:
    return jax.numpy.ones(2)


@pytest.mark.parametrize("make", [Record, Module, Fields])
def test_a_field_that_changes(make: Make) -> None:
    """It comes once, at the fourth compilation: the path, both values, and what to do."""
    trees = [{"layers": [make(ones(), "net"), make(ones(), 0.5 * i)]} for i in range(6)]
    assert warnings_of(trees[:3]) == []
    [text] = warnings_of(trees)
    assert text.startswith("step at ")
    assert (
        "was compiled 4 times because a number in a static field was another one each time: "
        "args[0]['layers'][1].rate was 1.0, and is 1.5\n" in text
    )
    assert "let it be a field that isn't static" in text


@pytest.mark.parametrize("make", [Checked, Custom])
def test_a_class_with_code_of_its_own(make: Make) -> None:
    """What its functions keep beside the children has no name: the node is named."""
    [text] = warnings_of([make(ones(), i)] for i in range(4))
    assert "args[0][0] (in its aux_data) was 2, and is 3\n" in text


def test_an_equinox_field() -> None:
    """`eqx.field(static=True)`."""
    eqx = pytest.importorskip("equinox")
    base: Any = eqx.Module

    class Net(base):  # type: ignore[misc]  # of a class that may be missing
        w: Any
        rate: Any = eqx.field(static=True)

    [text] = warnings_of(Net(ones(), 0.1 * i) for i in range(4))
    assert "args[0].rate was 0.2, and is 0.3" in text


def test_an_attribute_of_nnx() -> None:
    """A number in a module of NNX is a static number of a module, beside its flags."""
    nnx = pytest.importorskip("flax.nnx")
    base: Any = nnx.Module

    class Net(base):  # type: ignore[misc]  # of a class that may be missing
        def __init__(self, rate: Any) -> None:
            self.mode, self.rate, self.w = "train", rate, nnx.Param(ones())

    [text] = warnings_of([Net(0.1 * i)] for i in range(4))
    assert "because a static number was another one each time: args[0][0].rate was 0.2, " in text
    assert "make it an array" in text


def test_in_a_dag() -> None:
    """The path leads into the tree of the Dag."""
    [text] = warnings_of(pj.Dag({"w": ones(), "n": f"text{i}"}) for i in range(9))
    assert "static text was another one each time: args[0].tree['n'] was 'text2', and" in text


@pytest.mark.parametrize(
    "rates",
    [
        (1, 2, 1, 2, 1),  # two values, to which it returns
        (True, False, True, False),
        ("a", "b", "c", "a", "b", "c"),
        (None, 1, "text", 2.5),
        (1, 1, 1, 1),
        (float("nan"),) * 4,
    ],
)
def test_what_is_not_told(rates: Any) -> None:
    """A flag, a text, a number that has one value or two."""
    assert warnings_of(Record(ones(), rate) for rate in rates) == []


def test_other_structures() -> None:
    """Of models that differ in more than a number each may be compiled for."""
    makes: list[Make] = [Record, Fields, Module]
    assert warnings_of(make(ones(), i) for i, make in enumerate(makes)) == []
    assert warnings_of({name: Record(ones(), i)} for i, name in enumerate("abc")) == []
    assert warnings_of([Record(ones(), i)] + [ones()] * i for i in range(4)) == []
    shared = ones()
    assert (
        warnings_of([[Record(ones(), i), shared, w] for i, w in enumerate((shared, 1.0, 2.0))])
        == []
    )


def test_structures_that_unfold_alike() -> None:
    """So many nodes when unfolded, so many shared objects and leaves: and still not alike."""
    w = ones()
    pair = [w, w]
    trees = [[[w, w], [w, w]], [pair, pair], [pair, pair, []], [[], pair, pair]]
    assert warnings_of(trees) == []
    assert warnings_of([*tree, Record(ones(), i)] for i, tree in enumerate(trees)) == []


def test_a_new_number_in_many_places() -> None:
    """The first place is named, and nothing is said of the others."""
    [text] = warnings_of(
        [Record(ones(), i), Record(ones(), 7), Fields(ones(), -i)] for i in range(5)
    )
    assert text.count("args[0]") == 1
    assert "args[0][0].rate was 2, and is 3" in text
