# SPDX-License-Identifier: Apache-2.0
"""A training run in one file: `pydag.jaxinterop.save` and `load(path, like)`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from safetensors.numpy import load_file

import pydag
from pydag import jaxinterop


@pydag.register_module
class Net:
    """A tied weight, a bias that is weakly typed, a frozen part, and configuration."""

    def __init__(self, start: float) -> None:
        self.w = self.tied = start * jnp.arange(1.0, 4.0)
        self.bias, self.seen = jnp.asarray(start), jnp.int32(0)
        self.rate, self.depth, self.name = 0.5, 2, "net"

    def __call__(self, x: Any, key: jax.Array) -> Any:
        for _ in range(self.depth):
            x = jnp.tanh(x * self.w) + self.bias
        return jnp.sum(x * self.tied * jax.random.bernoulli(key, self.rate, x.shape))


OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "adamw": lambda: optax.adamw(0.1, mask=jaxinterop.mask(Net(1.0), "w")),
    "chain": lambda: optax.chain(optax.clip_by_global_norm(1.0), optax.adam(0.1)),
    "several": lambda: optax.multi_transform(
        {"slow": optax.sgd(0.01), "fast": optax.adam(0.1)},
        lambda params: {name: "slow" if name == "tied" else "fast" for name in params},
    ),
    "multi-step": lambda: optax.MultiSteps(optax.adam(0.1), 2),
    "plateau": lambda: optax.chain(optax.adam(0.1), optax.contrib.reduce_on_plateau()),
}


def start(optimizer: Any, scale: float, seed: int) -> dict[str, Any]:
    model = Net(scale)
    return {
        "model": model,
        "optimizer": optimizer.init(model),
        "key": jax.random.key(seed),
        "step": 0,
        "best": np.inf,
    }


def trained(run: dict[str, Any], optimizer: Any, steps: int) -> dict[str, Any]:
    @jaxinterop.jit
    def step(model: Any, state: Any, key: jax.Array) -> tuple[Any, ...]:
        key, now = jax.random.split(key)
        value, gradient = jaxinterop.value_and_grad(lambda net: net(0.5, now))(model)
        updates, state = optimizer.update(gradient, state, model, value=value)
        return jaxinterop.apply_updates(model, updates), state, key, value

    for _ in range(steps):
        model, state, key, value = step(run["model"], run["optimizer"], run["key"])
        best = min(run["best"], float(value))
        run = {
            "model": model,
            "optimizer": state,
            "key": key,
            "step": run["step"] + 1,
            "best": best,
        }
    return run


def contents(run: Any) -> list[Any]:
    """All data of a run, bit for bit, with types."""
    found = []
    for leaf in jax.tree.leaves(run):
        is_key = hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        array = np.asarray(jax.random.key_data(leaf) if is_key else leaf)
        found.append((type(leaf), array.dtype, array.tobytes(), getattr(leaf, "weak_type", None)))
    return found


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_resumed_run_is_the_run(name: str, tmp_path: Path) -> None:
    """Bit for bit the one that wasn't stopped, weak types and all."""
    optimizer = jaxinterop.optimizer(OPTIMIZERS[name](), wrt=["*w", "*bias"])
    half = trained(start(optimizer, 0.3, 1), optimizer, 3)
    jaxinterop.save(tmp_path / "run", half)
    again = jaxinterop.load(tmp_path / "run", start(optimizer, 0.7, 2))
    assert contents(again) == contents(half)
    assert (again["step"], again["model"].w is again["model"].tied) == (3, True)
    structures: list[Any] = [jax.tree.structure(again), jax.tree.structure(half)]
    assert structures[0] == structures[1]
    whole, resumed = trained(half, optimizer, 3), trained(again, optimizer, 3)
    assert contents(resumed) == contents(whole)
    assert jaxinterop.tree.structure(resumed) == jaxinterop.tree.structure(whole)


def test_each_array_is_written_once(tmp_path: Path) -> None:
    """Across the model, the state and whatever else holds it."""
    optimizer = jaxinterop.optimizer(optax.adam(0.1))
    run = start(optimizer, 0.5, 0)
    run["average"] = run["model"]
    run["dag"] = jaxinterop.Dag(run["model"])
    jaxinterop.save(tmp_path / "run", run)
    names = set(load_file(tmp_path / "run"))
    assert len([name for name in names if name.endswith(".tied") and "optimizer" not in name]) == 1
    assert {"optimizer.0.mu.tied", "optimizer.0.nu.tied", "optimizer.0.count", "key"} <= names
    other = start(optimizer, 0.1, 0)
    other |= {"average": other["model"], "dag": jaxinterop.Dag(other["model"])}
    again = jaxinterop.load(tmp_path / "run", other)
    assert again["average"] is again["model"]
    assert type(again["dag"]) is jaxinterop.Dag
    assert again["dag"].tree.w is again["model"].w


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_keys(impl: str, tmp_path: Path) -> None:
    """Typed keys of any shape come back as such, with `like` and without."""
    tree = {"keys": jax.random.split(jax.random.key(3, impl=impl), 4)}
    jaxinterop.save(tmp_path / "keys", tree)
    outlines = jax.eval_shape(lambda: tree)
    others = {"keys": jax.random.split(jax.random.key(0, impl=impl), 4)}
    for again in (
        jaxinterop.load(tmp_path / "keys"),
        jaxinterop.load(tmp_path / "keys", outlines),
        jaxinterop.load(tmp_path / "keys", others),
    ):
        assert again["keys"].dtype == tree["keys"].dtype
        assert (jax.random.key_data(again["keys"]) == jax.random.key_data(tree["keys"])).all()


def test_refs(tmp_path: Path) -> None:
    """The content is written once; what comes back is one fresh ref."""
    ref = jax.new_ref(jnp.ones(2))
    jaxinterop.save(tmp_path / "refs", {"a": ref, "b": ref})
    like = {"a": jax.new_ref(jnp.zeros(2))}
    like["b"] = like["a"]
    for again in (
        jaxinterop.load(tmp_path / "refs"),
        jaxinterop.load(tmp_path / "refs", like),
    ):
        assert again["a"] is again["b"]
        assert again["a"] is not ref
        assert again["a"][...].tolist() == [1.0, 1.0]
    assert like["a"][...].tolist() == [0.0, 0.0]
    arrays = {"a": jnp.zeros(2)}
    arrays["b"] = arrays["a"]
    assert jaxinterop.load(tmp_path / "refs", arrays)["a"].tolist() == [1.0, 1.0]


def test_structure_false_leaves_out_configuration_alone(tmp_path: Path) -> None:
    """Functions and the numbers of modules; a number that is data is refused with its path."""
    net: Any = Net(1.0)
    net.act = jnp.tanh
    path = tmp_path / "run"
    jaxinterop.save(path, {"net": net, "step": jnp.int32(7)}, structure=False)
    like: dict[str, Any] = {"net": Net(0.0), "step": jnp.int32(0)}
    like["net"].act = jnp.tanh
    again = jaxinterop.load(path, like)
    assert (again["net"].w.tolist(), int(again["step"])) == ([1.0, 2.0, 3.0], 7)
    with pytest.raises(TypeError, match=r"^tree\['step'\] is data, the number 7"):
        jaxinterop.save(path, {"net": net, "step": 7}, structure=False)
    with pytest.raises(TypeError, match=r"at tree\['net'\]\.act"):
        jaxinterop.save(path, {"net": net, "step": 7})
