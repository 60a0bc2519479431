# SPDX-License-Identifier: Apache-2.0
"""The state of an optimizer knows what the model shares, whatever optax keeps in it."""

import copy
import pickle
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest

import pydag
import pydag.jaxinterop as pj
from pydag import SharingError

TRANSFORMATIONS = {
    "sgd": lambda: optax.sgd(0.1),
    "clipped": lambda: optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.1)),
    "adam": lambda: optax.adam(0.1),
}


def _loss(p: Any) -> Any:
    return (p["a"] ** 2 * p["b"]).sum()


def _model() -> dict[str, Any]:
    w = jnp.arange(1.0, 4.0)
    return {"a": w, "b": w}


def test_outside_of_traces() -> None:
    """A gradient and updates that plain functions untied are errors that name what keeps ties."""
    opt = pj.optimizer(optax.sgd(0.1))
    model = _model()
    state = opt.init(model)
    with pytest.raises(SharingError, match=r"Take pydag\.jaxinterop's grad"):
        opt.update(jax.grad(_loss)(model), state, model)
    untied = jax.tree.map(lambda x: x + 0, model)
    with pytest.raises(SharingError, match=r"pydag\.retie"):
        opt.update(pj.grad(_loss)(model), state, untied)
    with pytest.raises(SharingError, match=r"pydag\.jaxinterop\.optimizer\(tx\)"):
        pj.apply_updates(model, untied)


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_copies_and_files_keep_the_structure(name: str, tmp_path: Path) -> None:
    """A state that was copied, pickled, saved or mapped over is still for the model's sharing."""
    opt = pj.optimizer(TRANSFORMATIONS[name]())
    model = _model()
    state = opt.init(model)
    untied = {"a": model["a"], "b": model["b"] + 0}
    pj.save(tmp_path / "run.dag", {"model": model, "state": state})
    saved = pj.load(tmp_path / "run.dag", {"model": model, "state": state})["state"]
    others = [
        copy.deepcopy(state),
        pickle.loads(pickle.dumps(state)),
        jax.tree.map(jnp.copy, state),
        pydag.dag_map(lambda x: x, state),
        saved,
    ]
    for other in others:
        u, _ = opt.update(pj.grad(_loss)(model), other, model)
        assert u["a"] is u["b"]
        with pytest.raises(SharingError, match="shared in another way"):
            opt.update(pj.grad(_loss)(untied), other, untied)
