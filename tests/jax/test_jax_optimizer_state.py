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


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_plain_jit_is_told(name: str) -> None:
    """Plain `jax.jit` around a step is an error that names it, and the wrapper that keeps ties."""
    opt = pj.optimizer(TRANSFORMATIONS[name]())
    model = _model()
    state = opt.init(model)
    with pytest.raises(SharingError) as caught:
        jax.jit(_step(opt))(model, state)
    text = str(caught.value)
    assert "plain jax.jit traces" in text
    assert "pydag.jaxinterop.jit keeps ties" in text
    assert "params['a'] and params['b']" in text
    assert "new state" not in text
    new, state = pj.jit(_step(opt))(model, state)
    assert new["a"] is new["b"]
    new, state = pj.jit(_step(opt))(new, state)
    assert new["a"] is new["b"]


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


def test_attributes_and_items_reach_through() -> None:
    """The state is read as optax's is: attributes, items, length, iteration, `optax.tree.get`."""
    opt = pj.optimizer(optax.chain(optax.trace(0.5), optax.scale(-1.0)))
    model = _model()
    state = opt.init(model)
    assert len(state) == 2
    assert state[0] is next(iter(state))
    assert state[0].trace.tree["a"].tolist() == [0.0, 0.0, 0.0]
    trace = optax.tree.get(state, "trace")
    assert trace.tree["a"] is trace.tree["b"]
    single = pj.optimizer(optax.scale_by_adam()).init(model)
    assert int(single.count) == 0
    assert single.mu.spec == pj.Dag(model).spec
    assert int(single._replace(count=jnp.int32(3)).count) == 3
    with pytest.raises(AttributeError, match="nothing"):
        _ = single.nothing
    paths = [
        jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(single)[0]
    ]
    assert paths == [".count", ".mu.tree['a']", ".nu.tree['a']"]


BARE: dict[str, tuple[Callable[[], Any], str]] = {
    "scale_by_adam": (optax.scale_by_adam, "count"),
    "reduce_on_plateau": (optax.contrib.reduce_on_plateau, "scale"),
    "scale_by_zoom_linesearch": (
        lambda: optax.scale_by_zoom_linesearch(max_linesearch_steps=3),
        "learning_rate",
    ),
    "inject_hyperparams": (lambda: optax.inject_hyperparams(optax.sgd)(0.1), "learning_rate"),
    "chain": (lambda: optax.chain(optax.scale_by_adam(), optax.scale(1.0)), "count"),
}


@pytest.mark.parametrize("is_within", [False, True])
@pytest.mark.parametrize("name", BARE)
def test_names_of_the_outermost_state(name: str, *, is_within: bool) -> None:
    """`optax.tree.get` and `set` find them as in optax's own state, with the same paths."""
    make, key = BARE[name]
    plain, state = make().init(_model()), pj.optimizer(make()).init(_model())
    of_optax, of_pydag = ({"run": x} if is_within else x for x in (plain, state))
    found = optax.tree.get(of_pydag, key)
    assert found == optax.tree.get(of_optax, key)
    paths, same = (
        [path for path, _ in optax.tree.get_all_with_path(tree, key)]
        for tree in (of_pydag, of_optax)
    )
    assert paths == same
    other = optax.tree.set(of_pydag, **{key: jnp.asarray(7, found.dtype)})
    assert optax.tree.get(other, key) == 7
    before: Any = jax.tree.structure(of_pydag)
    assert jax.tree.structure(other) == before
    kept = other["run"] if is_within else other
    assert isinstance(kept, type(state))
    assert not isinstance(kept, tuple)


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


@pytest.mark.parametrize("make", [lambda: optax.trace(0.9), lambda: optax.lars(0.1), optax.lbfgs])
def test_updates_and_gradient_are_no_part_of_the_state(make: Any) -> None:
    """No array of the gradient, the model or the updates is in the state after an update."""
    opt = pj.optimizer(make())
    model = _model()
    gradient = pj.grad(_loss)(model)
    extra = {"value": _loss(model), "grad": gradient, "value_fn": _loss}
    updates, state = opt.update(gradient, opt.init(model), model, **extra)
    mine = {id(x) for tree in (gradient, model, updates) for x in pydag.dag_leaves(tree)}
    assert mine.isdisjoint(map(id, jax.tree.leaves(state)))


def test_map_params() -> None:
    """`optax.tree.map_params` takes an optimizer of ours: the moments are mapped, as Dags."""
    opt = pj.optimizer(optax.adam(0.1))
    model = _model()
    state = opt.init(model)
    moved = optax.tree.map_params(opt, lambda x: x + 2, state)
    assert moved[0].mu.tree["a"].tolist() == [2.0, 2.0, 2.0]
    assert moved[0].mu.tree["a"] is moved[0].mu.tree["b"]
    assert int(moved[0].count) == 0
    opt.update(pj.grad(_loss)(model), moved, model)


def test_multi_steps_take_extra_arguments() -> None:
    """`optax.MultiSteps` hands further arguments of `update` on."""
    opt = pj.optimizer(optax.MultiSteps(optax.polyak_sgd(), every_k_schedule=1))
    w = jnp.array([1.0, 2.0])
    updates, _ = opt.update(2 * w, opt.init(w), w, value=jnp.sum(w**2))
    assert updates.tolist() == [-0.5, -1.0]


def test_a_view_of_a_state_is_in_words() -> None:
    """It says for what the state is, without the inner objects by which pydag knows it."""
    model = {"w": jnp.ones(2), "name": "net", "b": jnp.ones(2)}
    for where in (None, "*w*"):
        state = pj.optimizer(optax.adam(0.1), wrt=where).init(model)
        shown = str(pydag.view({"model": model, "optimizer": state}))
        assert "for a model of 2 arrays and 1 static" in shown
        assert " object at 0x" not in shown
        assert "spec_key" not in shown
