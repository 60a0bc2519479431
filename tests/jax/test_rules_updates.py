# SPDX-License-Identifier: Apache-2.0
"""Arguments that are updated, and refs as arguments."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import nnx
from jax.experimental.random import stateful_rng

import pydag
import pydag.jaxinterop as pj
from pydag.errors import SharingError


class Counter(pj.Module):
    """A module with a total, a part at two places, and configuration."""

    def __init__(self) -> None:
        self.total = jnp.zeros(2)
        self.part = self.again = {"mean": jnp.zeros(2)}
        self.calls = 3


@pydag.register_fields
@dataclass
class Record:
    """A record."""

    total: Any


class Stats(nnx.Module):
    """A module of NNX with a parameter and with state."""

    def __init__(self) -> None:
        self.weight = nnx.Param(jnp.ones(2))
        self.total = nnx.BatchStat(jnp.zeros(2))


class Updating:
    """The wrappers that update their first argument, called alike."""

    @staticmethod
    def jit(f: Any, **options: Any) -> Callable[..., Any]:
        """A compiled function."""
        return pj.jit(f, **options)

    @staticmethod
    def grad(f: Any, **options: Any) -> Callable[..., Any]:
        """The value of a differentiated function."""
        both = pj.value_and_grad(f, argnums=1, **options)
        return lambda model, x: both(model, x)[0]

    @staticmethod
    def checkpoint(f: Any, **options: Any) -> Callable[..., Any]:
        """A checkpointed function."""
        return pj.checkpoint(f, **options)


wrappers = pytest.mark.parametrize("wrap", [Updating.jit, Updating.grad, Updating.checkpoint])
X = jnp.array([1.0, 2.0])


@wrappers
@pytest.mark.parametrize(
    ("make", "get", "put"),
    [
        (Counter, lambda m: m.total, lambda m, x: setattr(m, "total", x)),
        (lambda: Record(jnp.zeros(2)), lambda m: m.total, lambda m, x: setattr(m, "total", x)),
        (lambda: {"t": jnp.zeros(2)}, lambda m: m["t"], lambda m, x: m.update(t=x)),
        (lambda: [jnp.zeros(2)], lambda m: m[0], lambda m, x: m.__setitem__(0, x)),
        (
            lambda: {"m": Counter()},
            lambda m: m["m"].total,
            lambda m, x: setattr(m["m"], "total", x),
        ),
        (Stats, lambda m: m.total[...], lambda m, x: m.total.set_value(x)),
        (
            lambda: pj.Dag(Counter()),
            lambda m: m.tree.total,
            lambda m, x: setattr(m.tree, "total", x),
        ),
    ],
    ids=["module", "record", "dict", "list", "nested", "nnx", "Dag"],
)
def test_what_is_written_comes_back(wrap: Any, make: Any, get: Any, put: Any) -> None:
    """Leaves that the function writes are written into the caller's objects, at each call."""

    def add(model: Any, x: Any) -> Any:
        put(model, get(model) + x)
        return x.sum()

    model, f = make(), wrap(add, update_argnums=0)
    assert float(f(model, X)) == 3
    assert float(f(model, X)) == 3
    assert get(model).tolist() == [2.0, 4.0]


@wrappers
def test_shared_parts_are_written_once_and_containers_stay(wrap: Any) -> None:
    """Objects of an updated argument stay the objects that they are, and shared ones shared."""

    def add(model: Any, x: Any) -> Any:
        model.again["mean"] = model.part["mean"] + x
        return x.sum()

    model = Counter()
    part = model.part
    wrap(add, update_argnames="model")(model, X)
    assert model.part is part
    assert model.again is part
    assert part["mean"].tolist() == [1.0, 2.0]


@wrappers
def test_nothing_is_written_when_the_function_raises(wrap: Any) -> None:
    """An exception leaves the caller's objects as they were."""

    def fail(model: Any, x: Any) -> Any:
        model.total = model.total + x
        raise RuntimeError("stop")

    model = Counter()
    with pytest.raises(RuntimeError, match="stop"):
        wrap(fail, update_argnums=0)(model, X)
    assert model.total.tolist() == [0.0, 0.0]


@wrappers
def test_static_leaves_and_structure_must_stay(wrap: Any) -> None:
    """Another static leaf, and another structure, are errors that say where; nothing is written."""

    def count(model: Any, x: Any) -> Any:
        model.total, model.calls = model.total + x, model.calls + 1
        return x.sum()

    def replace(model: Any, x: Any) -> Any:
        model.total = "none"
        return x.sum()

    def grow(model: Any, x: Any) -> Any:
        model.more = x * 2
        return x.sum()

    def untie(model: Any, x: Any) -> Any:
        model.again = {"mean": x * 2}
        return x.sum()

    model = Counter()
    with pytest.raises(
        ValueError, match=r"args\[0\]\.calls was 3 and is 4: .*\n.* make it an array"
    ):
        wrap(count, update_argnums=0)(model, X)
    with pytest.raises(ValueError, match=r"args\[0\]\.total was an array and is 'none'"):
        wrap(replace, update_argnums=0)(model, X)
    with pytest.raises(ValueError, match="more"):
        wrap(grow, update_argnums=0)(model, X)
    with pytest.raises(SharingError, match="again"):
        wrap(untie, update_argnums=0)(model, X)
    assert (model.calls, model.total.tolist(), hasattr(model, "more")) == (3, [0.0, 0.0], False)


def test_ties_between_arguments() -> None:
    """An object of two arguments is updated in both; a tie made or cut with another is an error."""

    def write(one: Any, two: Any) -> None:
        one["x"] = two["x"] = one["x"] + 1

    def cut(one: Any, two: Any) -> None:
        one["x"] = one["x"] + 1

    def tie(one: Any, two: Any) -> None:
        one["x"] = two["x"]

    shared = jnp.zeros(1)
    one, two = {"x": shared}, {"x": shared}
    pj.jit(write, update_argnums=(0, 1))(one, two)
    assert one["x"] is two["x"]
    assert one["x"].tolist() == [1.0]
    with pytest.raises(SharingError, match="cuts a tie"):
        pj.jit(cut, update_argnums=0)(one, two)
    with pytest.raises(SharingError, match="makes a tie"):
        pj.jit(tie, update_argnums=0)({"x": shared}, {"x": jnp.ones(1)})


def test_an_argument_that_is_an_array_holds_nothing() -> None:
    """It is no tie with what is updated, whatever is written."""

    def f(tree: Any, x: Any) -> Any:
        tree["w"], tree["v"] = tree["w"] + 1, x
        return {"a": x, "b": x + 1}

    held: Any = ((lambda x: x, X), (lambda pair: pair[0], (X, 1.0)))
    for get, x in held:
        tree = {"w": X, "v": X + 1}
        pj.jit(lambda tree, x, get=get: f(tree, get(x)), update_argnums=0)(tree, x)
        assert (tree["w"].tolist(), tree["v"].tolist()) == ([2.0, 3.0], [1.0, 2.0])
    one = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    for shardings in (None, one, {"a": None, "b": one}):
        tree = {"w": X, "v": X + 1}
        pj.jit(f, update_argnums=0, out_shardings=shardings)(tree, X)
        assert (tree["w"].tolist(), tree["v"].tolist()) == ([2.0, 3.0], [1.0, 2.0])
        assert tree["v"] is not X


def test_an_object_of_two_arguments_is_updated_if_one_is() -> None:
    """A module that an argument that isn't updated holds, too, is updated."""

    def write(one: Any, two: Any) -> Any:
        one.total = one.total + 1
        return two["m"].total

    model = Counter()
    out = pj.jit(write, update_argnums=0)(model, {"m": model})
    assert out.tolist() == model.total.tolist() == [1.0, 1.0]


def test_unchanged_leaves_are_neither_returned_nor_written() -> None:
    """The program returns the leaves that were written, and the others stay the caller's arrays."""

    def write(model: Any) -> None:
        model.total = model.total + 1

    model, f = Counter(), pj.jit(write, update_argnums=0)
    mean = model.part["mean"]
    f(model)
    assert model.part["mean"] is mean
    assert len(f.trace(model).jaxpr.jaxpr.outvars) == 1


@wrappers
def test_updates_nest(wrap: Any) -> None:
    """A function with an update, inside of one with an update."""

    def inner(model: Any, x: Any) -> Any:
        model.total = model.total + x
        return x.sum()

    def outer(model: Any, x: Any) -> Any:
        return wrap(inner, update_argnums=0)(model, x) + wrap(inner, update_argnums=0)(model, x)

    model = Counter()
    pj.jit(outer, update_argnums=0)(model, X)
    assert model.total.tolist() == [2.0, 4.0]


def test_an_updated_module_that_is_returned_is_the_callers() -> None:
    """What comes back of an updated argument is the very object."""

    def step(model: Any) -> Any:
        model.total = model.total + 1
        return {"model": model, "part": model.part}

    model = Counter()
    out = pj.jit(step, update_argnums=0)(model)
    assert out["model"] is model
    assert out["part"] is model.part


# --- refs ---


@pytest.mark.parametrize(
    "run",
    [
        lambda draw, rng: pj.jit(draw)(rng),
        lambda draw, rng: pj.scan(lambda c, _: (c, draw(rng)), 0.0, length=2)[1],
        lambda draw, rng: pj.jit(lambda r: pj.cond(True, draw, draw, r))(rng),
        lambda draw, rng: pj.checkpoint(draw)(rng),
    ],
    ids=["jit", "scan", "cond", "checkpoint"],
)
def test_generators_of_jax_advance(run: Any) -> None:
    """A generator of `jax.experimental.random` draws other numbers at each call."""
    rng = stateful_rng(0)
    draw = lambda r: r.normal((2,))  # noqa: E731 (a name for what several wrappers are given)
    first, second = run(draw, rng), run(draw, rng)
    assert first.tolist() != second.tolist()
