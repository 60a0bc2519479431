# SPDX-License-Identifier: Apache-2.0
"""Arrays in meta fields: an error with the path, whatever was looked at before."""

import collections
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pydag
import pydag.jaxinterop as pj


class Record:
    def __init__(self, scale: Any) -> None:
        self.w = jnp.ones(2)
        self.scale = scale


pydag.register_fields(Record, data_fields=["w"], meta_fields=["scale"])


def loss(tree: Any) -> Any:
    return jnp.sum(tree["net"].w)


@pytest.mark.parametrize("scale", [jnp.zeros(()), np.zeros(()), (1, (np.ones(2),))])
def test_an_array_is_refused_after_a_number(scale: Any) -> None:
    """A number that the array is equal to was taken before; the array is an error all the same."""
    for number in (0.0, 0, 0.0):
        assert pj.grad(loss)({"net": Record(number)})["net"].w.tolist() == [1.0, 1.0]
    for _ in range(2):
        with pytest.raises(TypeError, match=r"\['net'\]\.scale is a meta field of .*Record"):
            pj.grad(loss)({"net": Record(scale)})


class Net(pj.Module):
    def __init__(self) -> None:
        self.layers = [{"w": jnp.ones(2)}]


W = jnp.ones(2)
Pair = collections.namedtuple("Pair", "a b")

HELD: dict[str, tuple[Any, str]] = {
    "a list": ([np.ones(2)], "scale[0]"),
    "a dict in a tuple": ((1, {"a": W}), "scale[1]['a']"),
    "a namedtuple": (Pair(1, W), "scale[1]"),
    "a deque in a list": ([collections.deque([W])], "scale[0][0]"),
    "a module": (Net(), "scale.layers[0]['w']"),
    "modules in a tuple": ((2, Net()), "scale[1].layers[0]['w']"),
    "a derived leaf": (pj.Derived(jnp.exp, W), "scale.sources[0]"),
    "a partial": (functools.partial(jnp.add, W), "scale.args[0]"),
}


@pytest.mark.parametrize("what", HELD)
def test_an_array_at_any_depth(what: str) -> None:
    """What containers, modules and derived leaves hold counts, and the path leads to it."""
    value, path = HELD[what]
    for work in (pj.jit(loss), pj.grad(loss), pj.Dag):
        for _ in range(2):
            with pytest.raises(TypeError, match=r"\['net'\]\.scale is a meta field of") as info:
                work({"net": Record(value)})
            assert f"holds an array: {path} is f" in str(info.value)


def deep(value: Any) -> Any:
    for _ in range(100_000):
        value = (value,)
    return value


def test_what_is_no_array() -> None:
    """Values, functions, modules without arrays and depth are nothing to refuse."""
    plain = Record(3)
    values = [
        jnp.float32,
        [1],
        {"a": {2}},
        np.dtype("int8"),
        np.float32(1),
        deep(1),
        frozenset([(1, "a")]),
        1j,
    ]
    for value in [*values, len, functools.partial(max, 1, key=abs), range(3), plain.scale]:
        assert pj.grad(loss)({"net": Record(value)})["net"].w.tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="holds an array"):
        pj.grad(loss)({"net": Record(deep(W))})


def test_in_a_trace() -> None:
    """A tracer in a meta field is refused."""
    with pytest.raises(TypeError, match=r"\['net'\]\.scale is a meta field of .*Record"):
        jax.jit(lambda x: pj.grad(loss)({"net": Record(x)}))(1.0)
