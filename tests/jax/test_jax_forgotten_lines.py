# SPDX-License-Identifier: Apache-2.0
"""One line of a correct training step replaced by its plain twin: it works, warns, or is silent.

The table of the answers stands in `docs/training.md`, too.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import optax
import pytest

eqx = pytest.importorskip("equinox")

import jax.numpy as jnp
import numpy as np

import pydag
from pydag import jaxinterop as pj

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

X = jnp.array([[1.0, 2.0, 3.0], [2.0, 1.0, 0.5]])


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
        model, state = compiled(model, state, X)
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
    """It gives what plain JAX gives for one parameter, and says nothing."""
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
