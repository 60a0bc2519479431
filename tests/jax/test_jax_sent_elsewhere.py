# SPDX-License-Identifier: Apache-2.0
"""Compiled functions that are sent to other processes, as ray, dask and beam send them."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import pytest

cloudpickle = pytest.importorskip("cloudpickle")

import jax.numpy as jnp

from pydag import jaxinterop as pj


def sent(value: Any) -> Any:
    """What arrives."""
    return pickle.loads(cloudpickle.dumps(value))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"donate_argnums": 1},
        {"static": "*.n"},
        {"out_shardings": None, "identity": "nodes"},
    ],
    ids=str,
)
def test_a_compiled_function_is_fresh_where_it_arrives(options: dict[str, Any]) -> None:
    """It has its options, has compiled nothing, and keeps ties."""
    offset = 1.0
    w = jnp.ones(3)

    def step(model: Any, more: Any = None) -> Any:
        assert options.get("identity") == "nodes" or model["a"] is model["b"]
        return {"a": model["a"] + offset, "n": model["n"]}

    given = {"a": w, "b": w, "n": 4}
    if "static" in options:
        options = {**options, "static": "['n']"}
    compiled = pj.jit(step, **options)
    expected = compiled(given, jnp.ones(2))
    arrived = sent(compiled)
    assert arrived._cache_size() == 0
    found = arrived(given, jnp.ones(2))
    assert found["a"].tolist() == expected["a"].tolist() == [2.0] * 3
    assert type(found["n"]) is type(expected["n"])
    assert arrived._cache_size() == 1
    assert (
        arrived.lower(given, jnp.ones(2)).compile()(given, jnp.ones(2))["a"].tolist() == [2.0] * 3
    )
    assert arrived.eval_shape(given, jnp.ones(2))["a"].shape == (3,)
    arrived.clear_cache()


PROGRAM = """\
import pickle, sys
f = pickle.load(sys.stdin.buffer)
import jax.numpy as jnp
w = jnp.ones(3)
print(float(f({"a": w, "b": w})), f._cache_size())
"""


def test_another_process_runs_what_arrives() -> None:
    """A process that has imported nothing of pydag yet."""
    scale = 5.0
    data = cloudpickle.dumps(pj.jit(lambda model: scale * jnp.sum(model["a"])))
    found = subprocess.run([sys.executable, "-c", PROGRAM], input=data, capture_output=True)
    assert found.stdout.decode().split() == ["15.0", "1"], found.stderr.decode()
