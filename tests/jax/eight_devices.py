# SPDX-License-Identifier: Apache-2.0
"""A program for eight devices, which tests/jax/test_jax_devices.py runs: a tied model on them."""

from __future__ import annotations

import functools
import pathlib
import tempfile
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax_models import DATA, assert_same, loss, model, step, train

import pydag
from pydag import jaxinterop

P: Any = jax.sharding.PartitionSpec


def mesh_of(**axes: int) -> Any:
    """All eight devices."""
    auto = (jax.sharding.AxisType.Auto,) * len(axes)
    return jax.make_mesh(tuple(axes.values()), tuple(axes), axis_types=auto)


def message_of(call: Any) -> str:
    """What the SharingError of a call says."""
    try:
        call()
    except pydag.SharingError as error:
        return str(error)
    raise AssertionError("one array was treated in two ways")


def named_shardings(expected: Any) -> None:
    """The weight is split one way and the data the other."""
    mesh = mesh_of(data=4, model=2)
    split, whole = NamedSharding(mesh, P(None, "model")), NamedSharding(mesh, P())
    data = NamedSharding(mesh, P("data"))
    shardings = {"encoder": split, "decoder": {"w": split, "b": whole}, "name": "tied"}
    jitted = jaxinterop.jit(
        step, in_shardings=(shardings, data), out_shardings=(shardings, whole), donate_argnums=0
    )
    trained = train(jitted, model(), DATA)
    assert_same(trained, expected)
    weight = trained[0]["encoder"]["w"]
    assert weight.sharding.is_equivalent_to(split, 2)
    assert len(weight.sharding.device_set) == 8
    wrong = {**shardings, "encoder": whole}
    text = message_of(lambda: jaxinterop.jit(step, in_shardings=(wrong, data))(model(), DATA))
    assert "args[0]['decoder']['w'] is given" in text
    assert "args[0]['encoder']['w'], the same object, is given" in text


def sharded_arguments(expected: Any) -> None:
    """Shardings come with the arrays; there is one array for one weight."""
    sharding = NamedSharding(mesh_of(model=8), P("model"))
    placed = pydag.dag_map(
        lambda x: x if isinstance(x, str) else jax.device_put(x, sharding), model()
    )
    assert placed["encoder"]["w"] is placed["decoder"]["w"]
    assert_same(train(jaxinterop.jit(step), placed, DATA), expected)


def shard_map(expected: Any) -> None:
    """Each device has its part of the data; the loss is averaged, and the tie is kept."""
    lax: Any = jax.lax

    @functools.partial(
        jaxinterop.shard_map,
        mesh=mesh_of(data=8),
        in_specs=(P(), P("data")),
        out_specs=(P(), P()),
    )
    def step_of_part(model: Any, x: Any) -> Any:
        assert x.shape == (2, 8)
        return step(model, x, lambda model, x: lax.pmean(loss(model, x), "data"))

    assert_same(train(jaxinterop.jit(step_of_part), model(), DATA), expected)
    assert_same(train(step_of_part, model(), DATA), expected)


def shard_map_prefixes(_: Any) -> None:
    """Specs as deep prefixes, in and out; one object has one spec."""
    mesh, w = mesh_of(x=8), jnp.arange(16.0)
    tree = {"a": w, "b": w, "c": jnp.ones(3)}
    specs = {"a": P("x"), "b": P("x"), "c": P()}

    def double(tree: Any) -> Any:
        return pydag.dag_map(lambda x: 2 * x, tree)

    def mapped(in_specs: Any, out_specs: Any) -> Any:
        return jaxinterop.shard_map(double, mesh=mesh, in_specs=in_specs, out_specs=out_specs)(tree)

    out = mapped((specs,), specs)
    assert out["a"] is out["b"]
    assert out["a"].tolist() == (2 * w).tolist()
    assert out["c"].tolist() == [2.0] * 3
    wrong = {**specs, "b": P()}
    for root, call in (
        ("args[0]", lambda: mapped((wrong,), specs)),
        ("result", lambda: mapped((specs,), wrong)),
    ):
        text = message_of(call)
        assert f"{root}['a'] is given {P('x')}" in text
        assert f"{root}['b'], the same object, is given {P()}" in text


def files(expected: Any) -> None:
    """Each device reads its part of a saved array; the model trains on as it would have."""
    split = NamedSharding(mesh_of(model=8), P("model"))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "model.safetensors")
        jaxinterop.save(path, model())
        loaded = jaxinterop.load(path, shardings=split)
    weight = loaded["encoder"]["w"]
    assert weight is loaded["decoder"]["w"]
    assert weight.sharding.is_equivalent_to(split, 2)
    parts = [shard.data.shape for shard in weight.addressable_shards]
    assert parts == [(weight.shape[0] // 8, weight.shape[1])] * 8
    assert_same(train(jaxinterop.jit(step), loaded, DATA), expected)


if __name__ == "__main__":
    assert len(jax.devices()) == 8
    single = train(jaxinterop.jit(step), model(), DATA)
    checks = named_shardings, sharded_arguments, shard_map, shard_map_prefixes, files
    for check in checks:
        check(single)
        print(check.__name__)
