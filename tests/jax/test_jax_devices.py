# SPDX-License-Identifier: Apache-2.0
"""On many devices, in many processes and threads."""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import pytest
from parallel import in_parallel

import pydag
from pydag import jaxinterop as pj

HERE = Path(__file__).parent


def start(program: str, *arguments: str, flags: str = "") -> subprocess.Popen[str]:
    """Starts one of the programs that lie beside this file."""
    paths = [str(HERE.parent / "support"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        # Two processes would read what the other one is writing, and JAX would warn.
        "JAX_ENABLE_COMPILATION_CACHE": "false",
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONHASHSEED": "random",
        "XLA_FLAGS": " ".join(filter(None, [os.environ.get("XLA_FLAGS"), flags])),
    }
    return subprocess.Popen(
        [sys.executable, "-W", "error", str(HERE / program), *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def free_port() -> int:
    """A port that nobody is given by chance, as those are from which connections go out."""
    for port in range(20_000 + os.getpid() % 10_000, 32_000):
        with socket.socket() as tried, contextlib.suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port
    raise OSError("all ports from 20000 to 32000 are in use")


def output(process: subprocess.Popen[str]) -> str:
    """What a program printed; it must succeed."""
    try:
        out, errors = process.communicate(timeout=500)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    return out


def test_eight_devices() -> None:
    """A tied model gives the single device's result, and stays tied: `jit`, `shard_map`, files."""
    program = start("eight_devices.py", flags="--xla_force_host_platform_device_count=8")
    assert output(program).split() == [
        "named_shardings",
        "sharded_arguments",
        "shard_map",
        "shard_map_prefixes",
        "files",
    ]


def test_two_processes() -> None:
    """Each builds its own model; they agree on its spec and hash, and train it alike."""
    port = str(free_port())
    processes = [start("two_processes.py", port, str(number)) for number in range(2)]
    try:
        first, second = (output(process).splitlines()[-1] for process in processes)
    finally:
        for process in processes:
            process.kill()
    assert first == second
    assert "{'decoder': {'b': *, 'w': &0 *}, 'encoder': {'w': *0}, 'name': *}" in first


def test_refs_on_meshes() -> None:
    """A ref on a mesh is written, and keeps its sharding, over Auto axes and over Explicit ones."""
    program = start("refs_on_meshes.py", flags="--xla_force_host_platform_device_count=4")
    assert output(program).split() == ["Auto", "Explicit", "both"]


cloudpickle = pytest.importorskip("cloudpickle")


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


@pytest.fixture
def eager_switching() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("eager_switching")
def test_static_leaves_of_one_structure() -> None:
    """Each call gets the result for its own static leaf, whatever the others call with."""
    scale = pj.jit(lambda tree: [tree[0] * int(tree[1])])
    ones = jnp.ones(2)

    def work(i: int) -> None:
        for number in range(120):
            factor = (i + number) % 5
            assert scale([ones, str(factor)])[0].tolist() == [factor, factor]

    in_parallel(work)


@pytest.mark.usefixtures("eager_switching")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_callback_ends_its_thread() -> None:
    """A thread that ends itself while it is traced leaves nothing behind that others wait for."""

    def leave(_: Any) -> Any:
        sys.exit()

    @pj.jit
    def step(tree: Any) -> Any:
        return pydag.dag_map(leave if tree["ends"] == "now" else lambda x: x + 1, tree["x"])

    for ends in ("now", "later", "now", "later"):
        results: list[Any] = []

        def work(ends: str = ends, results: list[Any] = results) -> None:
            results.append(step({"x": [jnp.ones(())], "ends": ends}))

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
        assert not any(thread.is_alive() for thread in threads)
        assert [float(x[0]) for x in results] == ([] if ends == "now" else [2.0] * 3)


THREADS, ROUNDS = 4, 40


def tied() -> dict[str, Any]:
    """A weight at two places, and another one."""
    weight = jnp.ones(3)
    return {"a": weight, "b": [weight, jnp.zeros(2)]}


@pytest.mark.usefixtures("eager_switching")
def test_updates_by_each_thread() -> None:
    """One function with `update_argnums` writes into the objects of the thread that called it."""

    @pj.jit(update_argnums=0)
    def count(state: Any) -> None:
        state["calls"] = state["calls"] + 1

    def work(_: int) -> float:
        state = {"calls": jnp.zeros(())}
        for _ in range(ROUNDS):
            count(state)
        return float(state["calls"])

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(work, range(THREADS))) == [float(ROUNDS)] * THREADS
