# SPDX-License-Identifier: Apache-2.0
"""On many devices, in many processes and threads."""

from __future__ import annotations

import contextlib
import os
import pathlib
import pickle
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax_models import tied_under
from parallel import in_parallel

import pydag
from pydag import jaxinterop
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
    """The function has its options, has compiled nothing, and keeps ties."""
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


tied = tied_under("a", "b", lambda: jnp.ones((2, 2)))


def both_changed(params: Any, state: Any, x: Any = 1.0) -> Any:
    """Uses everything once."""
    return pydag.dag_map(lambda p: p - x, params), pydag.dag_map(lambda s: s + x, state)


def test_a_tied_weight_is_donated() -> None:
    """The weight's buffer is deleted, and the result is right and tied, step after step."""
    jitted = jaxinterop.jit(both_changed, donate_argnums=(0, 1))
    params, state = tied(), [jnp.zeros(3)]
    for _ in range(3):
        given = params["a"], state[0]
        params, state = jitted(params, state)
        assert all(array.is_deleted() for array in given)
        assert params["a"] is params["b"]
    assert params["a"].tolist() == [[-2.0, -2.0], [-2.0, -2.0]]
    assert state[0].tolist() == [3.0, 3.0, 3.0]


@pytest.mark.parametrize(
    "options",
    [{"donate_argnums": 1}, {"donate_argnames": "state"}, {"donate_argnums": (-2,)}],
)
def test_only_what_is_meant_is_donated(options: Any) -> None:
    """Arguments are named by number, by name, and counted from the end."""
    params, state, x = tied(), [jnp.zeros(3)], jnp.float32(1)
    jaxinterop.jit(both_changed, **options)(params, state, x)
    assert state[0].is_deleted()
    assert not params["a"].is_deleted()
    assert not x.is_deleted()


def test_one_array_in_two_donated_arguments() -> None:
    """The array is donated once."""
    w = jnp.ones((2, 2))
    params, state = jaxinterop.jit(both_changed, donate_argnums=(0, 1))([w], [w])
    assert w.is_deleted()
    assert params[0].tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert state[0].tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_what_is_not_traced_may_be_in_both() -> None:
    """A static leaf or an empty container isn't donated, so it may stand anywhere."""
    config, empty = "net", ()
    shared: list[Any] = []
    params: list[Any] = [config, empty, shared, jnp.ones(2)]
    state: list[Any] = [config, empty, shared, jnp.ones(2)]
    f = jaxinterop.jit(lambda p, s: (p[3] + 1, s[3] * 2), donate_argnums=0)
    assert f(params, state)[1].tolist() == [2.0, 2.0]
    assert params[3].is_deleted()
    assert not state[3].is_deleted()


class Net(pj.Module):
    def __init__(self, table: Any) -> None:
        self.table, self.w, self.count = table, jnp.ones(3), jnp.int32(0)
        self.frozen = jnp.full(3, 2.0)


def step(net: Any, x: Any) -> Any:
    net.w = net.w + x
    net.count = net.count + 1
    return net.table.sum() + net.w.sum()


def new_table() -> Any:
    return jnp.arange(12.0).reshape(4, 3) + 0.0


def test_what_is_not_written_stays_alive() -> None:
    """A frozen leaf of a donated argument comes out in its own buffer, and nothing is left over."""
    net = Net(new_table())
    buffers = net.table.unsafe_buffer_pointer(), net.frozen.unsafe_buffer_pointer()
    f = pj.jit(step, update_argnums=0, donate_argnums=0)
    for _ in range(3):
        old = net.w
        f(net, 1.0)
        assert old.is_deleted()
    assert (net.w.tolist(), int(net.count)) == ([4.0, 4.0, 4.0], 3)
    assert net.frozen.tolist() == [2.0, 2.0, 2.0]
    assert net.table.tolist() == new_table().tolist()
    after = net.table.unsafe_buffer_pointer(), net.frozen.unsafe_buffer_pointer()
    assert after == buffers


def test_numbers_are_not_donated() -> None:
    """A number of a dict that isn't written stays what it is."""

    def run(tree: Any) -> None:
        tree["w"] = tree["w"] * tree["rate"]

    tree: dict[str, Any] = {"w": jnp.ones(2), "rate": 0.5, "epoch": 3}
    for _ in range(2):
        pj.jit(run, update_argnums=0, donate_argnums=0)(tree)
    assert (tree["w"].tolist(), tree["rate"], tree["epoch"]) == ([0.25, 0.25], 0.5, 3)
    assert (type(tree["rate"]), type(tree["epoch"])) == (float, int)


X = jnp.linspace(-1.0, 1.0, 6).reshape(2, 3)


class Noisy(pj.Module):
    """Has all that has no moment: a key, an integer, configuration; and a tie."""

    def __init__(self) -> None:
        self.w = 2 * jnp.eye(3)
        self.u, self.b = self.w, jnp.zeros(3)
        self.key, self.calls, self.rate = jax.random.key(0), jnp.int32(0), 0.25

    def __call__(self, x: Any) -> Any:
        self.key, key = jax.random.split(self.key)
        self.calls = self.calls + 1
        hidden = x @ self.w + self.b
        kept = jax.random.bernoulli(key, 1 - self.rate, hidden.shape)
        return jnp.where(kept, hidden, 0.0) @ self.u.T


def nnx_net() -> Any:
    """A model of NNX with statistics, a stream for dropout, and a tie."""
    nnx = pytest.importorskip("flax.nnx")

    class Noisy(nnx.Module):  # type: ignore[misc, name-defined]  # a base class without types
        def __init__(self, rngs: Any) -> None:
            # A bias before a BatchNorm has a gradient of rounding errors; Adam makes steps of them.
            self.first = nnx.Linear(3, 3, use_bias=False, rngs=rngs)
            self.norm = nnx.BatchNorm(3, rngs=rngs)
            self.drop, self.last = nnx.Dropout(0.25, rngs=rngs), nnx.Linear(3, 3, rngs=rngs)
            self.last.kernel = self.first.kernel

        def __call__(self, x: Any) -> Any:
            return self.last(self.drop(self.norm(self.first(x))))

    return Noisy(nnx.Rngs(0))


TRANSFORMATIONS = {
    "adam": lambda: optax.adam(1e-2),
    "masked": lambda: optax.masked(
        optax.adam(1e-2), lambda m: jax.tree.map(lambda x: x.ndim > 1, m)
    ),
    "MultiSteps": lambda: optax.MultiSteps(optax.adam(1e-2), every_k_schedule=2),
}


def a_step(opt: Any, **selected: Any) -> Callable[[Any, Any], Any]:
    """The step of docs/state.md: it writes into the run that it is given."""

    def loss(model: Any, x: Any) -> Any:
        return ((model(x) - x) ** 2).mean()

    def step(run: Any, x: Any) -> Any:
        graded = pj.value_and_grad(loss, update_argnums=0, **selected)
        value, gradient = graded(run["model"], x)
        updates, run["state"] = opt.update(gradient, run["state"], run["model"])
        pydag.dag_update(run["model"], pj.apply_updates(run["model"], updates))
        return value

    return step


def equal(one: Any, other: Any) -> None:
    """Whether two runs have one structure, and the same numbers."""
    assert pj.tree.structure(one) == pj.tree.structure(other)
    for x, y in zip(pj.tree.leaves(one), pj.tree.leaves(other), strict=True):
        if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
            x, y = jax.random.key_data(x), jax.random.key_data(y)
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


def wrt_of(make: Any) -> Any:
    return ["*.w", "*.b"] if make is Noisy else pytest.importorskip("flax.nnx").Param


@pytest.mark.parametrize("make", [Noisy, nnx_net])
@pytest.mark.parametrize(
    ("name", "is_selected"), [*((name, False) for name in TRANSFORMATIONS), ("adam", True)]
)
def test_a_run_in_place_is_the_run_that_returns_its_values(
    name: str, make: Callable[[], Any], is_selected: bool
) -> None:
    """The recipe of docs/state.md compiles once, and gives the numbers of the functional step."""
    selected = {"wrt": wrt_of(make)} if is_selected else {}
    opt = pj.optimizer(TRANSFORMATIONS[name](), **selected)
    step = a_step(opt, **selected)

    def functional(run: Any, x: Any) -> Any:
        step(run, x)
        return run

    model = make()
    there: Any = {"model": model, "state": opt.init(model)}
    returned = pj.tree.copy(there)
    in_place: Any = pj.jit(step, update_argnums=0)
    by_values = pj.jit(functional)
    for _ in range(5):
        in_place(there, X)
        returned = by_values(returned, X)
    assert in_place._cache_size() == 1
    assert there["model"] is model
    equal(there, returned)


@pytest.mark.parametrize("make", [Noisy, nnx_net])
@pytest.mark.parametrize("name", ["adam", "masked", "MultiSteps"])
def test_a_loaded_run_is_written_into_one_that_is_there(
    name: str, make: Callable[[], Any], tmp_path: pathlib.Path
) -> None:
    """`dag_update(run, loaded)` takes an optimizer's state, and the run goes on as it was saved."""
    opt = pj.optimizer(TRANSFORMATIONS[name]())
    step = pj.jit(a_step(opt), update_argnums=0)
    model = make()
    run: Any = {"model": model, "state": opt.init(model)}
    step(run, X)
    pj.save(tmp_path / "run.safetensors", run, structure=False)
    saved = pj.tree.copy(run)
    step(run, X)
    state = run["state"]
    assert pydag.dag_update(run, pj.load(tmp_path / "run.safetensors", run)) is run
    assert run["model"] is model
    assert run["state"] is state
    equal(run, saved)
    step(run, X)
    step(saved, X)
    equal(run, saved)
