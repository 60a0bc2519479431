# SPDX-License-Identifier: Apache-2.0
"""Compiled functions that are sent to other processes, as ray, dask and beam send them."""

from __future__ import annotations

import functools
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

cloudpickle = pytest.importorskip("cloudpickle")

import jax
import jax.numpy as jnp
from jax.experimental import serialize_executable
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from pydag import jaxinterop as pj


class Net(pj.Module):
    """A module with two weights that may be one object."""

    def __init__(self, weight: Any) -> None:
        self.a, self.b, self.scale = weight, weight, 2.0

    def __call__(self, x: Any) -> Any:
        return self.scale * (self.a + self.b) * x


def total(model: Any) -> Any:
    return jnp.sum(model["a"] * model["b"])


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


def test_closures_over_compiled_functions_arrive() -> None:
    """A task that closes over one; a derivative of one; a function that calls itself."""
    w = jnp.ones(3)
    given = {"a": w, "b": w}
    compiled = pj.jit(total)
    task: Callable[[], Any] = lambda: compiled(given)  # noqa: E731  # as tasks are written
    assert sent(task)() == 3.0
    assert sent(pj.grad(compiled))(given)["a"].tolist() == [2.0] * 3
    assert sent(pj.jit(pj.grad(total)))(given)["a"].tolist() == [2.0] * 3

    @functools.partial(pj.jit, static_argnames="depth")
    def down(x: Any, *, depth: int = 2) -> Any:
        return x if depth == 0 else 2 * down(x, depth=depth - 1)

    assert sent(down)(w).tolist() == [4.0] * 3


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


def test_an_executable_is_serialized() -> None:
    """That of a function of a `Dag` is, by JAX."""
    w = jnp.ones(3)
    given = {"a": w, "b": w}
    # Not from the cache of the tests: JAX can't serialize what it has read from there.
    config: Any = jax.config
    folder = config.jax_compilation_cache_dir
    try:
        config.update("jax_compilation_cache_dir", None)
        reset_cache()
        compiled = jax.jit(lambda dag: total(dag.tree)).lower(pj.Dag(given)).compile()
    finally:
        config.update("jax_compilation_cache_dir", folder)
        reset_cache()
    again = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
    assert again(pj.Dag(given)) == 3.0
