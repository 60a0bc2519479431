# SPDX-License-Identifier: Apache-2.0
"""Each row of docs/compared.md's table of libraries that pydag works with, with the real library.

All train, solve, sample, save or show something with a tie, and the tie is there afterwards.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax_models import tied_under

import pydag
from pydag import jaxinterop as pj
from pydag.jaxinterop import Dag

ROOT = Path(__file__).parents[2]
X = jnp.array([1.0, -2.0])


def library(name: str) -> Any:
    """A library; the test is skipped where it isn't installed."""
    return pytest.importorskip(name)


tied = tied_under("encoder", "decoder", lambda: jnp.array([[1.0, 0.5], [-0.5, 2.0]]))


def loss(model: Any) -> Any:
    return jnp.sum((model["decoder"].T @ jnp.tanh(model["encoder"] @ X) - X) ** 2)


def trained(model: Any, function: Any, steps: int = 3) -> Any:
    """The model after some compiled steps of adam, of which only the first is traced."""
    optimizer, traces = pj.optimizer(library("optax").adam(1e-2)), list[None]()

    @pj.jit
    def step(model: Any, state: Any) -> Any:
        traces.append(None)
        value, gradient = pj.value_and_grad(function)(model)
        updates, state = optimizer.update(gradient, state, model)
        return pj.apply_updates(model, updates), state, value

    state, values = optimizer.init(model), []
    for _ in range(steps):
        model, state, value = step(model, state)
        values.append(float(value))
    assert values[-1] < values[0]
    assert len(traces) == 1
    return model


def test_the_table_has_these_rows() -> None:
    """The page names the libraries that are tested here, and no others."""
    text = (ROOT / "docs/compared.md").read_text("utf-8")
    table = text.partition("## Works with\n")[2].partition("\n## ")[0]
    rows = {
        re.sub(r"\W", "_", name.lower()) for name in re.findall(r"^\| ([\w ]+?) \|", table, re.M)
    }
    tests = {name.removeprefix("test_with_") for name in globals() if name.startswith("test_with_")}
    assert tests == rows - {"library"}


def test_with_jax() -> None:
    """Plain JAX takes a Dag in all of its functions."""
    dag = jax.jit(lambda dag: jax.tree.map(lambda x: 2 * x, dag))(Dag(tied()))
    assert dag.tree["encoder"] is dag.tree["decoder"]
    gradient = jax.grad(lambda dag: loss(dag.tree))(Dag(tied()))
    assert jnp.allclose(gradient.tree["encoder"], pj.grad(loss)(tied())["encoder"])


def test_with_optax() -> None:
    """Any transformation, on models as they are."""
    model = trained(tied(), loss)
    assert model["encoder"] is model["decoder"]


def test_with_orbax(tmp_path: Path) -> None:
    """Checkpoints of a Dag hold each array once, and are restored with their ties."""
    ocp = library("orbax.checkpoint")
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "model", Dag(tied()))
        checkpointer.wait_until_finished()
        model = checkpointer.restore(tmp_path / "model", Dag(pydag.dag_map(jnp.zeros_like, tied())))
    assert model.tree["encoder"] is model.tree["decoder"]
    assert jnp.array_equal(model.tree["encoder"], tied()["encoder"])


def test_with_equinox() -> None:
    """A module with a layer that stands twice, activation functions and all."""
    eqx = library("equinox")
    layer, head = (eqx.nn.Linear(2, 2, key=jax.random.key(i)) for i in range(2))
    model = eqx.nn.Sequential([layer, eqx.nn.Lambda(jnp.tanh), layer, head])
    model = trained(model, lambda net: jnp.sum((net(X) - X) ** 2))
    assert model.layers[0] is model.layers[2]


def test_with_flax_linen() -> None:
    """Two modules that were made apart; their parameters are tied by an assignment."""
    nn = library("flax.linen")
    encoder, decoder = nn.Embed(4, 2), nn.Dense(4)
    embed = encoder.init(jax.random.key(0), jnp.arange(2))["params"]
    params = {"encoder": embed, "again": embed, "decoder": decoder.init(jax.random.key(1), X)}

    def total(params: Any) -> Any:
        x = encoder.apply({"params": params["encoder"]}, jnp.arange(2))
        y = encoder.apply({"params": params["again"]}, x, method="attend")
        return jnp.sum(y**2) + jnp.sum(decoder.apply(params["decoder"], x) ** 2)

    params = trained(params, total)
    assert params["encoder"] is params["again"]


def test_with_flax_nnx() -> None:
    """Modules and a variable that stand at two paths."""
    nnx = library("flax.nnx")
    layer = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
    model = nnx.Dict(first=layer, layers=nnx.List([layer]), bias=layer.bias)
    model = trained(model, lambda m: jnp.sum((m.layers[0](m.first(X)) + m.bias[...] - X) ** 2))
    assert model.first is model.layers[0]
    assert model.bias is model.first.bias


def test_with_haiku() -> None:
    """Parameters by the names of modules, of which two have the same."""
    hk = library("haiku")

    def forward(x: Any) -> Any:
        return hk.Linear(2, name="second")(jnp.tanh(hk.Linear(2, name="first")(x)))

    net = hk.without_apply_rng(hk.transform(forward))
    params = net.init(jax.random.key(0), X)
    params["second"] = params["first"]
    params = trained(params, lambda p: jnp.sum((net.apply(p, X) - X) ** 2))
    assert params["first"] is params["second"]


def test_with_chex() -> None:
    """A dataclass is a record; and chex takes a Dag for what it asserts of trees."""
    chex = library("chex")
    branch = chex.dataclass(type("Branch", (), {"__annotations__": {"trunk": Any, "head": Any}}))
    trunk = {"w": tied()["encoder"]}
    agent = [branch(trunk=trunk, head=X), branch(trunk=trunk, head=2 * X)]
    agent = trained(agent, lambda a: sum(jnp.sum((b.trunk["w"] @ X - b.head) ** 2) for b in a))
    assert agent[0].trunk is agent[1].trunk
    chex.assert_tree_all_finite(Dag(tied()))
    with pytest.raises(AssertionError):
        chex.assert_tree_all_finite(Dag({"w": jnp.array([jnp.nan])}))


def test_with_penzai() -> None:
    """Named arrays of penzai are nodes, and one that is held twice is one."""
    pz = library("penzai.pz")
    weight = pz.nx.wrap(tied()["encoder"]).tag("out", "in")

    def total(model: Any) -> Any:
        x = pz.nx.wrap(X).tag("in")
        hidden = pz.nx.nmap(jnp.vdot)(model["first"].untag("in"), x.untag("in"))
        back = pz.nx.nmap(jnp.vdot)(model["second"].untag("out"), hidden.untag("out"))
        return jnp.sum((back.untag("in").unwrap() - X) ** 2)

    model = trained({"first": weight, "second": weight}, total)
    assert model["first"] is model["second"]
    assert model["first"].named_shape == {"out": 2, "in": 2}


def test_with_diffrax() -> None:
    """A state and parameters that share: two compartments with one rate."""
    diffrax = library("diffrax")
    rate = jnp.float32(2.0)

    def derivative(t: Any, y: Any, rates: Any) -> Any:
        return jax.tree.map(lambda x: -rates.tree["one"] * x, y)

    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(derivative),
        diffrax.Euler(),
        t0=0.0,
        t1=1.0,
        dt0=0.25,
        y0=Dag({"a": (part := jnp.ones(1)), "b": part}),
        args=Dag({"one": rate, "other": rate}),
    )
    end = solution.ys.tree
    assert end["a"] is end["b"]
    assert jnp.allclose(end["a"], 0.5**4)


def test_with_optimistix() -> None:
    """An unknown that two equations hold is one unknown."""
    optimistix = library("optimistix")
    unknown = jnp.float32(2.0)

    def residual(y: Any, args: Any) -> Any:
        return Dag({"a": (r := y.tree["a"] * y.tree["b"] - 9.0), "b": r})

    solution = optimistix.root_find(
        residual, optimistix.Newton(1e-5, 1e-5), Dag({"a": unknown, "b": unknown})
    )
    assert solution.value.tree["a"] is solution.value.tree["b"]
    assert float(solution.value.tree["a"]) == pytest.approx(3.0, abs=1e-3)


def test_with_lineax() -> None:
    """Linear equations whose unknowns are a DAG."""
    lineax = library("lineax")
    right = Dag({"a": (b := jnp.array([2.0, 4.0])), "b": b})
    operator = lineax.FunctionLinearOperator(
        lambda x: jax.tree.map(lambda x: 4.0 * x, x),
        jax.eval_shape(lambda: right),
        lineax.positive_semidefinite_tag,
    )
    solution = lineax.linear_solve(operator, right, lineax.CG(rtol=1e-5, atol=1e-5))
    assert solution.value.tree["a"] is solution.value.tree["b"]
    assert jnp.allclose(solution.value.tree["a"], b / 4)


def log_density(dag: Any) -> Any:
    return -jnp.sum(dag.tree["a"] * dag.tree["b"]) / 2


def test_with_numpyro() -> None:
    """Samples of a parameter that stands at two places: one coordinate."""
    library("numpyro")
    infer = library("numpyro.infer")
    kernel = infer.HMC(
        potential_fn=lambda dag: -log_density(dag), num_steps=3, trajectory_length=None
    )
    sampler = infer.MCMC(kernel, num_warmup=2, num_samples=4, progress_bar=False)
    w = jnp.zeros(2)
    sampler.run(jax.random.key(0), init_params=Dag({"a": w, "b": w}))
    samples = sampler.get_samples().tree
    assert samples["a"] is samples["b"]
    assert samples["a"].shape == (4, 2)


def test_with_blackjax() -> None:
    """The same by blackjax: the mass matrix has two rows, not four."""
    blackjax = library("blackjax")
    w = jnp.zeros(2)
    sampler = blackjax.hmc(
        log_density, step_size=0.3, inverse_mass_matrix=jnp.ones(2), num_integration_steps=3
    )
    state = sampler.init(Dag({"a": w, "b": w}))
    state, _ = jax.jit(sampler.step)(jax.random.key(0), state)
    assert state.position.tree["a"] is state.position.tree["b"]
    assert state.position.tree["a"].shape == (2,)


@pytest.mark.filterwarnings("ignore:The chararray class")  # treescope asks NumPy for all it has
def test_with_treescope() -> None:
    """treescope shows a view, each shared array once."""
    treescope = library("treescope")
    assert "*0" in treescope.render_to_text(pydag.view(tied()))
