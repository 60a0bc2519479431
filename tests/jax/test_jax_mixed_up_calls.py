# SPDX-License-Identifier: Apache-2.0
"""Threads that call one jitted function at the same time.

Without the GIL they run at once; with it they take turns within what isn't compiled.
PYDAG_STRESS_SECONDS says how long the stress test lasts.
"""

import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import pytest
from parallel import checked, in_parallel, outcomes
from pydag.jaxinterop.compiled.key import Keys
from pydag.jaxinterop.compiled.static_arguments import StaticArguments
from pydag.jaxinterop.prefixes.arguments import Chosen

import pydag
import pydag._core as _core
import pydag.jaxinterop as pj

CALLS_JAX = "extra_results.py"  # of the files of pydag

SECONDS = float(os.environ.get("PYDAG_STRESS_SECONDS", "2"))


@pytest.fixture(autouse=True)
def _eager_switching() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


class Settings:
    """A constant to a compiled function; what it holds is looked at again at each call."""

    def __init__(self, factor: float) -> None:
        self.factor = factor


def test_static_leaves_of_one_structure() -> None:
    """Each call gets the result for its own static leaf, whatever the others call with."""
    scale = pj.jit(lambda tree: [tree[0] * int(tree[1])])
    ones = jnp.ones(2)

    def work(i: int) -> None:
        for number in range(120):
            factor = (i + number) % 5
            assert scale([ones, str(factor)])[0].tolist() == [factor, factor]

    in_parallel(work)


def test_jax_compares_no_keys_by_python_code() -> None:
    """While it looks a key up, code of Python's would let other threads change its tables."""

    class Config:
        calls: ClassVar[list[str]] = []

        def __init__(self, name: str) -> None:
            self.name = name

        def __eq__(self, other: object) -> bool:
            frames = [Path(frame.filename).name for frame in traceback.extract_stack()]
            Config.calls += [file for file in frames if file == CALLS_JAX]
            return isinstance(other, Config) and self.name == other.name

        def __hash__(self) -> int:
            return 1  # so that all keys have one hash

    scale = pj.jit(lambda tree: [tree[0] * int(tree[1].name)])
    ones = jnp.ones(2)
    for number in (1, 2, 3, 1, 2, 3):
        assert scale([ones, Config(str(number))])[0].tolist() == [number] * 2
    assert Config.calls == []


def test_equal_keys_are_one_object() -> None:
    """Whichever thread makes it first; so JAX compiles once for what is equal."""
    for number in range(100):
        keys = Keys()

        def key(_: int, keys: Keys = keys, number: int = number) -> Any:
            return keys(("a", number))

        found = in_parallel(key)
        assert len(set(map(id, found))) == 1


def test_a_constant_that_changes() -> None:
    """A change of a constant object counts for the next call, whatever other threads compile."""
    scale = pj.jit(lambda tree: tree[0] * tree[1].factor)
    ones = jnp.ones(2)

    def work(i: int) -> None:
        own = Settings(0.0)
        for number in range(60):
            own.factor = float((i + number) % 4)
            for _ in range(2):
                assert scale([ones, own]).tolist() == [own.factor] * 2

    in_parallel(work)


def test_a_function_that_is_forgotten() -> None:
    """While one thread has all that was compiled forgotten, the others' calls are right."""
    add = pj.jit(lambda tree: pydag.dag_map(lambda x: x + 1, tree))
    zero = jnp.zeros(())

    def work(i: int) -> None:
        for number in range(40):
            if i == 0:
                add.clear_cache()
                continue
            w = {"a": [zero] * (1 + number % 3), "b": zero}
            assert {float(x) for x in pydag.dag_leaves(add(w))} == {1.0}

    checked(outcomes(work, 4))


def test_refs_that_are_written() -> None:
    """Threads call a function that writes into a ref, each with one of its own."""

    @pj.jit
    def count(ref: Any, step: Any) -> Any:
        ref[...] += step
        return step

    refs = [jax.new_ref(jnp.zeros(())) for _ in range(4)]

    def work(i: int) -> None:
        for _ in range(25):
            count(refs[i], jnp.ones(()))

    checked(outcomes(work, 4))
    assert [float(ref[...]) for ref in refs] == [25.0] * 4


def test_equal_static_tuples_are_one_leaf() -> None:
    """Threads that pass equal tuples for the first time get one leaf, which the core finds."""
    for number in range(200):
        plans = _core.call_plans(print, "", "all", None)
        static = StaticArguments(Chosen((0,), ()), plans)

        def wrapped(_: int, number: int = number, static: StaticArguments = static) -> Any:
            return static.wrap((("a", 10**6 + number),), {})[0][0]

        found = in_parallel(wrapped)
        assert len(set(map(id, found))) == 1
        assert _core.static_leaf(plans, ("a", 10**6 + number)) is found[0]


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


@pytest.mark.measures
def test_stress() -> None:
    """Threads with few structures, static leaves and changing constants, as long as is asked."""

    def body(tree: Any, name: str = "0", *, scale: Any = 1) -> Any:
        return {"sum": sum(tree["x"]) * int(name) * tree["c"].factor * scale, "x": tree["x"]}

    step = pj.jit(body, static_argnames=("name",))
    common = [jnp.float32(i) for i in range(4)]
    shared = {"x": common[:2], "c": Settings(1.0)}
    ends = time.monotonic() + SECONDS

    def work(i: int) -> int:
        own, number = Settings(1.0), 0
        while number == 0 or time.monotonic() < ends:
            number += 1
            if i == 0 and number % 20 == 0:
                step.clear_cache() if number % 40 else pydag.clear_caches()
            length, name = 1 + (i + number) % 3, str(number % 4)
            own.factor = float(number % 3)
            tree = {"x": common[:length], "c": own}
            out = step(tree, name=name, scale=jnp.float32(2))
            assert float(out["sum"]) == sum(range(length)) * int(name) * own.factor * 2
            assert len(out["x"]) == length
            assert float(step(shared, "3")["sum"]) == 3.0
            own.factor = own.factor + 1.0
            assert float(step(tree, name="1")["sum"]) == sum(range(length)) * own.factor
        return number

    assert min(in_parallel(work)) > 0
