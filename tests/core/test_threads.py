# SPDX-License-Identifier: Apache-2.0
"""Threads that use, register and collect at the same time."""

import faulthandler
import itertools
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import optree
import pytest
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


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="signals of POSIX")
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
