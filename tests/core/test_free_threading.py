# SPDX-License-Identifier: Apache-2.0
"""Threads that run at the same time: on trees that change, on iterators, and at the end of threads.

They hold with the GIL, too, where threads only take turns. PYDAG_STRESS_SECONDS says how long the
stress test lasts; `make test-threads` lets it last a minute.
"""

import collections
import os
import pickle
import random
import subprocess
import sys
import sysconfig
import textwrap
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from parallel import checked, outcomes
from registering import Box

import pydag

IS_FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
SECONDS = float(os.environ.get("PYDAG_STRESS_SECONDS", "2"))
# Before, CPython's own OrderedDict isn't safe where several threads change it.
HAS_SAFE_ORDERED_DICT = not IS_FREE_THREADED or sys.version_info >= (3, 14)


def run_program(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-W", "ignore", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


class Leaf:
    """An object with an identity, of which each is new: what is freed too early shows."""

    def __init__(self, name: Any = None) -> None:
        self.name = name


@pydag.register_fields
@dataclass
class Fields:
    a: Any
    b: Any


@pydag.register_fields
class Slots:
    __slots__ = ("a", "b")

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


@pydag.register_fields
class Open:
    """All attributes are fields, as many as there are."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


def sample() -> Any:
    """A tree with every sort of container, and shared objects in it."""
    shared = [Leaf("s"), Leaf("t")]
    return {
        "list": [shared, Leaf(), (Leaf(), None)],
        "deque": collections.deque([Leaf(), shared], maxlen=7),
        "ordered": collections.OrderedDict(x=Leaf(), y=[Leaf()]),
        "default": collections.defaultdict(list, x=Leaf()),
        "many": {f"key{i}": Leaf() for i in range(18)},
        "fields": Fields(Leaf(), [shared]),
        "slots": Slots(Leaf(), (Leaf(), shared)),
        "open": Open(x=Leaf(), y={"z": Leaf()}),
        "box": Box(Leaf(), shared),
    }


NUM_LEAVES = 32


@pytest.mark.skipif(not IS_FREE_THREADED, reason="a build with the GIL")
def test_the_gil_stays_off() -> None:
    """Importing pydag doesn't turn the GIL on."""
    done = run_program("import sys, pydag; print(sys._is_gil_enabled())")
    assert (done.stdout, done.returncode) == ("False\n", 0), done.stderr


def test_one_tree_and_one_spec() -> None:
    """Threads use one tree and one spec; all get the same leaves, hash, paths and text."""
    tree = sample()
    leaves, spec = pydag.dag_flatten(tree)
    del spec

    def work(_: int) -> tuple[Any, ...]:
        for _ in range(100):
            found, spec = pydag.dag_flatten(tree)
            assert all(x is y for x, y in zip(found, leaves, strict=True))
            built = pydag.dag_unflatten(shared_spec, leaves)
            assert len(built["many"]) == 18
            assert built["list"][0] is built["box"].children[1]
            pydag.dag_map(lambda x, y: x, tree, built)
        return hash(shared_spec), repr(shared_spec), shared_spec.paths(), spec == shared_spec

    shared_spec = pickle.loads(
        pickle.dumps(pydag.dag_structure(tree))
    )  # nothing is known of it yet
    results = checked(outcomes(work))
    assert all(result == results[0] for result in results)
    assert results[0][3]


def change_leaves(tree: Any, number: int) -> None:
    """Changes no structure."""
    tree["list"][1] = Leaf()
    tree["many"][f"key{number % 18}"] = Leaf()
    tree["fields"].a = Leaf()
    tree["slots"].a = Leaf()
    tree["slots"].b = (Leaf(), tree["slots"].b[1])
    tree["open"].x = Leaf()
    tree["default"]["x"] = Leaf()


def toggle(mapping: Any, number: int, name: str = "more") -> None:
    """Adds an item when the number is odd, and takes it away again when it is even."""
    if number % 2:
        mapping[name] = Leaf()
    else:
        del mapping[name]


def push(items: Any, number: int) -> None:
    """The same with an item at the end."""
    items.append(Leaf()) if number % 2 else items.pop()


# Each but the last adds one leaf when the number is odd, and takes it away when it is even.
CHANGES: dict[str, Callable[[Any, int], None]] = {
    "list": lambda tree, number: push(tree["list"], number),
    "deque": lambda tree, number: push(tree["deque"], number),
    "dict": lambda t, number: toggle(t["many"], number, f"more{(number - 1) // 2 % 8}"),
    "child": lambda tree, number: tree.update(
        many={f"key{i}": Leaf() for i in range(19 if number % 2 else 18)}
    ),
    "attributes": lambda tree, number: toggle(vars(tree["open"]), number),
    "leaves": change_leaves,
}
if HAS_SAFE_ORDERED_DICT:
    CHANGES["OrderedDict"] = lambda tree, number: toggle(tree["ordered"], number)


def read(tree: Any, way: int, counts: set[int]) -> None:
    """Uses a tree that changes. What comes is a tree that it was, or an error about the change."""
    try:
        if way == 0:
            leaves, spec = pydag.dag_flatten(tree)
            assert len(spec) == len(leaves)
            assert pydag.dag_leaves(spec.unflatten(leaves)) == leaves
        elif way == 1:
            leaves = pydag.dag_leaves(pydag.dag_map(lambda leaf: leaf, tree))
        elif way == 2:
            leaves = pydag.dag_leaves(pydag.dag_copy(tree))
        elif way == 3:
            leaves = list(pydag.dag_iter(tree))
        elif way == 4:
            leaves = pydag.dag_leaves(tree, is_leaf=lambda x: False)
        else:
            leaves = pydag.dag_structure(tree).flatten_up_to(tree)
    except (RuntimeError, KeyError, ValueError) as error:
        # CPython's own of an OrderedDict, or that the tree isn't any more what its structure says.
        if way != 5 and not any(text in str(error) for text in ("mutated", "changed", "more")):
            raise
        return
    assert all(type(leaf) is Leaf for leaf in leaves)
    assert len(leaves) in counts, (way, len(leaves))


@pytest.mark.parametrize("change", CHANGES)
def test_a_tree_that_another_thread_changes(change: str) -> None:
    """The leaves are those of a moment: with the one that comes and goes, or without it."""
    tree = sample()
    counts = {NUM_LEAVES} if change == "leaves" else {NUM_LEAVES, NUM_LEAVES + 1}
    ends = time.monotonic() + min(SECONDS, 2) / 4

    def work(i: int) -> None:
        number = 0
        while time.monotonic() < ends or number % 2:
            number += 1
            if i == 0:
                CHANGES[change](tree, number)
            else:
                read(tree, (i + number) % 6, counts)

    checked(outcomes(work, 4))
    assert len(pydag.dag_leaves(tree)) == NUM_LEAVES


def test_fields_are_resolved_once() -> None:
    """Threads that meet a class for the first time find the same fields of it."""
    for _ in range(30):

        @pydag.register_fields
        @dataclass
        class Fresh:
            x: Any
            y: Any

        first = Fresh([Leaf()], Leaf())

        def structure(_: int, tree: Fresh = first) -> Any:
            return pydag.dag_structure(tree)

        specs = checked(outcomes(structure))
        assert all(spec == specs[0] and hash(spec) == hash(specs[0]) for spec in specs)
        assert specs[0].paths() == [("x", 0), ("y",)]


def test_a_shared_iterator_gives_each_leaf_once() -> None:
    """Threads that share an iterator get all leaves, and each leaf goes to one thread."""
    leaves = [Leaf(i) for i in range(3000)]
    tree = [leaves[:1000], (leaves[1000:1500], {"a": Box(*leaves[1500:2000])}), leaves[2000:]]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # with the GIL, most turns end within a callback
    try:
        iterator = pydag.dag_iter(tree, is_leaf=lambda _: False)
        results = checked(outcomes(lambda _: list(iterator)))
    finally:
        sys.setswitchinterval(interval)
    assert sorted(leaf.name for found in results for leaf in found) == list(range(3000))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_ends_in_a_callback() -> None:
    """A thread that ends itself within a callback leaves nothing locked."""
    tree = sample()
    iterator = pydag.dag_iter([tree, [Leaf()]], is_leaf=lambda x: sys.exit() if END[0] else False)
    for _ in range(20):
        END[0] = True
        threads = [
            threading.Thread(target=function)
            for function in (
                lambda: pydag.dag_map(lambda _: sys.exit(), tree),
                lambda: pydag.dag_leaves(tree, is_leaf=lambda _: sys.exit()),
                lambda: next(iterator),
            )
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        END[0] = False
        assert len(pydag.dag_leaves(tree)) == NUM_LEAVES
    list(iterator)  # comes to its end


END = [False]


USE = """
    import os, sys, threading, time
    import pydag

    class Box:
        def __init__(self, *children):
            self.children = children
    pydag.register_pydag_node(Box, lambda box: (box.children, None), lambda _, c: Box(*c))
    # What threads have in common may be locked at a fork, and then it is so in the child for ever:
    # CPython's own locks of dicts and lists, with which the library has nothing to do.
    def use():
        tree = {"a": [1.5, {"b": Box(2, (3, [4]))}], "c": list(range(20))}
        while True:
            assert len(pydag.dag_leaves(pydag.dag_copy(tree))) == 24
            leaves, spec = pydag.dag_flatten(tree)
            assert pydag.dag_structure(spec.unflatten(leaves)) == spec
    threads = [threading.Thread(target=use, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork_while_threads_walk() -> None:
    """A child that is forked while other threads walk can walk and register."""
    done = run_program(
        textwrap.dedent(USE)
        + textwrap.dedent("""
            tree = {"a": [1.5, {"b": Box(2, (3, [4]))}], "c": list(range(20))}
            for _ in range(10):
                child = os.fork()
                if child == 0:
                    for _ in range(20):
                        assert len(pydag.dag_leaves(pydag.dag_copy(tree))) == 24
                    cls = type("Own", (), {})
                    pydag.register_fields(cls)
                    pydag.unregister_pydag_node(cls)
                    os._exit(0)
                assert os.waitpid(child, 0)[1] == 0
            print("done", flush=True)
            os._exit(0)
        """)
    )
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr


@pytest.mark.skipif(
    sys.version_info < (3, 14), reason="CPython ended daemon threads by unwinding their C++ stack"
)
def test_daemon_threads_at_exit() -> None:
    """The process ends in order while daemon threads walk."""
    for _ in range(3):
        done = run_program(textwrap.dedent(USE) + "\nprint('done')\n")
        assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr


@pytest.mark.measures
def test_stress() -> None:
    """Readers, mutators and registrars on common trees and specs, for as long as is asked."""
    trees = [sample() for _ in CHANGES]
    spec = pydag.dag_structure(sample())
    shared_leaves = [Leaf() for _ in range(NUM_LEAVES)]
    ends = time.monotonic() + SECONDS
    mutators = 2

    def work(i: int) -> None:
        chance = random.Random(i)
        number = 0
        while time.monotonic() < ends or (i < mutators and number % 2):
            number += 1
            if i < mutators:
                for tree, change in list(zip(trees, CHANGES.values(), strict=True))[i::mutators]:
                    change(tree, number)
            elif i == mutators:
                cls: Any = type("Fleeting", (), {})
                pydag.register_fields(cls)
                node = cls()
                node.x = [1, 2]
                assert len(pydag.dag_leaves([node, node])) == 2
                pydag.unregister_pydag_node(cls)
                if number % 50 == 0:
                    pydag.clear_caches()
            else:
                read(chance.choice(trees), chance.randrange(6), {NUM_LEAVES, NUM_LEAVES + 1})
                built = spec.unflatten(shared_leaves)
                assert pydag.dag_structure(built) == spec
                assert hash(pydag.dag_structure(built)) == hash(spec)

    checked(outcomes(work))
