"""The warning about a function that is compiled again and again for the same arrays."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import jax.numpy as jnp
import pytest

import pydag
from pydag import jaxinterop as pj

W = jnp.ones(3)


@pydag.register_module
class Net:
    def __init__(self, **parts: Any) -> None:
        self.w = W
        vars(self).update(parts)


@pydag.register_module(meta_fields=("name",))
class Named:
    def __init__(self, name: Any) -> None:
        self.w, self.name = W, name


class Config:
    """A class that nobody registers."""

    def __init__(self, rate: float = 0.5, mode: str = "train") -> None:
        self.rate, self.mode = rate, mode


def said(calls: Iterable[tuple[Any, ...]], **options: Any) -> list[str]:
    """What is said when a function is called with these arguments, one after the other."""

    @pj.jit(**options)
    def step(*args: Any) -> Any:
        return jnp.float32(0)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for args in calls:
            step(*args)
    assert all(warning.filename == __file__ for warning in caught)
    assert all(warning.category is UserWarning for warning in caught)
    return [str(warning.message) for warning in caught]


def act(power: int, x: Any) -> Any:
    return x**power


def made(i: int) -> Callable[[Any], Any]:
    return lambda x: x + i


ORDERS = "abcd", "bcad", "cabd", "acbd"

SHARED = "0123", "0022", "0122", "0121"

PARTS = [W, W + 1, W + 2, W + 3]

CHANGING: dict[str, tuple[Callable[[int], Any], str]] = {
    # what changes: (the argument of call i, what is said at the fourth compilation)
    "a number of a module": (
        lambda i: Net(rate=0.5 * i),
        "a static number was another one each time: args[0].rate was 1.0, and is 1.5\n",
    ),
    "a lambda": (
        lambda i: {"f": lambda x: x},
        "a static function was another one each time: args[0]['f'] was <function ",
    ),
    "a closure": (
        lambda i: Net(act=made(i)),
        "a static function was another one each time: args[0].act was <function made.",
    ),
    "a partial": (
        lambda i: (functools.partial(act, 2), W),
        "a static function was another one each time: args[0][0] was <functools.partial ",
    ),
    "a function in a static field": (
        lambda i: Named(made(i)),
        "a function in a static field was another one each time: args[0].name was <function ",
    ),
    "functions": (
        lambda i: [jnp.sin, jnp.cos, jnp.tan, jnp.exp][i],
        "a static function was another one each time: args[0] was ",
    ),
    "an object": (lambda i: Net(run=object()), "args[0].run was <object object at "),
    "a text with a number": (
        lambda i: Net(tag=f"step{i}"),
        "a static text was another one each time: args[0].tag was 'step2', and is 'step3'\n",
    ),
    "a bare text": (
        lambda i: f"epoch {i}.5",
        "a static text was another one each time: args[0] was 'epoch 2.5', and is 'epoch 3.5'\n",
    ),
    "a text in a static field": (
        lambda i: [Named("abcd"[i])],
        "a text in a static field was another one each time: args[0][0].name was 'c', and is 'd'\n",
    ),
    "a list of arrays that grows": (
        lambda i: Net(losses=[jnp.float32(0)] * i),
        "a part of its arguments was of another length each time: "
        "args[0].losses was of length 2, and is of length 3\n",
    ),
    "a list of numbers that grows": (
        lambda i: Net(losses=[0.5] * i),
        "args[0].losses was of length 2, and is of length 3\n",
    ),
    "a length, up and down": (
        lambda i: [W] * (3, 1, 4, 2)[i],
        "args[0] was of length 4, and is of length 2\n",
    ),
    "keys": (
        lambda i: {f"step{i}": W, "w": W + 1},
        "a part of its arguments had other keys each time: "
        "args[0] was with 'step2', and is with 'step3'\n",
    ),
    "the order of a dict": (
        lambda i: dict.fromkeys(ORDERS[i], W),
        "a dict was filled in another order each time:\n  args[0]\n"
        "    first:  a dict filled in the order ['c', 'a', 'b', 'd']\n"
        "    second: a dict filled in the order ['a', 'c', 'b', 'd']\n",
    ),
    "sharing": (
        lambda i: [PARTS[int(n)] for n in SHARED[i]],
        "its arguments were shared in another way each time:\n  args[0][",
    ),
}


@pytest.mark.parametrize("name", CHANGING)
def test_three_compilations_that_served_few_calls(name: str) -> None:
    """The next one warns, once, with the path and both values; not a sooner one."""
    make, expected = CHANGING[name]
    assert said((make(i), W) for i in range(3)) == []
    [text] = said((make(i), W) for i in range(4))
    assert text.startswith("step at ")
    assert "was compiled 4 times because " in text
    assert expected in text


@pytest.mark.parametrize("name", CHANGING)
def test_compilations_that_served_three_calls(name: str) -> None:
    """Sizes that stay for an epoch, a sweep over rates, the few modes of a model are normal."""
    made = [CHANGING[name][0](i) for i in range(4)]
    assert said((value, W) for value in made for _ in range(3)) == []


def test_used_compilations_in_between() -> None:
    """The last three count: after one that was used, three others are needed."""

    def calls(*counts: int) -> Iterable[tuple[Any, ...]]:
        return ((Net(tag=f"{i}"), W) for i, count in enumerate(counts) for _ in range(count))

    assert said(calls(1, 1, 3, 1, 1, 3, 2, 2, 40)) == []
    [text] = said(calls(1, 1, 3, 2, 1, 2, 1))
    assert "was compiled 4 times because " in text
    assert "args[0].tag was '5', and is '6'\n" in text


def test_a_constant_object_that_is_changed() -> None:
    """Its attribute is named, with both values."""
    config = Config()

    def calls() -> Iterable[tuple[Any, ...]]:
        for i in range(6):
            config.rate = 0.5 * i
            yield W, config

    [text] = said(calls())
    assert (
        "was compiled 4 times because a number in a constant object was another one each time: "
        "args[1].rate was 1.0, and is 1.5\n" in text
    )


def test_a_static_argument() -> None:
    """Numbers and text are compiled for as was asked; functions and objects made anew warn."""
    assert said(((W, i) for i in range(12)), static_argnums=1) == []
    assert said(((W, f"mode{i}") for i in range(12)), static_argnums=1) == []
    [text] = said(((W, made(i)) for i in range(6)), static_argnums=1)
    assert "was compiled 4 times because a static argument was another one each time" in text
    assert "static_argnums" not in text
    assert "This one is made at " in text
    [text] = said(((W, object()) for _ in range(6)), static_argnums=1)
    assert "args[1] was <object object at " in text
    assert "static_argnums" in text


def test_other_calls_in_between() -> None:
    """Another model, or another batch, between the calls hides nothing."""
    calls = [
        call
        for i in range(8)
        for call in ((Net(tag=f"step{i}"), W), (Net(tag=f"step{i}"), jnp.ones(i + 4)), ({"w": W},))
    ]
    [text] = said(calls)
    assert "args[0].tag was 'step2', and is 'step3'\n" in text


CONFIGS = [Config() for _ in range(3)]

NOT_TOLD: dict[str, Callable[[int], tuple[Any, ...]]] = {
    "shapes": lambda i: (jnp.ones(i + 1), "same"),
    "shapes beside a text": lambda i: (jnp.ones(i + 1), f"step{i}"),
    "types beside a text": lambda i: (
        jnp.ones(3, ("float32", "int32", "float16", "bool", "uint8", "int8")[i % 6]),
        f"step{i}",
    ),
    "a flag and a mode": lambda i: (
        Net(is_training=i % 2 == 0, mode=("train", "eval")[i // 2 % 2]),
    ),
    "three modes": lambda i: (Net(mode=("train", "eval", "test")[i % 3]),),
    "three activations": lambda i: (Net(act=(jnp.sin, jnp.tanh, jnp.cos)[i % 3]),),
    "three objects": lambda i: (Net(config=CONFIGS[i % 3]),),
    "an array or nothing": lambda i: (Net(mask=(None, W, 1.0, "all")[i % 4]),),
    "tied or not": lambda i: ([W, W] if i % 2 else [W, W + 1],),
    "a number that is data": lambda i: ({"rate": 0.5 * i}, float(i)),
    "other models": lambda i: ([Net(), Named("a"), {"w": W}, W, (W,), Config()][i % 6], f"step{i}"),
    "a model of more layers each time, and other numbers": lambda i: (
        [Net(depth=i), *[W] * (i % 5)],
    ),
    "equal texts, made anew": lambda i: ("".join(["st", "ep"]), functools.partial(act, 2).args),
    "static arguments that come again": lambda i: (W, i % 3),
}


@pytest.mark.parametrize("name", NOT_TOLD)
def test_what_is_not_told(name: str) -> None:
    """Other shapes and types; other models; flags, and two or three values that come again."""
    static = {"static_argnums": 1} if name.startswith("static") else {}
    assert said(map(NOT_TOLD[name], range(12)), **static) == []


def test_a_cached_call_looks_at_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was compiled for is looked at when a key is made, and at no other call."""
    from pydag.jaxinterop.notices.compiled_again import Changes

    seen = []
    add = Changes.add

    def counted(changes: Changes, *args: Any) -> None:
        seen.append(args)
        add(changes, *args)

    monkeypatch.setattr(Changes, "add", counted)
    step = pj.jit(lambda net, x: net.w * x)
    for i in range(6):
        step(Net(tag="a", is_training=i % 2 == 0), W)
    assert len(seen) == 2


def test_cleared() -> None:
    """After `clear_cache` what was compiled before counts no more."""

    @pj.jit
    def step(net: Net) -> Any:
        return net.w

    for i in range(6):
        if i % 2 == 0:
            step.clear_cache()
        step(Net(tag=f"step{i}"))


def test_a_large_model() -> None:
    """A structure that is exponentially long when unfolded is compared once for each object."""
    node: Any = [W]
    for _ in range(60):
        node = [node, node]
    [text] = said((node, f"step{i}") for i in range(4))
    assert "args[1] was 'step2', and is 'step3'\n" in text
