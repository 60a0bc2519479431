# SPDX-License-Identifier: Apache-2.0
"""What a user writes, right and wrong; type checkers read it, nobody runs it.

A wrong line ends in the codes of mypy and pyright, in this order; all the other lines are right.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, assert_type

import jax
import jax.numpy as jnp
import optax

import pydag
from pydag import jaxinterop as pj


@pydag.register_fields
@dataclass
class Model:
    first: jax.Array
    second: jax.Array

    def double(self) -> "Model":
        return pydag.dag_map(lambda x: 2 * x, self)


class Pair(NamedTuple):
    a: jax.Array
    b: jax.Array


def loss(model: Model, x: jax.Array, *, scale: float = 1.0) -> jax.Array:
    return scale * jnp.sum(model.first * x + model.second)


def loss_and_count(model: Model, x: jax.Array) -> tuple[jax.Array, int]:
    return loss(model, x), 1


def square(x: jax.Array) -> jax.Array:
    return x**2


def optimizers(model: Model, x: jax.Array) -> Model:
    opt = pj.optimizer(optax.sgd(0.1), wrt="first")
    state = opt.init(model)
    value, gradient = pj.value_and_grad(loss)(model, x)
    updates, state = opt.update(gradient, state, model)
    updates, state = opt.update(gradient, state, model, value=value)
    updates, state = opt.update(gradient, state)
    assert_type(updates, Model)
    opt.update(gradient, model)  # error: [arg-type] [reportArgumentType]
    opt.update(gradient)  # error: [call-arg] [reportCallIssue]
    opt.init()  # error: [call-arg] [reportCallIssue]
    opt.step(gradient)  # error: [attr-defined] [reportAttributeAccessIssue]
    model = pj.apply_updates(model, updates)
    assert_type(pj.view(model, depth=2, static=int), pydag.View)
    return assert_type(pj.apply_updates(model, updates), Model)


def gradients(model: Model, x: jax.Array) -> None:
    assert_type(pj.grad(loss)(model, x, scale=2.0), Model)
    assert_type(pj.grad(loss, allow_int=True)(model, x), Model)
    assert_type(pj.grad(loss_and_count, has_aux=True)(model, x), tuple[Model, int])
    assert_type(pj.value_and_grad(loss)(model, x), tuple[jax.Array, Model])
    both = pj.value_and_grad(loss_and_count, has_aux=True)(model, x)
    assert_type(both, tuple[tuple[jax.Array, int], Model])
    assert_type(pj.grad(loss, 1)(model, x), Any)
    assert_type(pj.grad(loss, argnums=(0, 1))(model, x), Any)
    assert_type(pj.grad(lambda p: p["a"])({"a": x})["a"], Any)
    assert_type(pj.jit(pj.grad(loss))(model, x, scale=2.0), Model)
    pj.jit(pj.value_and_grad(lambda p, x: p["a"] * x))({"a": x}, x)
    pj.grad(loss)(model)  # error: [call-arg] [reportCallIssue]
    pj.grad(loss)(model, x, scael=2.0)  # error: [call-arg] [reportCallIssue]
    pj.grad(loss)(x, model)  # error: [arg-type] [reportArgumentType]
    pj.jit(pj.grad(loss))(model, model)  # error: [arg-type] [reportArgumentType]
    pj.grad(loss)(model, x)[0]  # error: [index] [reportIndexIssue]


def compiled(model: Model, x: jax.Array) -> None:
    step = pj.jit(optimizers, donate_argnums=0)
    assert_type(step(model, x), Model)
    assert_type(pj.vmap(square, in_axes=0)(x), jax.Array)
    assert_type(pj.checkpoint(loss)(model, x), jax.Array)
    step.lower(model, x).compile()
    step(x, model)  # error: [arg-type] [reportArgumentType]
    step(model)  # error: [call-arg] [reportCallIssue]
    pj.vmap(square)(model)  # error: [arg-type] [reportArgumentType]
    pydag.jit(square)  # error: [attr-defined] [reportAttributeAccessIssue]


def maps(model: Model, config: dict[str, int], pair: Pair) -> None:
    assert_type(pydag.dag_map(lambda x: 2 * x, model), Model)
    assert_type(pydag.dag_map_with_path(lambda path, x: x, model, where="first"), Model)
    assert_type(pydag.dag_map_with_accessor(lambda accessor, x: x, model), Model)
    assert_type(pydag.dag_map_(print, model), Model)
    assert_type(pj.tree.map(jnp.add, model, model), Model)
    assert_type(pydag.dag_map(str, config), Any)
    assert_type(pydag.dag_map(str, [1, 2]), Any)
    assert_type(pydag.dag_map(str, pair), Any)
    assert_type(pydag.dag_map(str, 7), Any)
    pydag.dag_map(config, str)  # error: [call-overload] [reportCallIssue] [reportArgumentType]
    pydag.dag_map_(model, print)  # error: [arg-type] [reportArgumentType]
    pydag.dag_map(str, model, were="first")  # error: [call-overload] [reportCallIssue]


def parts(model: Model) -> Model:
    chosen, rest = pydag.dag_partition("first", model)
    assert_type(chosen, Model)
    assert_type(rest, Model)
    pydag.dag_partition(model)  # error: [call-arg] [reportCallIssue]
    return pydag.tie(model, ("first",), ("second",))


def structures(model: Model) -> None:
    leaves, spec = pydag.dag_flatten(model)
    assert_type(spec, pydag.PyDagSpec)
    assert_type(spec.unflatten(leaves), Any)
    assert_type(pydag.dag_unflatten(spec, leaves), Any)
    assert_type(spec.paths(), list[tuple[Any, ...]])
    assert_type(spec.child(0), pydag.PyDagSpec)
    assert_type(spec <= spec, bool)
    assert_type(spec.num_leaves, int)
    pydag.dag_unflatten(leaves, spec)  # error: [arg-type] [reportArgumentType]
    spec.unflatten(3)  # error: [arg-type] [reportArgumentType]
    spec.unflatten()  # error: [call-arg] [reportCallIssue]
    spec.child("first")  # error: [arg-type] [reportArgumentType]
    spec.num_leaves()  # error: [operator] [reportCallIssue]
    spec.leaves  # error: [attr-defined] [reportAttributeAccessIssue]


def dags(model: Model) -> None:
    dag = pj.Dag(model)
    assert_type(dag.tree, Model)
    dag.first  # error: [attr-defined] [reportAttributeAccessIssue]
    dag["first"]  # error: [index] [reportIndexIssue]


def ties(model: Model) -> None:
    pydag.tie(model, [("first",), ("second",)])  # error: [arg-type] [reportArgumentType]
    pydag.tie(model, "first", ("second",))  # error: [arg-type] [reportArgumentType]
    pydag.untie(model, ("first",)).first.sum()
