# SPDX-License-Identifier: Apache-2.0
"""The state of an optimizer knows what the model shares, whatever optax keeps in it."""

import copy
import pickle
from collections.abc import Callable
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


def _step(opt: Any) -> Any:
    def step(p: Any, s: Any) -> Any:
        u, s = opt.update(pj.grad(_loss)(p), s, p)
        return pj.apply_updates(p, u), s

    return step


def test_plain_scan_within_ours_is_told() -> None:
    """A plain `lax.scan` in a function by `pj.jit` is named; `pj.scan` there is none of it."""
    opt = pj.optimizer(optax.sgd(0.1))
    model = _model()
    state = opt.init(model)

    def run(scan: Any) -> Any:
        return pj.jit(lambda p, s: scan(lambda c, _: (_step(opt)(*c), None), (p, s), length=2)[0])

    with pytest.raises(SharingError, match=r"plain jax\.lax\.scan traces.*(\n.*)*interop\.scan"):
        run(lambda f, init, length: jax.lax.scan(f, init, None, length))(model, state)
    new, _ = run(pj.scan)(model, state)
    assert new["a"] is new["b"]


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


BARE: dict[str, tuple[Callable[[], Any], str]] = {
    "scale_by_adam": (optax.scale_by_adam, "count"),
    "reduce_on_plateau": (optax.contrib.reduce_on_plateau, "scale"),
    "scale_by_zoom_linesearch": (
        lambda: optax.scale_by_zoom_linesearch(max_linesearch_steps=3),
        "learning_rate",
    ),
    "chain": (lambda: optax.chain(optax.scale_by_adam(), optax.scale(1.0)), "count"),
}


@pytest.mark.parametrize("name", BARE)
def test_names_of_the_outermost_state(name: str) -> None:
    """`optax.tree.get` and `set` find them as in optax's own state, also deep in a run."""
    make, key = BARE[name]
    plain, state = make().init(_model()), pj.optimizer(make()).init(_model())
    for run in (state, {"run": state}):
        found = optax.tree.get(run, key)
        assert found == optax.tree.get(plain, key)
        other = optax.tree.set(run, **{key: jnp.asarray(7, found.dtype)})
        assert optax.tree.get(other, key) == 7
        before: Any = jax.tree.structure(run)
        assert jax.tree.structure(other) == before


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


def test_multi_steps_take_extra_arguments() -> None:
    """`optax.MultiSteps` hands further arguments of `update` on."""
    opt = pj.optimizer(optax.MultiSteps(optax.polyak_sgd(), every_k_schedule=1))
    w = jnp.array([1.0, 2.0])
    updates, _ = opt.update(2 * w, opt.init(w), w, value=jnp.sum(w**2))
    assert updates.tolist() == [-0.5, -1.0]
