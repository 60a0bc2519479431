# SPDX-License-Identifier: Apache-2.0
"""A program for four devices: refs that lie on a mesh are written in every wrapper."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from pydag import jaxinterop as pj

P: Any = PartitionSpec


def add_one(ref: Any) -> None:
    ref[...] = ref[...] + 1


def in_scan(ref: Any) -> None:
    def body(carry: Any, _: Any) -> Any:
        add_one(ref)
        return carry, None

    pj.scan(body, 0.0, None, length=1)


def in_loop(ref: Any) -> None:
    def body(_: Any, carried: Any) -> Any:
        add_one(carried[0])
        return carried

    pj.fori_loop(0, 1, body, (ref,))


def in_derivative(ref: Any) -> None:
    def loss(x: Any, ref: Any) -> Any:
        add_one(ref)
        return 2.0 * x

    pj.grad(loss)(1.0, ref)


def under(mesh: Any, spec: Any) -> dict[str, Any]:
    mapped = pj.shard_map(add_one, mesh=mesh, in_specs=spec, out_specs=P())
    return {
        "jit": add_one,
        "scan": in_scan,
        "fori_loop": in_loop,
        "cond": lambda ref: pj.cond(True, add_one, lambda _: None, ref),
        "checkpoint": lambda ref: pj.checkpoint(add_one)(ref),
        "grad": in_derivative,
        "shard_map": lambda ref: mapped(ref),
    }


def check(mesh: Any, spec: Any) -> None:
    sharding = NamedSharding(mesh, spec)
    for name, function in under(mesh, spec).items():
        ref = jax.new_ref(jax.device_put(jnp.zeros((4, 4)), sharding))
        step = pj.jit(lambda r, function=function: function(r))
        for i in range(1, 4):
            step(ref)
            assert np.asarray(ref[...]).tolist() == np.full((4, 4), i).tolist(), name
            assert ref[...].sharding.is_equivalent_to(sharding, 2), (name, ref[...].sharding)


auto, explicit = AxisType.Auto, AxisType.Explicit
for kind in (auto, explicit):
    check(jax.make_mesh((4,), ("d",), axis_types=(kind,)), P("d"))
    print(kind.name)
check(jax.make_mesh((2, 2), ("d", "e"), axis_types=(explicit, explicit)), P(("d", "e"), None))
print("both")
