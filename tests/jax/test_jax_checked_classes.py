# SPDX-License-Identifier: Apache-2.0
"""Classes that check what they hold whenever they are built: no wrapper gives them marks of ours.

What a wrapper has to know about each leaf (an axis, a sharding, a selection, a label) it knows by
the position in the structure. Here each class takes arrays, tracers, `jax.ShapeDtypeStruct`, refs
and None, and raises for anything else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from wrappers import MESH, SPEC

import pydag.jaxinterop as pj
from pydag.registry.functions import register_pydag_node

ALLOWED_NOW = [jax.Array, np.ndarray, jax.ShapeDtypeStruct, jax.Ref, type(None)]


def check(*held: Any) -> None:
    """Raises for what is no array."""
    for x in held:
        if not isinstance(x, tuple(ALLOWED_NOW)):
            raise TypeError(f"this class holds arrays, got {type(x).__name__}")


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Checked:
    """A dataclass of JAX's registry with a `__post_init__` that checks."""

    a: Any
    b: Any

    def __post_init__(self) -> None:
        check(self.a, self.b)


class ByFunction:
    """A class whose unflatten function checks, as `__init__` does."""

    def __init__(self, a: Any, b: Any) -> None:
        check(a, b)
        self.a, self.b = a, b


register_pydag_node(ByFunction, lambda x: ((x.a, x.b), None), lambda _, held: ByFunction(*held))


class ByFields(pj.Module):
    """A module that refuses, as its attributes are set, what it can't hold."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b

    def __setattr__(self, name: str, value: Any) -> None:
        check(value)
        super().__setattr__(name, value)


CLASSES = [Checked, ByFunction, ByFields]
every_class = pytest.mark.parametrize("cls", CLASSES)
Model = dict[str, Any]
PREFIX = {"m": True, "l": False, "x": True}
PLACED = jax.sharding.NamedSharding(MESH, SPEC)


def model_of(cls: Any) -> Model:
    """A model with two such objects, the first of which is tied."""
    w = jnp.ones(2)
    return {"m": cls(w, w), "l": [cls(jnp.ones(2), jnp.ones(2))], "x": jnp.ones(2)}


def number(model: Model) -> Any:
    """A function of all of it."""
    return (model["m"].a * model["x"] * model["m"].b * model["l"][0].a).sum()


def same(model: Model) -> Model:
    """The model that it is given, with another array in it."""
    return {**model, "x": 2 * model["x"]}


def pulled(function: Any, *args: Any, **options: Any) -> Any:
    """What goes back through a pullback."""
    value, pullback = pj.vjp(function, *args, **options)
    return pullback(value)


def custom_vjp(model: Model) -> Any:
    """With a rule that gives None for the whole model, and one that gives what it kept."""
    for backward in (lambda kept, _: (None,), lambda kept, _: (kept,)):
        function = pj.custom_vjp(number)
        function.defvjp(lambda m: (number(m), m), backward)
        pj.grad(function)(model)


def custom_jvp(model: Model) -> Any:
    """With a rule of its own."""
    function = pj.custom_jvp(same)
    function.defjvp(lambda p, t: (same(*p), t[0]))
    return pj.jvp(function, (model,), (model,))


def stages(model: Model) -> Any:
    """What was compiled is called, and says what comes out."""
    compiled = pj.jit(same).lower(model).compile()
    return compiled(model), compiled.out_info


WRAPPERS: dict[str, Callable[[Model], Any]] = {
    "jit": lambda m: pj.jit(same)(m),
    "jit, donated": lambda m: pj.jit(same, donate_argnums=0)(m),
    "jit, in_shardings": lambda m: pj.jit(
        same, in_shardings=({"m": PLACED, "l": None, "x": PLACED},)
    )(m),
    "jit, out_shardings": lambda m: pj.jit(
        same, out_shardings={"m": PLACED, "l": None, "x": PLACED}
    )(m),
    "jit, update_argnums": lambda m: pj.jit(
        lambda m: m.__setitem__("x", 2 * m["x"]), update_argnums=0
    )(m),
    "stages": stages,
    "vmap, in_axes": lambda m: pj.vmap(lambda m: m["m"].a, in_axes=({"m": 0, "l": None, "x": 0},))(
        m
    ),
    "vmap, out_axes": lambda m: pj.vmap(
        lambda m, x: {"m": m["m"], "x": x}, in_axes=(None, 0), out_axes={"m": None, "x": 0}
    )(m, jnp.ones(2)),
    "grad": lambda m: pj.grad(number)(m),
    "grad, wrt a prefix": lambda m: pj.grad(number, wrt=PREFIX)(m),
    "grad, wrt a pattern": lambda m: pj.grad(number, wrt="*x*")(m),
    "grad, wrt a predicate": lambda m: pj.grad(number, wrt=lambda x: x.ndim == 1)(m),
    "value_and_grad, update_argnums": lambda m: pj.value_and_grad(
        lambda m: m.__setitem__("x", 2 * m["x"]) or number(m), update_argnums=0
    )(m),
    "jacrev": lambda m: pj.jacrev(number, wrt="*x*")(m),
    "jacfwd": lambda m: pj.jacfwd(number)(m),
    "hessian": lambda m: pj.hessian(lambda x, m: number({**m, "x": x}))(jnp.ones(2), m),
    "vjp": lambda m: pulled(same, m),
    "jvp": lambda m: pj.jvp(same, (m,), (m,)),
    "linearize": lambda m: pj.linearize(same, m)[1](m),
    "custom_vjp": custom_vjp,
    "custom_jvp": custom_jvp,
    "scan": lambda m: pj.scan(lambda c, x: (c + 1, same(x)), 0, m, reverse=True),
    "fori_loop": lambda m: pj.fori_loop(0, 2, lambda _, c: same(c), m),
    "while_loop": lambda m: pj.while_loop(lambda c: c["x"].sum() < 3, same, m),
    "cond": lambda m: pj.cond(True, same, lambda m: m, m),
    "switch": lambda m: pj.switch(1, [same, same], m),
    "map": lambda m: pj.map(same, m),
    "associative_scan": lambda m: pj.associative_scan(lambda a, b: same(b), m),
    "checkpoint": lambda m: pj.grad(pj.checkpoint(number, prevent_cse=(PREFIX,)))(m),
    "shard_map": lambda m: pj.shard_map(
        same, mesh=MESH, in_specs=({"m": SPEC, "l": SPEC, "x": SPEC},), out_specs=SPEC
    )(m),
    "eval_shape": lambda m: pj.eval_shape(same, pj.eval_shape(same, m)),
    "make_jaxpr": lambda m: pj.make_jaxpr(same, return_shape=True)(m),
    "keep_sharing": lambda m: pj.keep_sharing(jax.named_call)(same)(m),
    "a Dag in jax.jit": lambda m: jax.jit(lambda dag: dag)(pj.Dag(m)).tree,
    "tree.map": lambda m: pj.tree.map(lambda x, y: x + y, m, m),
}


@every_class
@pytest.mark.parametrize("name", WRAPPERS)
@pytest.mark.filterwarnings("ignore::pydag.jaxinterop.LostTieWarning")
def test_a_wrapper_gives_a_class_what_it_may_hold(cls: Any, name: str) -> None:
    """No wrapper, and none of its options, fails where a class holds nothing but arrays."""
    WRAPPERS[name](model_of(cls))


@every_class
@pytest.mark.parametrize("wrt", [None, PREFIX, "*x*", lambda x: x.ndim == 1])
def test_an_optimizer_gives_a_class_what_it_may_hold(cls: Any, wrt: Any) -> None:
    """Nor does a step, eager or compiled."""
    optimizer = pj.optimizer(optax.adam(0.1), wrt=wrt)

    def step(model: Any, state: Any) -> Any:
        updates, state = optimizer.update(pj.grad(number)(model), state, model)
        return pj.apply_updates(model, updates), state

    model = model_of(cls)
    state = optimizer.init(model)
    for run in (step, pj.jit(step)):
        new, _ = run(model, state)
        assert type(new["m"]) is cls
        assert new["m"].a is new["m"].b
        assert (new["x"] != model["x"]).all()


@every_class
def test_where_a_class_refuses_none(cls: Any) -> None:
    """A gradient goes past a constructor where the fields are known; else an error says why."""
    model = {"whole": cls(jnp.ones(2), jnp.ones(2)), "part": cls(jnp.ones(2), jnp.arange(2))}
    differentiate = pj.grad(lambda m: (m["whole"].a * m["whole"].b * m["part"].a).sum())
    ALLOWED_NOW.remove(type(None))
    try:
        if cls is ByFunction:
            with pytest.raises(TypeError, match="this class holds arrays, got NoneType") as caught:
                differentiate(model)
            assert "pydag.register_fields" in "".join(caught.value.__notes__)
            return
        gradient = differentiate(model)
    finally:
        ALLOWED_NOW.append(type(None))
    assert gradient["part"].b is None
    assert gradient["whole"].a.tolist() == [1.0, 1.0]
