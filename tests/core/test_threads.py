# SPDX-License-Identifier: Apache-2.0
"""Threads that use, register and collect at the same time."""

import faulthandler
import gc
import itertools
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import optree
import pytest
from operations import OPERATIONS
from parallel import THREADS, checked, in_parallel, outcomes
from registering import Box

import pydag


@pytest.fixture(autouse=True)
def _eager_switching() -> Iterator[None]:
    """Threads take turns as often as they can, and a deadlock is reported, not waited for."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    faulthandler.dump_traceback_later(300, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
    sys.setswitchinterval(before)


class Key:
    """Comparing, hashing and printing it runs Python code, so that threads switch."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self.name == other.name

    def __lt__(self, other: "Key") -> bool:
        return self.name < other.name

    def __repr__(self) -> str:
        return f"Key({self.name})"


def sample() -> Any:
    """A DAG whose walk runs Python code of every sort."""
    w = [0.5, object()]
    return {Key("b"): [w, Box(w, (w,))], Key("a"): Box(w, {"z": 1, "y": w})}


@pytest.mark.parametrize("name", OPERATIONS)
def test_one_tree_and_one_spec_in_all_threads(name: str) -> None:
    """Every operation gives every thread the same result."""
    tree = sample()
    expected = repr(pydag.dag_structure(OPERATIONS["copy"](tree)))
    in_parallel(lambda _: [OPERATIONS[name](tree) for _ in range(20)])
    assert repr(pydag.dag_structure(tree)) == expected


def test_one_spec_in_all_threads() -> None:
    """Threads may use one spec at the same time, each with its own memo."""
    leaves, spec = pydag.dag_flatten(sample())

    def work(i: int) -> None:
        for _ in range(50):
            tree = pydag.dag_unflatten(spec, [i] * len(leaves))
            assert set(pydag.dag_leaves(tree)) == {i}
            assert pickle.loads(pickle.dumps(spec)) == spec
            assert (hash(spec), len(repr(spec))) == (expected_hash, expected_length)

    expected_hash, expected_length = hash(spec), len(repr(spec))
    in_parallel(work)


def test_registering_while_others_flatten() -> None:
    """Classes may come and go in some threads while others flatten; nobody waits for ever."""
    tree = sample()

    def work(i: int) -> int:
        total = 0
        for _ in range(100):
            if i % 2:
                cls: Any = type("Fleeting", (), {})
                pydag.register_fields(cls)
                node = cls()
                node.x = [i]
                total += sum(pydag.dag_leaves([node, node]))
                pydag.unregister_pydag_node(cls)
            else:
                total += len(pydag.dag_leaves(tree))
        return total

    assert in_parallel(work) == [300, 100, 300, 300, 300, 500, 300, 700]


def test_one_class_registered_by_many() -> None:
    """Of several threads that register one class, one succeeds and the others get an error."""

    class Wanted:
        pass

    def work(_: int) -> bool:
        try:
            pydag.register_fields(Wanted)
        except ValueError:
            return False
        return True

    assert sorted(in_parallel(work)) == [False] * (THREADS - 1) + [True]


def test_fields_looked_up_by_many() -> None:
    """A class whose fields are first looked up in several threads at once has them once."""

    class Meta(type):
        def __getattribute__(cls, name: str) -> Any:
            time.sleep(0)  # other threads' turn
            return super().__getattribute__(name)

    for _ in range(20):

        @pydag.register_fields(meta_fields=("m",))
        class Layer(metaclass=Meta):
            __slots__ = ("m", "w")
            m: Any
            w: Any

        layer = Layer()
        layer.w, layer.m = [0.5], "meta"
        specs = in_parallel(lambda _, layer=layer: pydag.dag_structure([layer, layer]))  # type: ignore[misc]  # a default
        assert {repr(spec) for spec in specs} == {"PyDagSpec([&0 Layer(w=[*], m='meta'), *0])"}
        assert all(spec == specs[0] for spec in specs)


def test_caches_emptied_while_others_flatten() -> None:
    """Emptying the caches and collecting garbage disturbs nobody."""
    tree = sample()

    def work(i: int) -> None:
        for _ in range(50):
            if i == 0:
                pydag.clear_caches()
                gc.collect(0)
            else:
                assert pydag.dag_leaves(pydag.dag_copy(tree))[0] == 0.5

    in_parallel(work)


def test_optree_registering_while_others_flatten() -> None:
    """optree's registry may change in one thread while others walk."""
    tree = sample()

    def work(i: int) -> None:
        for _ in range(50):
            if i == 0:
                cls: Any = type("Fleeting", (), {})
                optree.register_pytree_node(
                    cls, lambda _: ((1,), None), lambda *_: [], namespace="threads"
                )
                assert pydag.dag_leaves(cls(), namespace="threads") == [1]
                optree.unregister_pytree_node(cls, namespace="threads")
            else:
                assert len(pydag.dag_leaves(tree, namespace="threads")) == 3

    in_parallel(work)


def test_state_set_by_many() -> None:
    """Of several threads that restore one spec, one succeeds and the others get an error."""
    state = pydag.dag_structure(sample()).__getstate__()
    for _ in range(20):
        spec = pydag.PyDagSpec.__new__(pydag.PyDagSpec)

        def work(_: int, spec: Any = spec) -> bool:
            try:
                spec.__setstate__(state)
            except TypeError:
                return False
            return True

        assert in_parallel(work).count(True) == 1
        assert len(spec.unflatten(range(spec.num_leaves))) == 2


def test_tree_that_others_change() -> None:
    """A list or a dict that other threads change gives some state of it, or RuntimeError."""
    tree: Any = {"a": [0.5] * 50, "b": {i: [i] for i in range(20)}}

    def work(i: int) -> None:
        for n in range(200):
            if i == 0:
                tree["a"][:] = [0.5] * (n % 50)
            elif i == 1:
                tree["b"][n % 40] = [n]
                tree["b"].pop((n + 7) % 40, None)
            else:
                leaves, spec = pydag.dag_flatten(tree, is_leaf=lambda x: False)
                assert len(leaves) == spec.num_leaves
                pydag.dag_unflatten(spec, leaves)

    in_parallel(work)


@pytest.mark.parametrize("count", [2, 3])
def test_iterators_that_ask_one_another(count: int) -> None:
    """Of threads that would wait for one another for ever one gets an error, and all go on."""
    gate, told = threading.Barrier(count), list[str]()

    def is_leaf_of(number: int) -> Callable[[Any], bool]:
        def is_leaf(x: Any) -> bool:
            if isinstance(x, list):
                gate.wait(60)
                try:
                    taken.extend(itertools.islice(iterators[(number + 1) % count], 1))
                except RuntimeError as error:
                    told.append(str(error))
            return False

        return is_leaf

    taken: list[Any] = []
    iterators = [pydag.dag_iter([i, -i], is_leaf=is_leaf_of(i)) for i in range(count)]
    rest = checked(outcomes(lambda i: list(iterators[i]), count))
    leaves = [leaf for leaves in (taken, *rest) for leaf in leaves]
    assert sorted(leaves) == sorted(leaf for i in range(count) for leaf in (i, -i))
    assert len(told) == 1
    assert told[0].startswith("PyTreeIter is already iterating: ")


def test_waiting_for_an_iterator_is_interrupted() -> None:
    """A thread that waits for another one's callback hears of signals meanwhile."""
    inside, done = threading.Event(), threading.Event()

    def is_leaf(_: Any) -> bool:
        inside.set()
        done.wait(60)
        return False

    iterator = pydag.dag_iter([1, 2], is_leaf=is_leaf)
    thread = threading.Thread(target=lambda: next(iterator))
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        thread.start()
        inside.wait(60)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            next(iterator)
    finally:
        signal.signal(signal.SIGALRM, before)
        done.set()
        thread.join()
    assert list(iterator) == [2]
