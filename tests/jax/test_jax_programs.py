# SPDX-License-Identifier: Apache-2.0
"""Ordinary programs are quiet; a training step in which one line was forgotten is not."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import pydag
import pydag.jaxinterop as pj


class Layer(pj.Module):
    """A layer."""

    def __init__(self, key: Any) -> None:
        self.w, self.b = jax.random.normal(key, (3, 3)), jnp.zeros(3)

    def __call__(self, x: Any) -> Any:
        return jnp.tanh(x @ self.w + self.b)


class Net(pj.Module):
    """A network whose first layer is its last."""

    def __init__(self, seed: int = 0) -> None:
        keys = jax.random.split(jax.random.key(seed), 2)
        self.layers = [Layer(keys[0]), Layer(keys[1])]
        self.last = self.layers[0]
        self.rate, self.name, self.steps = 0.1, "net", jnp.int32(0)

    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return self.last(x)

    def loss(self, x: Any) -> Any:
        return jnp.sum(self(x) ** 2)

    def step(self, carry: Any, x: Any) -> Any:
        carry = self(carry + x)
        return carry, carry


class Pair(NamedTuple):
    """The state of a cell."""

    h: Any
    c: Any


X = jnp.ones((4, 3))
OPTIMIZER = pj.optimizer(optax.adam(1e-2))


def loss(net: Any, x: Any) -> Any:
    """Of a network."""
    return net.loss(x)


def trained(net: Any, target: Any = None) -> Any:
    """A few steps."""
    state = OPTIMIZER.init(net)

    @pj.jit
    def step(net: Any, state: Any, target: Any) -> Any:
        def total(net: Any, target: Any) -> Any:
            return loss(net, X) + (0 if target is None else jnp.sum(target(X) - net(X)))

        gradient = pj.grad(total)(net, target)
        updates, state = OPTIMIZER.update(gradient, state, net)
        return pj.apply_updates(net, updates), state

    for _ in range(3):
        net, state = step(net, state, target)
    return net


def in_place(net: Any) -> Any:
    """Training in place, beside a compiled method."""
    state = {"net": net, "opt": OPTIMIZER.init(net)}
    predict = pj.jit(type(net).loss)

    @pj.jit(update_argnums=0)
    def step(run: Any) -> Any:
        gradient = pj.grad(loss)(run["net"], X)
        updates, run["opt"] = OPTIMIZER.update(gradient, run["opt"], run["net"])
        pydag.dag_update(run["net"], pj.apply_updates(run["net"], updates))

    found = []
    for _ in range(3):
        step(state)
        found.append(float(predict(net, X)))
    assert found[0] > found[1] > found[2]
    return found


def ema(net: Any) -> Any:
    """A target that starts as the network itself and follows it."""

    @pj.jit
    def follow(run: Any) -> Any:
        def mean(a: Any, b: Any) -> Any:
            return 0.9 * a + 0.1 * b

        target = pj.tree.map(
            lambda a, b: mean(a, b) if jnp.issubdtype(a.dtype, jnp.floating) else a,
            run["target"],
            run["net"],
        )
        return {"net": trained_once(run["net"]), "target": target}

    run = {"net": net, "target": net}
    for _ in range(3):
        run = follow(run)
    return run


def trained_once(net: Any) -> Any:
    """One step of plain gradient descent."""
    gradient = pj.grad(loss)(net, X)
    return pj.tree.map(lambda w, g: w - 0.01 * g, net, gradient)


def hard_updates(net: Any) -> Any:
    """A target network that is the network at first, and after every second step."""
    target = net
    for i in range(4):
        gradient = pj.grad(lambda p, t: jnp.sum((p(X) - 0.9 * t(X)) ** 2))(net, target)
        net = pj.tree.map(lambda w, g: w - 0.01 * g, net, gradient)
        target = net if i % 2 else target
    return net


def lstm(net: Any) -> Any:
    """A carry that starts as one array of zeros at two places."""
    zeros = jnp.zeros(3)

    def cell(carry: Any, x: Any) -> Any:
        h = net(carry.h + x)
        return Pair(h, carry.c + h), h

    return pj.scan(cell, Pair(zeros, zeros), X)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "jit of a method": lambda net: pj.jit(type(net).loss)(net, X),
    "grad of a method": lambda net: pj.grad(net.loss)(X),
    "grad of a partial of numbers": lambda net: pj.grad(functools.partial(loss, x=X))(net),
    "gradient penalty": lambda net: pj.grad(
        lambda n: jnp.sum(pj.vmap(pj.grad(lambda x: jnp.sum(n(x))))(X) ** 2)
    )(net),
    "per-example gradients": lambda net: pj.vmap(pj.grad(loss), in_axes=(None, 0))(net, X),
    "vmap of a module": lambda net: pj.vmap(net)(X),
    "an ensemble": lambda net: pj.vmap(lambda n, x: n(x), in_axes=(0, None))(
        pj.tree.map(lambda x: jnp.stack([x, x]), net), X
    ),
    "checkpoint of a method": lambda net: pj.jit(lambda n: pj.grad(pj.checkpoint(n.loss))(X))(net),
    "scan of a method": lambda net: pj.scan(net.step, jnp.zeros(3), X),
    "scan of a method, grad": lambda net: pj.grad(
        lambda n: jnp.sum(pj.scan(n.step, jnp.zeros(3), X)[0])
    )(net),
    "an LSTM": lstm,
    "map of a module": lambda net: pj.map(net, X),
    "fori_loop of a partial": lambda net: pj.fori_loop(
        0, 3, functools.partial(lambda n, i, x: n(x) + i, net), X
    ),
    "cond of two modules": lambda net: pj.cond(True, net.layers[0], net.layers[1], X),
    "training": trained,
    "training, the target is the model": lambda net: trained(net, net),
    "training in place": in_place,
    "an average of the model": ema,
    "hard updates": hard_updates,
    "wrt a pattern": lambda net: pj.grad(loss, wrt="layers[1]*")(net, X),
    "wrt the tied layer": lambda net: pj.grad(loss, wrt=["layers*", "last*"])(net, X),
    "a policy and a copy": lambda net: pj.grad(
        lambda t: jnp.sum(t["policy"](X) - t["ref"](X)), wrt="['policy'].*"
    )({"policy": net, "ref": pj.tree.copy(net)}),
    "KL of a model and itself": lambda net: pj.grad(lambda p, q: jnp.sum(p(X) - q(X)))(net, net),
    "jacobian of a method": lambda net: pj.jacrev(net)(X[0]),
    "MAML": lambda net: pj.grad(lambda n: loss(trained_once(n), X))(net),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_normal_programs_are_quiet(name: str) -> None:
    """No warning of any class comes, at the first call or at the second."""
    net = Net()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PROGRAMS[name](net)
        PROGRAMS[name](net)
    assert net.last is net.layers[0]
    assert all(isinstance(leaf, jax.Array | float | str) for leaf in pydag.dag_leaves(net))
    assert not any(isinstance(leaf, jax.core.Tracer) for leaf in pydag.dag_leaves(net))


class Agent:
    """Whose methods are compiled with `self` as a constant, and which keeps its state itself."""

    def __init__(self, net: Any) -> None:
        self.net, self.state, self.steps, self.traces = net, OPTIMIZER.init(net), 0, 0

    @functools.partial(pj.jit, static_argnums=0)
    def update(self, net: Any, state: Any, x: Any) -> Any:
        self.traces += 1
        updates, state = OPTIMIZER.update(pj.grad(loss)(net, x), state, net)
        return pj.apply_updates(net, updates), state

    def train(self) -> None:
        self.net, self.state = self.update(self.net, self.state, X)
        self.steps += 1


def test_an_agent_that_keeps_its_state_is_compiled_once() -> None:
    """A static argument is known by its hash and equality alone, as JAX does, whatever it holds."""
    agent = Agent(Net())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(6):
            agent.train()
    assert agent.traces == 1
    assert agent.net.last is agent.net.layers[0]


PAGE = Path(__file__).parents[2] / "docs" / "training.md"
WARNS, SILENT = ("warns", "warns", "works", "works"), ("silent", "silent", "works", "works")
HALF, NEVER = ("warns", "raises", "works", "works"), ("warns", "warns", "raises", "raises")
WORKS = ("works", "works", "works", "works")


# The line: what it replaces, its twin, and the answers for a dict, an equinox module, a class of
# register_module, a pj.Module.
LINES: dict[str, tuple[str, Any, tuple[str, str, str, str]]] = {
    "`jax.jit`": ("jit", jax.jit, WARNS),
    "`eqx.filter_jit`": ("jit", eqx.filter_jit, NEVER),
    "`jax.grad`": ("grad", jax.grad, WARNS),
    "`eqx.filter_grad`": ("grad", eqx.filter_grad, NEVER),
    "`optax.sgd` alone": ("optimizer", lambda tx: tx, WARNS),
    "`optax.adamw` alone": ("optimizer", lambda tx: tx, HALF),
    "`optax.apply_updates`": ("apply_updates", optax.apply_updates, HALF),
    "`eqx.apply_updates`": ("apply_updates", eqx.apply_updates, WARNS),
    "`jax.lax.scan`": ("scan", jax.lax.scan, SILENT),
    "`jax.checkpoint`": ("checkpoint", jax.checkpoint, SILENT),
    "`eqx.filter_checkpoint`": (
        "checkpoint",
        eqx.filter_checkpoint,
        ("silent", "silent", "raises", "raises"),
    ),
    "`jax.vmap`": ("vmap", jax.vmap, WORKS),
    "`eqx.filter_vmap`": ("vmap", eqx.filter_vmap, ("works", "works", "raises", "raises")),
    "`jax.tree.map`": ("map", jax.tree.map, WARNS),
}

ANSWERS = {line: answers for line, (_, _, answers) in LINES.items()}
NAMES = ("jit", "grad", "optimizer", "apply_updates", "scan", "checkpoint", "vmap")
RIGHT: dict[str, Any] = {name: getattr(pj, name) for name in NAMES} | {"map": pj.tree.map}
base: Any = eqx.Module


class Equinox(base):  # type: ignore[misc]  # of a class that may be missing
    e: Any
    u: Any
    k: float = 2.0


@pydag.register_module
class Registered:
    def __init__(self, e: Any, u: Any) -> None:
        self.e, self.u, self.k = e, u, 2.0


class Module(pj.Module):
    def __init__(self, e: Any, u: Any) -> None:
        self.e, self.u, self.k = e, u, 2.0


MAKERS: list[Callable[[Any, Any], Any]] = [
    lambda e, u: {"e": e, "u": u},
    Equinox,
    Registered,
    Module,
]

ROWS = jnp.array([[1.0, 2.0, 3.0], [2.0, 1.0, 0.5]])


def get(model: Any, name: str) -> Any:
    return model[name] if isinstance(model, dict) else getattr(model, name)


def step_of(lines: dict[str, Any], tx: Any, make: Callable[[Any, Any], Any]) -> Any:
    """What two steps make of a tied model: all lines are in it.

    A loss that maps the model, is mapped over a batch, and takes a step of its own within, so that
    each line gets the model as an argument, or as a carry.
    """
    w = jnp.arange(1.0, 4.0)
    model, optimizer = make(w, w), lines["optimizer"](tx)
    state = optimizer.init(model)

    def product(model: Any, x: Any) -> Any:
        return (get(model, "e") ** 2 * x).sum() * get(model, "u").mean()

    def inner(model: Any, x: Any) -> Any:
        gradient = lines["grad"](product)(model, x)
        return product(pj.tree.map(lambda p, g: p - 0.01 * g, model, gradient), x)

    def loss(model: Any, xs: Any) -> Any:
        def body(model: Any, x: Any) -> Any:
            gradient = pj.grad(product)(model, x)
            return pj.tree.map(lambda p, g: p - 0.01 * g, model, gradient), product(model, x)

        carried = lines["scan"](body, model, xs)[1].sum()
        again = lines["checkpoint"](inner)(model, xs[0])
        return carried + again + lines["vmap"](product, in_axes=(None, 0))(model, xs).sum()

    def step(model: Any, state: Any, xs: Any) -> Any:
        gradient = lines["grad"](loss)(model, xs)
        gradient = lines["map"](lambda g: 0.5 * g, gradient)
        updates, state = optimizer.update(gradient, state, model)
        return lines["apply_updates"](model, updates), state

    compiled = lines["jit"](step)
    for _ in range(2):
        model, state = compiled(model, state, ROWS)
    return model


TXS: dict[str, Any] = {"sgd": optax.sgd(1e-3), "adamw": optax.adamw(1e-2)}


# The parameter after two steps, as plain JAX gives it for a loss of one array.
EXPECTED = {"sgd": [0.9428965, 1.9137596, 2.8698781], "adamw": [0.980001, 1.9799986, 2.9799962]}

CURES = {
    "jit": "pydag.jaxinterop.jit keeps ties",
    "grad": "pydag.jaxinterop's grad",
    "optimizer": "pydag.jaxinterop.optimizer(tx)",
    "apply_updates": "apply_updates",
    "scan": "pydag.jaxinterop.scan keeps ties",
    "checkpoint": "pydag.jaxinterop.checkpoint keeps ties",
    "map": "pj.tree.map",
}


def answer(line: str, tx: str, make: Callable[[Any, Any], Any]) -> str:
    """What becomes of the step: "works", "warns" with the cure, "raises" without, or "silent"."""
    name, twin, _ = LINES[line]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = step_of({**RIGHT, name: twin}, TXS[tx], make)
        except Exception as error:
            said = "\n".join([str(error), *getattr(error, "__notes__", [])])
            cure = CURES.get(name)
            return "warns" if cure is not None and cure in said else "raises"
    said = "\n".join(str(warning.message) for warning in caught)
    is_right = np.allclose(get(model, "e"), EXPECTED[tx], rtol=1e-5)
    if is_right and get(model, "e") is get(model, "u") and not caught:
        return "works"
    cure = CURES.get(name)
    if cure is not None and cure in said:
        return "warns"
    return f"warns without the cure: {said}" if caught else "silent"


@pytest.mark.parametrize("tx", TXS)
@pytest.mark.parametrize("make", MAKERS, ids=["dict", "equinox", "register_module", "Module"])
def test_the_right_step(tx: str, make: Callable[[Any, Any], Any]) -> None:
    """The step gives what plain JAX gives for one parameter, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = step_of(RIGHT, TXS[tx], make)
    assert get(model, "e") is get(model, "u")
    np.testing.assert_allclose(get(model, "e"), EXPECTED[tx], rtol=1e-5)


WORST_FIRST = ["silent", "raises", "warns", "works"]


@pytest.mark.parametrize("line", ANSWERS)
def test_one_line_is_replaced(line: str) -> None:
    """Each model gives the answer of the table: the worst of both optimizers."""
    txs = [name for name in TXS if name in line] or list(TXS)
    found = [[answer(line, tx, make) for tx in txs] for make in MAKERS]
    assert tuple(min(row, key=WORST_FIRST.index) for row in found) == ANSWERS[line]


def test_no_step_of_a_module_is_silent() -> None:
    """Wherever a line was forgotten, the step of a module works or raises."""
    assert {answer for row in ANSWERS.values() for answer in row[2:]} <= {"works", "raises"}


def test_the_table_of_the_page() -> None:
    """`docs/training.md` has this very table."""
    rows = re.findall(
        r"^\| (.+) \| (\w+) \| (\w+) \| (\w+) \| (\w+) \|$", PAGE.read_text("utf-8"), re.M
    )
    found = {line.partition(" for ")[0]: tuple(row) for line, *row in rows}
    assert found == ANSWERS
