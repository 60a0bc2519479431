# SPDX-License-Identifier: Apache-2.0
"""Every wrapper of `jaxinterop`: the one table that the tests and the pages follow.

`WRAPPERS` has those that may stand in each other, `APART` the others. Each is something that may be
put around a function of a DAG. What is put around `f`, a function from a tree to a tree like it, is
a function that gives what `f` gives, by way of the wrapper. `f` works element by element: some map
it over a leading axis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import pydag
from pydag import jaxinterop

Function = Callable[[Any], Any]
MESH = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
SPEC = jax.sharding.PartitionSpec("x")  # type: ignore[no-untyped-call]  # JAX gives it no types


def once(f: Function) -> Function:
    """By a while loop that runs once."""

    def body(carry: Any) -> Any:
        return {"i": carry["i"] + 1, "tree": f(carry["tree"])}

    return lambda tree: jaxinterop.while_loop(lambda c: c["i"] < 1, body, {"i": 0, "tree": tree})[
        "tree"
    ]


def total(tree: Any) -> Any:
    """A number that depends on all of a tree."""
    return sum((jnp.sum(x) for x in pydag.dag_leaves(tree) if isinstance(x, jax.Array)), 0.0)


def with_jvp(f: Function) -> Function:
    """With a rule of its own, which is what JAX would find."""
    g = jaxinterop.custom_jvp(f)
    g.defjvp(lambda primals, tangents: jaxinterop.jvp(f, primals, tangents))
    return g


def with_vjp(f: Function) -> Function:
    """The same, backward: the cotangents of all places of the result, added up."""

    def forward(tree: Any) -> Any:
        result, pullback = jaxinterop.vjp(f, tree)
        return result, (pullback, pydag.dag_structure(result))

    def backward(saved: Any, cotangent: Any) -> Any:
        pullback, structure = saved
        return pullback(pydag.retie(structure, cotangent, combine=jnp.add))

    g = jaxinterop.custom_vjp(f)
    g.defvjp(forward, backward)
    return g


def differentiated(transformation: Any, f: Function) -> Function:
    """What it passes on while it is differentiated."""

    def with_aux(tree: Any) -> Any:
        result = f(tree)
        return total(result), result

    return lambda tree: transformation(with_aux, has_aux=True)(tree)[1]


WRAPPERS: dict[str, Callable[[Function], Function]] = {
    "jit": jaxinterop.jit,
    "vmap": jaxinterop.vmap,
    "shard_map": lambda f: jaxinterop.shard_map(f, mesh=MESH, in_specs=SPEC, out_specs=SPEC),
    "checkpoint": jaxinterop.checkpoint,
    "grad": lambda f: differentiated(jaxinterop.grad, f),
    "value_and_grad": lambda f: differentiated(
        lambda g, has_aux: lambda tree: jaxinterop.value_and_grad(g, has_aux=has_aux)(tree)[0], f
    ),
    "hessian": lambda f: differentiated(jaxinterop.hessian, f),
    "jacfwd": lambda f: differentiated(jaxinterop.jacfwd, f),
    "jacrev": lambda f: differentiated(jaxinterop.jacrev, f),
    "vjp": lambda f: lambda tree: jaxinterop.vjp(f, tree)[0],
    "jvp": lambda f: lambda tree: jaxinterop.jvp(f, (tree,), (tree,))[0],
    "linearize": lambda f: lambda tree: jaxinterop.linearize(f, tree)[0],
    "custom_jvp": with_jvp,
    "custom_vjp": with_vjp,
    "scan": lambda f: lambda tree: jaxinterop.scan(lambda c, _: (f(c), None), tree, length=1)[0],
    "fori_loop": lambda f: lambda tree: jaxinterop.fori_loop(0, 1, lambda _, c: f(c), tree),
    "while_loop": once,
    "map": lambda f: lambda tree: jaxinterop.map(f, tree),
    "cond": lambda f: lambda tree: jaxinterop.cond(True, f, f, tree),
    "switch": lambda f: lambda tree: jaxinterop.switch(1, [f, f, f], tree),
    "keep_sharing": jaxinterop.keep_sharing(jax.named_call),
}

_BACKWARD = ("grad", "value_and_grad", "hessian", "jacrev", "vjp", "custom_vjp")

# What JAX itself can't do: a second map over the same devices, going back through a while loop, and
# going forward through a function whose rule goes back.
IMPOSSIBLE = {
    ("shard_map", "shard_map"),
    *((name, "custom_vjp") for name in ("hessian", "jacfwd", "jvp")),
    *((name, "while_loop") for name in _BACKWARD),
}


def with_values(shapes: Any, values: Any) -> Any:
    """What stands for a result: where it has shapes, the values; else what it has."""
    return pydag.dag_map(
        lambda s, x: x if isinstance(s, jax.ShapeDtypeStruct) else s, shapes, values
    )


APART: dict[str, Callable[[Function], Function]] = {
    "remat": jaxinterop.remat,
    "jacobian": lambda f: differentiated(jaxinterop.jacobian, f),
    "associative_scan": lambda f: lambda tree: f(jaxinterop.associative_scan(lambda a, b: a, tree)),
    "eval_shape": lambda f: lambda tree: with_values(jaxinterop.eval_shape(f, tree), f(tree)),
    "make_jaxpr": lambda f: (
        lambda tree: with_values(jaxinterop.make_jaxpr(f, return_shape=True)(tree)[1], f(tree))
    ),
}
