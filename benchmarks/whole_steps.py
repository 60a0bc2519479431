# SPDX-License-Identifier: Apache-2.0
"""Rows of the table of cliffs: whole training steps, beside plain JAX on a flat container.

A run is what a loop carries from step to step: a model, the state of its optimizer and a key. The
floor has the distinct arrays alone, in a flat container, and does the same with them. Everything is
donated. The functions hardly compute, so that what is measured is what a step costs the host.
"""

import importlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import layers
from calls import Stepping
from peers import Peers
from rows import Row, at_most
from timing import Effort, Outcome, Work, contest

import pydag

FLOOR = "jax.jit, a flat container"
SIZES = (20, 96, 400)  # arrays of the model: with Adam's two moments and a key 62, 290 and 1,202
ARRAYS = 144  # of the model that is trained

Carry = Callable[[Any], Any]  # a compiled step, from one run to the next


def rows(peers: Peers, effort: Effort) -> list[Row]:
    """Runs carried through a call, and the step of a tied model."""
    if "jax" not in peers:
        return []
    try:
        optax: Any = importlib.import_module("optax")
    except ImportError:
        return []
    jax, interop = peers["jax"], importlib.import_module("pydag.jaxinterop")
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # a call ends with its results
    found = []
    kinds = _kinds(peers, interop)
    for size in SIZES[: 1 if effort.quick else None]:
        leaves = 3 * size + 2
        for kind, make in kinds.items():
            name = f"a run of {leaves:,} arrays, {kind}, carried"
            found.append(at_most(name, 1.1, partial(_carried, jax, interop, optax, make, size)))
        if "flax" in peers:
            name = f"a run of {leaves:,} arrays, NNX, update_argnums"
            found.append(at_most(name, 1.4, partial(_in_place, peers, interop, optax, size)))
    name = f"a step of Adam on {ARRAYS} tied arrays"
    return [*found, at_most(name, 1.05, partial(_trained, jax, interop, optax))]


def _kinds(peers: Peers, interop: Any) -> dict[str, layers.Layered]:
    class ModuleLayer(interop.Module):  # type: ignore[misc]  # found at run time, so without types
        def __init__(self, weight: Any, bias: Any, scale: Any, name: str) -> None:
            self.weight, self.bias, self.scale, self.name = weight, bias, scale, name

    class ModuleModel(interop.Module):  # type: ignore[misc]  # as above
        def __init__(self, layers: list[Any]) -> None:
            self.layers = layers

    @pydag.register_module
    class OwnLayer:
        def __init__(self, weight: Any, bias: Any, scale: Any, name: str) -> None:
            self.weight, self.bias, self.scale, self.name = weight, bias, scale, name

    def modules(layer: Any, model: Any) -> layers.Layered:
        return lambda count, array: model(
            [layer(array(), array(), array(), "layer") for _ in range(count)]
        )

    found: dict[str, layers.Layered] = {
        "dicts": layers.of_dicts,
        "pj.Module": modules(ModuleLayer, ModuleModel),
        "register_module": modules(OwnLayer, list),
    }
    if "equinox" in peers:
        found["equinox"] = layers.of_equinox_modules(peers)
    return found


def _patient(effort: Effort) -> Effort:
    return replace(effort, patience=1e3, turn=max(0.02, effort.turn))


def _sized(jax: Any, make: layers.Layered, size: int) -> Any:
    """A model of that many arrays: layers of three, and the rest beside them."""
    array = partial(jax.numpy.ones, 4)
    return [make(size // 3, array), *(array() for _ in range(size % 3))]


def _carried(jax: Any, interop: Any, optax: Any, make: Any, size: int, effort: Effort) -> Outcome:
    def scaled(x: Any) -> Any:
        return x if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x * 1

    optimizer = interop.optimizer(optax.adam(1e-3))
    model = _sized(jax, make, size)
    run = (model, optimizer.init(model), jax.random.key(0))
    ours = interop.jit(partial(interop.tree.map, scaled), donate_argnums=0)
    flat = tuple(jax.numpy.array(x) for x in interop.tree.leaves(run))
    theirs = jax.jit(lambda run: tuple(scaled(x) for x in run), donate_argnums=0)
    return contest(
        {
            "pydag": Work(Stepping(ours, run).step),
            FLOOR: Work(Stepping(theirs, flat).step),
        },
        _patient(effort),
    )


def _in_place(peers: Peers, interop: Any, optax: Any, size: int, effort: Effort) -> Outcome:
    jax, nnx = peers["jax"], peers["flax"]
    array = partial(jax.numpy.ones, 4)
    model = layers.of_nnx_modules(peers)(size // 3, array)
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)

    def scale(*nodes: Any) -> None:
        state = nnx.state(nodes)
        nnx.update(nodes, jax.tree.map(lambda x: x * 1, state))

    ours = interop.jit(scale, update_argnums=(0, 1), donate_argnums=(0, 1))
    flat = tuple(jax.numpy.array(x) for x in jax.tree.leaves(nnx.state((model, optimizer))))
    theirs = jax.jit(lambda run: tuple(x * 1 for x in run), donate_argnums=0)
    return contest(
        {
            "pydag": Work(ours, model, optimizer),
            FLOOR: Work(Stepping(theirs, flat).step),
        },
        _patient(effort),
    )


def _trained(jax: Any, interop: Any, optax: Any, effort: Effort) -> Outcome:
    """A tied model, trained: by pydag as it is, by JAX as a dict of its distinct arrays."""
    model = layers.of_dicts(ARRAYS // 3, partial(jax.numpy.ones, 4))
    model["head"] = model["layers"][0]["weight"]

    def loss_of(arrays: Any) -> Any:
        return sum((x * x).sum() for x in arrays)

    def step_with(value_and_grad: Any, optimizer: Any, apply: Any, loss: Any) -> Carry:
        def step(run: Any) -> Any:
            model, state, _ = run
            value, gradient = value_and_grad(loss)(model)
            updates, state = optimizer.update(gradient, state, model)
            return apply(model, updates), state, value

        return step

    ours, plain = interop.optimizer(optax.adam(1e-3)), optax.adam(1e-3)
    flat = {f"{i}": jax.numpy.array(x) for i, x in enumerate(pydag.dag_leaves(model))}
    loss = jax.numpy.zeros(())
    with_ties = step_with(
        interop.value_and_grad,
        ours,
        interop.apply_updates,
        lambda model: loss_of(pydag.dag_leaves(model)) + model["head"].sum(),
    )
    without = step_with(
        jax.value_and_grad,
        plain,
        optax.apply_updates,
        lambda model: loss_of(model.values()) + model["0"].sum(),
    )
    compiled = interop.jit(with_ties, donate_argnums=0), jax.jit(without, donate_argnums=0)
    return contest(
        {
            "pydag": Work(Stepping(compiled[0], (model, ours.init(model), loss)).step),
            FLOOR: Work(
                Stepping(compiled[1], (flat, plain.init(flat), jax.numpy.array(loss))).step
            ),
        },
        _patient(effort),
    )
