# SPDX-License-Identifier: Apache-2.0
"""Ten models as their libraries' users write them, tied by assignment, beside plain JAX by hand.

Each is trained by `pj.jit(pj.value_and_grad(loss))` as it is. The program beside it has a dict of
arrays, in which a tied weight stands once and is used twice, and knows nothing of pydag or of the
library's classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import pydag
import pydag.jaxinterop as pj

Arrays = dict[str, Any]

TOKENS = jnp.array([3, 1, 3])
X = jnp.array([1.0, -2.0, 0.5])
KEY = jax.random.key(7)


class Foreign(NamedTuple):
    """A model, and the same by hand."""

    model: Any
    loss: Callable[..., Any]
    given: tuple[Any, ...]  # the other arguments of both losses
    weights: Callable[[Any], Arrays]  # each once; of the model, or of its gradient
    by_hand: Callable[..., Any]
    ties: Callable[[Any], list[tuple[Any, Any]]]


def random(seed: int, *shape: int) -> Any:
    return jnp.asarray(np.random.default_rng(seed).normal(0, 0.5, shape), jnp.float32)


def library(name: str) -> Any:
    """A library; the test is skipped where it isn't installed."""
    return pytest.importorskip(name)


def quickly(jit: Any, fun: Callable[..., Any]) -> Any:
    """Compiling takes longer than all the rest, so it is done without optimizations."""
    return jit(fun, compiler_options={"xla_backend_optimization_level": 0})


def built(build: Callable[..., Any], *args: Any) -> Any:
    """What a constructor makes, compiled as one: thirty small programs take longer."""
    return quickly(pj.jit, build)(*args)


def with_equinox() -> Foreign:
    """Attention with one projection for queries and keys, dropout, an LSTM, a tied embedding."""
    eqx = library("equinox")

    class Model(eqx.Module):  # type: ignore[misc, name-defined]  # equinox is Any here
        embed: Any
        attention: Any
        dropout: Any
        cell: Any
        unembed: Any

        def __init__(self, width: int, key: Any) -> None:
            keys = jax.random.split(key, 3)
            self.embed = eqx.nn.Embedding(8, width, key=keys[0])
            attention = eqx.nn.MultiheadAttention(2, width, key=keys[1])
            self.attention = eqx.tree_at(
                lambda layer: layer.key_proj, attention, attention.query_proj
            )
            self.dropout = eqx.nn.Dropout(0.25)
            self.cell = eqx.nn.LSTMCell(width, width, key=keys[2])
            self.unembed = self.embed

        def __call__(self, tokens: Any, key: Any) -> Any:
            x = jax.vmap(self.embed)(tokens)
            x = self.dropout(x + self.attention(x, x, x), key=key)
            start = jnp.zeros(4), jnp.zeros(4)
            (state, _), _ = jax.lax.scan(lambda s, x: (self.cell(x, s), None), start, x)
            return self.unembed.weight @ state

    def by_hand(w: Arrays, tokens: Any, key: Any) -> Any:
        x = w["table"][tokens]
        q, k, v = (
            (x @ w[name].T).reshape(3, 2, 2).swapaxes(0, 1) for name in ("query", "query", "value")
        )
        seen = jax.nn.softmax(q @ k.swapaxes(1, 2) / 2**0.5) @ v
        x = x + seen.swapaxes(0, 1).reshape(3, 4) @ w["output"].T
        x = jnp.where(jax.random.bernoulli(key, 0.75, x.shape), x / 0.75, 0)
        h = c = jnp.zeros(4)
        for row in x:
            i, f, g, o = jnp.split(w["input"] @ row + w["hidden"] @ h + w["bias"], 4)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return -jax.nn.log_softmax(w["table"] @ h)[2]

    return Foreign(
        built(lambda key: Model(4, key), KEY),
        lambda model, tokens, key: -jax.nn.log_softmax(model(tokens, key))[2],
        (TOKENS, KEY),
        lambda m: {
            "table": m.embed.weight,
            "query": m.attention.query_proj.weight,
            "value": m.attention.value_proj.weight,
            "output": m.attention.output_proj.weight,
            "input": m.cell.weight_ih,
            "hidden": m.cell.weight_hh,
            "bias": m.cell.bias,
        },
        by_hand,
        # tree_at has made two layers of one, around one array.
        lambda m: [
            (m.embed, m.unembed),
            (m.attention.query_proj.weight, m.attention.key_proj.weight),
        ],
    )


def with_flax_struct() -> Foreign:
    """Records: one array in two of them, a number that is trained, and a name that isn't data."""
    struct = library("flax.struct")

    class Record:
        weight: Any
        gain: Any
        name: str = struct.field(pytree_node=False)

        def __call__(self, x: Any) -> Any:
            return self.gain * jnp.tanh(self.weight @ x)

    layer: Any = struct.dataclass(Record)

    def by_hand(w: Arrays, x: Any) -> Any:
        hidden = w["first"] * jnp.tanh(w["weight"] @ x)
        return jnp.sum((w["second"] * jnp.tanh(w["weight"] @ hidden) - x) ** 2)

    weight = random(0, 3, 3)
    return Foreign(
        {"up": layer(weight, 1.5, "up"), "down": layer(weight, 0.5, "down")},
        lambda model, x: jnp.sum((model["down"](model["up"](x)) - x) ** 2),
        (X,),
        lambda m: {
            "weight": m["up"].weight,
            "first": m["up"].gain,
            "second": m["down"].gain,
        },
        by_hand,
        lambda m: [(m["up"].weight, m["down"].weight)],
    )


def with_flax_nnx() -> Foreign:
    """Modules that are one at two paths, a variable that is, and a dropout that is switched off."""
    nnx = library("flax.nnx")

    class Model(nnx.Module):  # type: ignore[misc, name-defined]  # flax is Any here
        def __init__(self, rngs: Any) -> None:
            self.embed = nnx.Embed(8, 3, rngs=rngs)
            self.layer = nnx.Linear(3, 3, rngs=rngs)
            self.layers = nnx.List([self.layer, self.layer])
            self.dropout = nnx.Dropout(0.5, deterministic=True)
            self.scale = nnx.Param(jnp.full(3, 0.5))
            self.same_scale = self.scale
            self.unembed = self.embed

        def __call__(self, tokens: Any) -> Any:
            x = self.embed(tokens) * self.scale[...]
            for layer in self.layers:
                x = self.dropout(jnp.tanh(layer(x)))
            return self.unembed.attend(x * self.same_scale[...])

    def by_hand(w: Arrays, tokens: Any) -> Any:
        x = w["table"][tokens] * w["scale"]
        x = jnp.tanh(x @ w["kernel"] + w["bias"])
        x = jnp.tanh(x @ w["kernel"] + w["bias"])
        return jnp.sum((x * w["scale"] @ w["table"].T) ** 2)

    return Foreign(
        built(lambda key: Model(nnx.Rngs(key)), KEY),
        lambda model, tokens: jnp.sum(model(tokens) ** 2),
        (TOKENS,),
        lambda m: {
            "table": m.embed.embedding[...],
            "kernel": m.layer.kernel[...],
            "bias": m.layer.bias[...],
            "scale": m.scale[...],
        },
        by_hand,
        lambda m: [
            (m.embed, m.unembed),
            (m.layer, m.layers[0]),
            (m.layer, m.layers[1]),
            (m.scale, m.same_scale),
        ],
    )


def with_flax_linen() -> Foreign:
    """Two modules that were made apart; their parameters are tied by an assignment."""
    nn = library("flax.linen")

    class Encoder(nn.Module):  # type: ignore[misc, name-defined]  # flax is Any here
        def setup(self) -> None:
            self.embed, self.norm = nn.Embed(8, 3), nn.LayerNorm()

        def __call__(self, tokens: Any) -> Any:
            return self.norm(self.embed(tokens))

    class Decoder(nn.Module):  # type: ignore[misc, name-defined]  # flax is Any here
        def setup(self) -> None:
            self.embed, self.layer = nn.Embed(8, 3), nn.Dense(3)

        def __call__(self, x: Any) -> Any:
            return self.embed.attend(self.layer(x))

    encoder, decoder = Encoder(), Decoder()
    first = built(encoder.init, KEY, TOKENS)["params"]
    second = built(decoder.init, KEY, X)["params"]
    second["embed"] = first["embed"]

    def loss(model: Any, tokens: Any) -> Any:
        x = encoder.apply({"params": model["encoder"]}, tokens)
        return jnp.sum(decoder.apply({"params": model["decoder"]}, x) ** 2)

    def by_hand(w: Arrays, tokens: Any) -> Any:
        x = w["table"][tokens]
        x = x - x.mean(-1, keepdims=True)
        x = x / jnp.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)
        x = (x * w["scale"] + w["shift"]) @ w["kernel"] + w["bias"]
        return jnp.sum((x @ w["table"].T) ** 2)

    return Foreign(
        {"encoder": first, "decoder": second},
        loss,
        (TOKENS,),
        lambda m: {
            "table": m["encoder"]["embed"]["embedding"],
            "scale": m["encoder"]["norm"]["scale"],
            "shift": m["encoder"]["norm"]["bias"],
            "kernel": m["decoder"]["layer"]["kernel"],
            "bias": m["decoder"]["layer"]["bias"],
        },
        by_hand,
        lambda m: [(m["encoder"]["embed"], m["decoder"]["embed"])],
    )


def with_chex() -> Foreign:
    """Dataclasses: an actor and a critic over one trunk, with a number of steps beside them."""
    chex = library("chex")

    class Branch:
        trunk: Any
        head: Any

        def __call__(self, x: Any) -> Any:
            return self.head @ jnp.tanh(self.trunk["weight"] @ x + self.trunk["bias"])

    class Agent:
        actor: Any
        critic: Any
        steps: Any

    def loss(agent: Any, x: Any) -> Any:
        return -jax.nn.log_softmax(agent.actor(x))[0] + (agent.critic(x)[0] - 1.0) ** 2

    def by_hand(w: Arrays, x: Any) -> Any:
        hidden = jnp.tanh(w["weight"] @ x + w["bias"])
        again = jnp.tanh(w["weight"] @ x + w["bias"])
        value = (w["critic"] @ again)[0]
        return -jax.nn.log_softmax(w["actor"] @ hidden)[0] + (value - 1.0) ** 2

    branch, agent = chex.dataclass(Branch), chex.dataclass(Agent)
    trunk = {"weight": random(0, 4, 3), "bias": jnp.zeros(4)}
    return Foreign(
        agent(
            actor=branch(trunk=trunk, head=random(1, 2, 4)),
            critic=branch(trunk=trunk, head=random(2, 1, 4)),
            steps=jnp.int32(0),
        ),
        loss,
        (X,),
        lambda m: {**m.actor.trunk, "actor": m.actor.head, "critic": m.critic.head},
        by_hand,
        lambda m: [(m.actor.trunk, m.critic.trunk)],
    )


def with_diffrax() -> Foreign:
    """A differential equation whose field uses one layer twice, solved within the loss."""
    diffrax, eqx = library("diffrax"), library("equinox")

    class Field(eqx.Module):  # type: ignore[misc, name-defined]  # equinox is Any here
        inner: Any
        outer: Any
        rate: Any
        unit: float = 2.0

        def __call__(self, t: Any, y: Any, args: Any) -> Any:
            return self.outer(jnp.tanh(self.inner(y))) - self.rate / self.unit * y

    def loss(field: Any, y: Any) -> Any:
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(field), diffrax.Heun(), t0=0.0, t1=1.0, dt0=0.25, y0=y, max_steps=4
        )
        return jnp.sum(solution.ys[-1] ** 2)

    def by_hand(w: Arrays, y: Any) -> Any:
        def field(y: Any) -> Any:
            hidden = jnp.tanh(w["weight"] @ y + w["bias"])
            return w["weight"] @ hidden + w["bias"] - w["rate"] / 2 * y

        for _ in range(4):
            start = field(y)
            y = y + 0.125 * (start + field(y + 0.25 * start))
        return jnp.sum(y**2)

    layer = built(lambda key: eqx.nn.Linear(3, 3, key=key), KEY)
    return Foreign(
        Field(layer, layer, jnp.float32(0.5)),
        loss,
        (X,),
        lambda m: {"weight": m.inner.weight, "bias": m.inner.bias, "rate": m.rate},
        by_hand,
        lambda m: [(m.inner, m.outer)],
    )


def with_optimistix() -> Foreign:
    """A layer that is the fixed point of two cells over one weight; the gradient is implicit."""
    optimistix, eqx = library("optimistix"), library("equinox")

    class Cell(eqx.Module):  # type: ignore[misc, name-defined]  # equinox is Any here
        weight: Any
        bias: Any

        def __call__(self, z: Any) -> Any:
            return jnp.tanh(self.weight @ z + self.bias)

    def loss(cells: Any, x: Any) -> Any:
        solver = optimistix.Newton(rtol=1e-6, atol=1e-6)
        found = optimistix.root_find(
            lambda z, cells: cells[1](cells[0](z) + x) - z, solver, jnp.zeros(3), cells
        )
        return jnp.sum((found.value - x) ** 2)

    def by_hand(w: Arrays, x: Any) -> Any:
        def again(z: Any, _: None) -> tuple[Any, None]:
            y = jnp.tanh(w["weight"] @ z + w["first"]) + x
            return jnp.tanh(w["weight"] @ y + w["second"]), None

        z, _ = jax.lax.scan(again, jnp.zeros(3), length=30)
        return jnp.sum((z - x) ** 2)

    weight = 0.5 * random(0, 3, 3)
    return Foreign(
        [Cell(weight, jnp.zeros(3)), Cell(weight, jnp.full(3, 0.1))],
        loss,
        (X,),
        lambda m: {"weight": m[0].weight, "first": m[0].bias, "second": m[1].bias},
        by_hand,
        lambda m: [(m[0].weight, m[1].weight)],
    )


def with_plain_classes() -> Foreign:
    """Modules with a flag that is branched on, a width, and an `eps` that isn't trained."""

    class Module:
        def __init_subclass__(cls) -> None:
            pydag.register_module(cls)

    class Norm(Module):
        def __init__(self, size: int) -> None:
            self.scale, self.eps, self.is_centred = jnp.ones(size), 1e-3, True

        def __call__(self, x: Any) -> Any:
            x = x - x.mean() if self.is_centred else x
            return self.scale * x / jnp.sqrt((x**2).mean() + self.eps)

    class Autoencoder(Module):
        def __init__(self, size: int, depth: int) -> None:
            self.depth, self.norm, self.weight = depth, Norm(size), random(0, size, size)
            self.decoder = {"norm": self.norm, "weight": self.weight}

        def __call__(self, x: Any) -> Any:
            for _ in range(self.depth):
                x = jnp.tanh(self.weight @ self.norm(x))
            return self.decoder["weight"].T @ self.decoder["norm"](x)

    def by_hand(w: Arrays, x: Any) -> Any:
        def norm(x: Any) -> Any:
            x = x - x.mean()
            return w["scale"] * x / jnp.sqrt((x**2).mean() + 1e-3)

        y = jnp.tanh(w["weight"] @ norm(jnp.tanh(w["weight"] @ norm(x))))
        return jnp.sum((w["weight"].T @ norm(y) - x) ** 2)

    return Foreign(
        Autoencoder(3, 2),
        lambda model, x: jnp.sum((model(x) - x) ** 2),
        (X,),
        lambda m: {"scale": m.norm.scale, "weight": m.weight},
        by_hand,
        lambda m: [(m.norm, m.decoder["norm"]), (m.weight, m.decoder["weight"])],
    )


def with_a_physics_graph() -> Foreign:
    """Springs that hold the bodies between them and a material, all of them Python numbers."""

    class Record:
        def __init_subclass__(cls) -> None:
            pydag.register_fields(cls)

    class Body(Record):
        def __init__(self, x: float) -> None:
            self.x = x

    class Material(Record):
        def __init__(self, stiffness: float) -> None:
            self.stiffness = stiffness

    class Spring(Record):
        def __init__(self, one: Body, other: Body, material: Material) -> None:
            self.one, self.other, self.material = one, other, material

        def energy(self) -> Any:
            return self.material.stiffness * (self.other.x - self.one.x - 1.0) ** 2 / 2

    def by_hand(w: Arrays, gravity: Any) -> Any:
        a, b, c, k = w["a"], w["b"], w["c"], w["stiffness"]
        return k * (b - a - 1) ** 2 / 2 + k * (c - b - 1) ** 2 / 2 - gravity * c

    bodies, steel = [Body(0.0), Body(1.5), Body(2.25)], Material(2.0)
    springs = [Spring(bodies[0], bodies[1], steel), Spring(bodies[1], bodies[2], steel)]
    return Foreign(
        {"bodies": bodies, "springs": springs},
        lambda m, gravity: sum(s.energy() for s in m["springs"]) - gravity * m["bodies"][2].x,
        (0.5,),
        lambda m: {
            **{name: body.x for name, body in zip("abc", m["bodies"], strict=True)},
            "stiffness": m["springs"][0].material.stiffness,
        },
        by_hand,
        lambda m: [
            (m["bodies"][0], m["springs"][0].one),
            (m["bodies"][1], m["springs"][0].other),
            (m["bodies"][1], m["springs"][1].one),
            (m["bodies"][2], m["springs"][1].other),
            (m["springs"][0].material, m["springs"][1].material),
        ],
    )


def with_haiku() -> Foreign:
    """Parameters by the names of modules, of which two have the same."""
    hk = library("haiku")

    def forward(x: Any) -> Any:
        for name in ("first", "second"):
            x = jnp.tanh(hk.Linear(3, name=name)(x))
        return hk.Linear(3, name="last")(x)

    net = hk.without_apply_rng(hk.transform(forward))
    params = built(net.init, KEY, X)
    params["second"] = params["first"]

    def by_hand(w: Arrays, x: Any) -> Any:
        x = jnp.tanh(jnp.tanh(x @ w["w"] + w["b"]) @ w["w"] + w["b"])
        return jnp.sum((x @ w["last"] + w["bias"] - 1.0) ** 2)

    return Foreign(
        params,
        lambda params, x: jnp.sum((net.apply(params, x) - 1.0) ** 2),
        (X,),
        lambda m: {**m["first"], "last": m["last"]["w"], "bias": m["last"]["b"]},
        by_hand,
        lambda m: [(m["first"], m["second"])],
    )


BUILDERS = [
    with_equinox,
    with_flax_struct,
    with_flax_nnx,
    with_flax_linen,
    with_chex,
    with_diffrax,
    with_optimistix,
    with_plain_classes,
    with_a_physics_graph,
    with_haiku,
]

compiled: list[str] = []


def listen(event: str, duration_secs: float, **_: str | int) -> None:
    """Writes down what JAX does."""
    compiled.append(event)


jax.monitoring.register_event_duration_secs_listener(listen)


def assert_close(ours: Arrays, expected: Arrays) -> None:
    assert ours.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(ours[name], array, rtol=1e-3, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__.removeprefix("with_"))
def test_a_foreign_model_trains_as_plain_jax_by_hand(build: Callable[[], Foreign]) -> None:
    """Three steps: gradients and weights as by hand, ties kept, one trace, nothing compiled anew.

    Each weight, however many places it stands at, is one leaf of the gradient.
    """
    foreign = build()
    traces: list[None] = []

    def loss(model: Any, *given: Any) -> Any:
        traces.append(None)
        return foreign.loss(model, *given)

    descent = optax.sgd(0.05)
    optimizer = pj.optimizer(descent)
    value_and_gradient = quickly(pj.jit, pj.value_and_grad(loss))

    def advance(model: Any, gradient: Any, state: Any) -> Any:
        updates, state = optimizer.update(gradient, state, model)
        return pj.apply_updates(model, updates), state

    def by_hand(weights: Arrays, state: Any) -> Any:
        value, gradient = jax.value_and_grad(foreign.by_hand)(weights, *foreign.given)
        updates, state = descent.update(gradient, state, weights)
        return optax.apply_updates(weights, updates), state, value, gradient

    advance, by_hand = quickly(pj.jit, advance), quickly(jax.jit, by_hand)
    model, state = foreign.model, optimizer.init(foreign.model)
    weights = foreign.weights(model)
    state_by_hand = descent.init(weights)
    for step in range(3):
        weights, state_by_hand, expected, expected_gradient = by_hand(weights, state_by_hand)
        compiled.clear()
        value, gradient = value_and_gradient(model, *foreign.given)
        model, state = advance(model, gradient, state)
        if step > 0:
            assert [name for name in compiled if "backend_compile" in name] == []

        assert float(value) == pytest.approx(float(expected), rel=1e-4)
        assert_close(foreign.weights(gradient), expected_gradient)
        assert_close(foreign.weights(model), weights)
        for tree in (model, gradient):
            assert type(tree) is type(foreign.model)
            assert all(one is other for one, other in foreign.ties(tree))
        arrays = [x for x in pydag.dag_leaves(gradient) if isinstance(x, jax.Array)]
        assert len(arrays) == len(weights)
    assert len(traces) == 1
