# SPDX-License-Identifier: Apache-2.0
"""Each library in the table of docs/compared.md, for real; modules of equinox and flax."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import equinox
import jax
import jax.numpy as jnp
import pytest
from jax_models import tied_under

import pydag
import pydag.jaxinterop as pj
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


eqx: Any = equinox  # whose transformations have no types


class Net(equinox.Module):
    """An MLP between a layer and the same layer."""

    first: Any
    middle: Any
    last: Any

    def __init__(self, key: Any) -> None:
        keys = jax.random.split(key)
        self.first = eqx.nn.Linear(3, 3, key=keys[0])
        self.middle = eqx.nn.MLP(3, 3, 5, 1, activation=jnp.tanh, key=keys[1])
        self.last = self.first

    def __call__(self, x: Any) -> Any:
        return self.last(self.middle(self.first(x)))


def net() -> Any:
    return Net(jax.random.key(0))


def loss_of(model: Any, x: Any) -> Any:
    return jnp.sum(model(x) ** 2)


def dag_loss(dag: Dag, x: Any) -> Any:
    return loss_of(dag.tree, x)


ROW = jnp.array([1.0, -2.0, 0.5])


def assert_tied(model: Any) -> None:
    assert type(model) is Net
    assert model.first is model.last
    assert model.middle.activation is jnp.tanh


def test_wrappers_take_modules_as_they_are() -> None:
    """No Dag, no partition, no filter: functions and other static leaves just pass."""
    model = net()
    value, gradient = pj.jit(pj.value_and_grad(loss_of))(model, ROW)
    assert value == pytest.approx(float(loss_of(model, ROW)))
    assert gradient.first is gradient.last
    assert gradient.middle.activation is None
    updated = pydag.dag_map(lambda p, g: p if g is None else p - 0.1 * g, model, gradient)
    assert_tied(updated)
    assert float(loss_of(updated, ROW)) < value


def test_filter_jit_and_filter_grad() -> None:
    """Equinox's own transformations take a Dag of a module, and give one."""
    dag = Dag(net())
    gradient = eqx.filter_jit(eqx.filter_grad(dag_loss))(dag, ROW)
    assert_tied(gradient.tree)
    expected = pj.grad(loss_of)(net(), ROW)
    assert jnp.allclose(gradient.tree.first.weight, expected.first.weight)
    assert_tied(eqx.apply_updates(dag, gradient).tree)
    value, _ = eqx.filter_value_and_grad(dag_loss)(dag, ROW)
    assert float(value) == pytest.approx(float(loss_of(net(), ROW)))


def test_a_flag_is_set_on_the_model() -> None:
    """Equinox's own ways to set one see the module itself; what is compiled takes it as it is."""
    dropout = eqx.nn.Dropout(0.5)
    noisy = pj.jit(lambda dropout, x, key: dropout(x, key=key))
    key = jax.random.key(0)
    assert 0.0 in noisy(dropout, ROW, key).tolist()
    assert noisy(eqx.nn.inference_mode(dropout), ROW, key).tolist() == ROW.tolist()
    assert noisy(eqx.tree_at(lambda d: d.p, dropout, 0.0), ROW, key).tolist() == ROW.tolist()


def test_tree_at() -> None:
    """A replacement at one path is at all of them."""
    zero = jnp.zeros((3, 3))
    dag = eqx.tree_at(lambda dag: dag.tree.first.weight, Dag(net()), zero)
    assert_tied(dag.tree)
    assert dag.tree.last.weight is zero


class Around(pj.Module):
    def __init__(self) -> None:
        self.linear = equinox.nn.Linear(2, 2, key=jax.random.key(0))
        self.also, self.dropout = self.linear, equinox.nn.Dropout(0.5)

    def __call__(self, x: Any, key: Any = None) -> Any:
        return self.dropout(self.also(self.linear(x)), key=key)


def test_inference_mode_of_own_modules() -> None:
    """A module's layers are rewritten by `dag_rewrite`, and stay shared."""
    net, x = Around(), jnp.ones(2)
    mode = {equinox.nn.Dropout: equinox.nn.inference_mode}
    evaluated = pydag.dag_rewrite(mode, net)
    assert evaluated.dropout.inference is True
    assert net.dropout.inference is False
    assert evaluated.linear is evaluated.also
    expected = net.linear(net.linear(x))
    assert jnp.allclose(pj.jit(lambda net, x: net(x))(evaluated, x), expected)


class Model(pj.Module):
    """A module of pydag's."""

    def __init__(self) -> None:
        self.w = self.tied = jnp.ones(2)
        self.size = 2


def test_tree_at_of_an_own_module() -> None:
    """The error names what works: `dag_replace`, and `eqx.tree_at` of a `Dag`."""
    model, new = Model(), jnp.zeros(2)
    with pytest.raises(TypeError, match=r"pydag\.dag_replace(.|\n)*pj\.Dag\(model\)") as caught:
        eqx.tree_at(lambda m: m.w, model, new)
    assert "_LeafWrapper" not in str(caught.value)
    replaced = pydag.dag_replace(model, model.w, new)
    through = eqx.tree_at(lambda dag: dag.tree.w, Dag(model), new).tree
    for changed in (replaced, through):
        assert changed.w is changed.tied
        assert (changed.w.tolist(), changed.size) == ([0.0, 0.0], 2)


def test_partition_of_an_own_module() -> None:
    """A `Dag` comes together again."""
    halves = eqx.partition(Dag(Model()), eqx.is_array)
    model = eqx.combine(*halves).tree
    assert model.w is model.tied
    assert model.w.tolist() == [1.0, 1.0]


class Shared(equinox.Module):
    """Ties two layers as equinox does."""

    layers: Any

    def __init__(self) -> None:
        key = jax.random.key(0)
        parts = eqx.nn.Embedding(4, 3, key=key), eqx.nn.Linear(3, 4, use_bias=False, key=key)
        self.layers = eqx.nn.Shared(parts, lambda p: p[1].weight, lambda p: p[0].weight)

    def __call__(self, i: Any) -> Any:
        embed, unembed = self.layers()
        return unembed(embed(i)).sum()


class Holder(pj.Module):
    """Holds such a model."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(self, i: Any) -> Any:
        return self.model(i)


@pytest.mark.parametrize("wrap", [lambda m: m, Holder])
def test_shared_of_equinox(wrap: Any) -> None:
    """What stands in the place of a tied weight holds nothing: it is configuration."""
    model = Shared()
    expected = eqx.filter_grad(lambda m: m(1))(model).layers.pytree[0].weight
    own = wrap(model)
    assert jnp.allclose(pj.jit(lambda m, i: m(i))(own, 1), model(1))
    gradient = pj.jit(pj.grad(lambda m: m(1)))(own)
    [found] = jax.tree.leaves(pj.tree.leaves(gradient))
    assert jnp.allclose(found, expected)
    assert jnp.allclose(pj.tree.map(lambda x: 2 * x, own)(1), 4 * model(1))
