# SPDX-License-Identifier: Apache-2.0
"""Arguments in the wrong order, names of other libraries, and the like: what the errors say."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import pytest

import pydag.jaxinterop as pj

MODEL: Any = {"w": jnp.ones(2)}
OPTIMIZER: Any = pj.optimizer(optax.adam(0.1))


def linear() -> Any:
    return eqx.nn.Linear(2, 2, key=jax.random.key(0))


def state() -> Any:
    return OPTIMIZER.init(MODEL)


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "a model that can be called, and a function": (
        lambda: pj.tree.map(linear(), jnp.negative),
        r"the second argument is a function.*\n  Swap them: map\(f, tree\)",
    ),
    "a tree, and a function": (
        lambda: pj.tree.map(MODEL, jnp.negative),
        r"Swap them: map\(f, tree\)",
    ),
    "a number for an optimizer": (
        lambda: pj.optimizer(1e-3),
        r"takes a transformation of optax's, such as .*, not 0.001$",
    ),
    "an optimizer that wasn't called": (
        lambda: pj.optimizer(optax.adam),
        r"Call it: optimizer\(optax.adam\(1e-3\)\)",
    ),
    "state and model swapped": (
        lambda: OPTIMIZER.update(MODEL, MODEL, state()),
        r"update\(updates, state, params\)",
    ),
    "both results as the state": (
        lambda: OPTIMIZER.update(MODEL, OPTIMIZER.update(MODEL, state(), MODEL), MODEL),
        r"updates, state = opt.update",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_is_said(mistake: str) -> None:
    """The error says what was given, and what belongs there."""
    call, text = MISTAKES[mistake]
    with pytest.raises(TypeError, match=f"(?s){text}"):
        call()


def test_a_state_of_optax_alone() -> None:
    """optax's error has a note."""
    with pytest.raises(ValueError, match="structure") as raised:
        OPTIMIZER.update(MODEL, optax.adam(0.1).init(MODEL), MODEL)
    assert raised.value.__notes__ == ["The state must be what `init` of this very optimizer gave."]


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("dag_map", "pydag.dag_map"),
        ("tree_map", "pydag.jaxinterop.tree.map"),
        ("filter_jit", "pydag.jaxinterop.jit"),
        ("Optimizer", "pydag.jaxinterop.optimizer"),
    ],
)
def test_names_of_elsewhere(name: str, ours: str) -> None:
    """What pydag, JAX, equinox or NNX has under another name is named."""
    with pytest.raises(AttributeError, match=f"no '{name}'; did you mean '{ours}'"):
        getattr(pj, name)
    assert not hasattr(pj, "something_else")


def test_saving_inside_of_a_transformation(tmp_path: Path) -> None:
    """A tracer has no numbers: the error has the path, and nothing is written."""
    path = tmp_path / "model.safetensors"
    with pytest.raises(TypeError, match=r"(?s)tree\['w'\] is traced.*outside of it"):
        pj.jit(lambda model: pj.save(path, model))(MODEL)
    assert not path.exists()
