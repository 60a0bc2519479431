# SPDX-License-Identifier: Apache-2.0
"""Runs that train in place: what `update_argnums` and `dag_update` write keeps its structure."""

import pathlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import pydag
import pydag.jaxinterop as pj

X = jnp.linspace(-1.0, 1.0, 6).reshape(2, 3)


class Net(pj.Module):
    """Has all that has no moment: a key, an integer, configuration; and a tie."""

    def __init__(self) -> None:
        self.w = 2 * jnp.eye(3)
        self.u, self.b = self.w, jnp.zeros(3)
        self.key, self.calls, self.rate = jax.random.key(0), jnp.int32(0), 0.25

    def __call__(self, x: Any) -> Any:
        self.key, key = jax.random.split(self.key)
        self.calls = self.calls + 1
        hidden = x @ self.w + self.b
        kept = jax.random.bernoulli(key, 1 - self.rate, hidden.shape)
        return jnp.where(kept, hidden, 0.0) @ self.u.T


def nnx_net() -> Any:
    """A model of NNX with statistics, a stream for dropout, and a tie."""
    nnx = pytest.importorskip("flax.nnx")

    class Net(nnx.Module):  # type: ignore[misc, name-defined]  # a base class without types
        def __init__(self, rngs: Any) -> None:
            self.first, self.norm = nnx.Linear(3, 3, rngs=rngs), nnx.BatchNorm(3, rngs=rngs)
            self.drop, self.last = nnx.Dropout(0.25, rngs=rngs), nnx.Linear(3, 3, rngs=rngs)
            self.last.kernel = self.first.kernel

        def __call__(self, x: Any) -> Any:
            return self.last(self.drop(self.norm(self.first(x))))

    return Net(nnx.Rngs(0))


TRANSFORMATIONS = {
    "adam": lambda: optax.adam(1e-2),
    "masked": lambda: optax.masked(
        optax.adam(1e-2), lambda m: jax.tree.map(lambda x: x.ndim > 1, m)
    ),
    "MultiSteps": lambda: optax.MultiSteps(optax.adam(1e-2), every_k_schedule=2),
}


def a_step(opt: Any, **selected: Any) -> Callable[[Any, Any], Any]:
    """The step of docs/state.md: it writes into the run that it is given."""

    def loss(model: Any, x: Any) -> Any:
        return ((model(x) - x) ** 2).mean()

    def step(run: Any, x: Any) -> Any:
        graded = pj.value_and_grad(loss, update_argnums=0, **selected)
        value, gradient = graded(run["model"], x)
        updates, run["state"] = opt.update(gradient, run["state"], run["model"])
        pydag.dag_update(run["model"], pj.apply_updates(run["model"], updates))
        return value

    return step


def equal(one: Any, other: Any) -> None:
    """Whether two runs have one structure, and the same numbers."""
    assert pj.tree.structure(one) == pj.tree.structure(other)
    for x, y in zip(pj.tree.leaves(one), pj.tree.leaves(other), strict=True):
        if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
            x, y = jax.random.key_data(x), jax.random.key_data(y)
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


def wrt_of(make: Any) -> Any:
    return ["*.w", "*.b"] if make is Net else pytest.importorskip("flax.nnx").Param


@pytest.mark.parametrize("make", [Net, nnx_net])
@pytest.mark.parametrize(
    ("name", "is_selected"), [*((name, False) for name in TRANSFORMATIONS), ("adam", True)]
)
def test_a_run_in_place_is_the_run_that_returns_its_values(
    name: str, make: Callable[[], Any], is_selected: bool
) -> None:
    """The recipe of docs/state.md compiles once, and gives the numbers of the functional step."""
    selected = {"wrt": wrt_of(make)} if is_selected else {}
    opt = pj.optimizer(TRANSFORMATIONS[name](), **selected)
    step = a_step(opt, **selected)

    def functional(run: Any, x: Any) -> Any:
        step(run, x)
        return run

    model = make()
    there: Any = {"model": model, "state": opt.init(model)}
    returned = pj.tree.copy(there)
    in_place: Any = pj.jit(step, update_argnums=0)
    by_values = pj.jit(functional)
    for _ in range(5):
        in_place(there, X)
        returned = by_values(returned, X)
    assert in_place._cache_size() == 1
    assert there["model"] is model
    equal(there, returned)


@pytest.mark.parametrize("make", [Net, nnx_net])
@pytest.mark.parametrize("name", ["adam", "masked", "MultiSteps"])
def test_a_loaded_run_is_written_into_one_that_is_there(
    name: str, make: Callable[[], Any], tmp_path: pathlib.Path
) -> None:
    """`dag_update(run, loaded)` takes an optimizer's state, and the run goes on as it was saved."""
    opt = pj.optimizer(TRANSFORMATIONS[name]())
    step = pj.jit(a_step(opt), update_argnums=0)
    model = make()
    run: Any = {"model": model, "state": opt.init(model)}
    step(run, X)
    pj.save(tmp_path / "run.safetensors", run, structure=False)
    saved = pj.tree.copy(run)
    step(run, X)
    state = run["state"]
    assert pydag.dag_update(run, pj.load(tmp_path / "run.safetensors", run)) is run
    assert run["model"] is model
    assert run["state"] is state
    equal(run, saved)
    step(run, X)
    step(saved, X)
    equal(run, saved)
