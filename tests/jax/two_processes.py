# SPDX-License-Identifier: Apache-2.0
"""A program for two processes, which tests/jax/test_jax_devices.py runs: one tied model on both.

Usage: two_processes.py PORT NUMBER
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax_models import DATA, assert_same, model, step, train

import pydag
from pydag import jaxinterop


def main(port: str, number: int) -> None:
    """Trains on data of which each process has a half, and prints what the other must print."""
    untyped: Any = jax
    untyped.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=2, process_id=number)
    assert (len(jax.devices()), len(jax.local_devices())) == (2, 1)
    alone = train(jaxinterop.jit(step), model(), DATA)

    auto = (jax.sharding.AxisType.Auto,)
    mesh = jax.make_mesh((2,), ("data",), axis_types=auto)
    spec: Any = jax.sharding.PartitionSpec
    whole, split = NamedSharding(mesh, spec()), NamedSharding(mesh, spec("data"))

    def put(x: Any) -> Any:
        if isinstance(x, str):
            return x
        return untyped.make_array_from_process_local_data(whole, np.asarray(x))

    placed = pydag.dag_map(put, model())  # each process builds a model of its own
    half = DATA[8 * number : 8 * (number + 1)]
    data = untyped.make_array_from_process_local_data(split, half)
    trained = train(jaxinterop.jit(step, out_shardings=whole), placed, data)
    assert_same(trained, alone)

    same_everywhere(number)
    saved(number, placed, data)
    structure = pydag.dag_structure(trained[0])
    assert structure == pydag.dag_structure(model())
    weight = np.asarray(trained[0]["encoder"]["w"])
    print(hash(structure), repr(structure), weight.tobytes().hex())
    untyped.distributed.shutdown()


def saved(number: int, whole: Any, divided: Any) -> None:
    """Process 0 alone writes what all have; what each has a part of is refused by all."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        try:
            jaxinterop.save(path, {"w": whole, "data": [divided]})
        except TypeError as error:
            said = str(error)
        assert said.startswith("tree['data'][0] is divided over several processes")
        assert "orbax" in said
        jaxinterop.save(path, whole)
        assert path.exists() == (number == 0)
        local = {"mine": np.full(2, number, "int32")}
        jaxinterop.save(path, local)
        assert jaxinterop.load(path)["mine"].tolist() == [number] * 2


def same_everywhere(number: int) -> None:
    """What is alike passes; each kind of difference raises on both processes, and says where."""
    w = np.ones(2)
    check = jaxinterop.assert_same_everywhere
    check({"w": w * number, "name": "net", "tags": frozenset("abc"), "act": jax.nn.gelu})
    other = np.ones(2) if number else w
    order = ["a", "b"] if number else ["b", "a"]
    for tree, words in (
        ({"w": [w, other]}, ["at it['w']", "shared object 0"]),
        ({"w": w, "rate": f"text {number}"}, ["it['rate']", "process 0: str 'text 0'"]),
        ({"w": np.ones(2 + number)}, ["float64[2]", "process 1: float64[3]"]),
        (dict.fromkeys(order, w), ["in the order str 'b', str 'a'"]),
    ):
        said = ""
        try:
            check(tree, "it")
        except RuntimeError as error:
            said = str(error)
        assert [word for word in words if word not in said] == [], said
    check({"w": w})


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
