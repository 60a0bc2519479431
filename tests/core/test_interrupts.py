# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C ends every operation, however long it would last, and leaves nothing half done."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import pydag

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="signals of POSIX")

DELAY = 0.03  # in seconds, from the beginning of an operation to Ctrl-C
# In seconds of the processor, whatever else the machine does: far more than is needed, but far less
# than any of the operations would last.
SOON = 10.0


@pydag.register_fields(meta_fields=("table",))
class Table:
    table: Any


def bomb(innermost: Any = 1, depth: int = 60) -> Any:
    """A tuple of twice the same tuple, and so on: tuples are values, so there are 2**60 leaves."""
    tree: Any = (innermost,)
    for _ in range(depth):
        tree = (tree, tree)
    return tree


def nothing(*_: Any) -> Any:
    """What a callback returns here: neither a leaf's nor a node's."""
    return None


@contextmanager
def handler(handle: Callable[[], Any]) -> Iterator[None]:
    """With a handler for Ctrl-C and for the alarm clock."""

    def handle_signal(*_: Any) -> None:
        handle()

    before = [(sig, signal.signal(sig, handle_signal)) for sig in (signal.SIGINT, signal.SIGALRM)]
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for sig, old in before:
            signal.signal(sig, old)


@pytest.fixture(autouse=True)
def _no_callbacks_of_the_collector() -> Iterator[None]:
    """Those of others, such as Hypothesis: an exception in one of them goes nowhere."""
    callbacks = gc.callbacks[:]
    gc.callbacks.clear()
    yield
    gc.callbacks[:] = callbacks


def interrupt() -> None:
    """What Python's own handler of Ctrl-C does."""
    raise KeyboardInterrupt


def ends_by_ctrl_c(work: Callable[[], Any]) -> bool:
    """Ctrl-C comes while a function runs, from another process, as from a terminal."""
    command = f"read _; sleep {DELAY}; kill -INT {os.getpid()}"
    with (
        handler(interrupt),
        subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE) as shell,
    ):
        assert shell.stdin is not None
        try:
            # On a busy machine Ctrl-C may come as soon as the shell knows that it may.
            os.write(shell.stdin.fileno(), b"\n")
            work()
        except KeyboardInterrupt:
            return True
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # where the function ends by itself
        return False


SPEC = pydag.dag_structure(bomb(depth=17))
STATE = SPEC.__getstate__()
BOMB, OTHER, ITEM = bomb(), bomb(2), [1]
TO_SPEC = bomb(0, depth=16)


# None of these would end before the sun does.
ENDLESS: dict[str, Callable[[], Any]] = {
    "flatten": lambda: pydag.dag_flatten(BOMB),
    "flatten, objects": lambda: pydag.dag_flatten(bomb(object())),
    "flatten, is_leaf": lambda: pydag.dag_flatten(BOMB, is_leaf=callable),
    "leaves": lambda: pydag.dag_leaves(BOMB),
    "structure": lambda: pydag.dag_structure(BOMB),
    "paths": lambda: pydag.dag_paths(BOMB),
    "iter": lambda: max(pydag.dag_iter(BOMB)),
    "map": lambda: pydag.dag_map(abs, BOMB),
    "map of two": lambda: pydag.dag_map(max, BOMB, OTHER),
    "map with paths": lambda: pydag.dag_map_with_path(max, BOMB),
    "map in place": lambda: pydag.dag_map_(abs, BOMB),
    "copy": lambda: pydag.dag_copy(BOMB),
    "fold": lambda: pydag.dag_fold(nothing, BOMB),
    "rewrite": lambda: pydag.dag_rewrite(nothing, BOMB),
    "intern": lambda: pydag.dag_intern(BOMB),
    "shared_objects": lambda: pydag.shared_objects(BOMB),
    "deref": lambda: pydag.deref(BOMB),
    "reref": lambda: pydag.reref(BOMB),
    "tie": lambda: pydag.tie(BOMB, (0,), (1,)),
    "untie": lambda: pydag.untie(BOMB, (0,)),
    "replace": lambda: pydag.dag_replace([ITEM, BOMB], ITEM, 2),
    "update": lambda: pydag.dag_update([BOMB], [OTHER]),
    "partition": lambda: pydag.dag_partition(nothing, BOMB),
    "reduce": lambda: pydag.dag_sum(BOMB),
    "broadcast_prefix": lambda: pydag.dag_broadcast_prefix(1, BOMB),
    "broadcast_map": lambda: pydag.dag_broadcast_map(max, (1, 2), BOMB),
    "broadcast_common": lambda: pydag.dag_broadcast_common(BOMB, OTHER),
    "prefix_errors": lambda: pydag.prefix_errors(BOMB, OTHER),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_endless(name: str) -> None:
    """What would never end ends soon after Ctrl-C, and the library is as it was."""
    start = time.process_time()
    assert ends_by_ctrl_c(ENDLESS[name])
    assert time.process_time() - start < SOON
    assert gc.isenabled()
    shared: list[Any] = [1]
    leaves, spec = pydag.dag_flatten({"a": shared, "b": (shared, 2)})
    assert leaves == [1, 2]
    assert repr(spec) == "PyDagSpec({'a': &0 [*], 'b': (*0, *)})"


def restored() -> pydag.PyDagSpec:
    """A spec like SPEC that is another object."""
    spec = pydag.PyDagSpec.__new__(pydag.PyDagSpec)
    spec.__setstate__(STATE)
    return spec


# Each lasts some hundredths of a second: in a loop, so that Ctrl-C finds it at any of its steps.
LONG: dict[str, Callable[[], Any]] = {
    "flatten, known": lambda: pydag.dag_leaves(TO_SPEC),
    "unflatten": lambda: SPEC.unflatten(range(SPEC.num_leaves)),
    "flatten_up_to": lambda: SPEC.flatten_up_to(bomb(3, depth=17)),
    "unpickle": restored,
    "pickle": SPEC.__getstate__,
    "listing": SPEC._listing,
    "paths": SPEC.paths,
    "accessors": SPEC.accessors,
    "repr": lambda: repr(SPEC),
    "is_prefix": lambda: SPEC.is_prefix(restored()),
    "explain": lambda: pydag.explain(SPEC, restored()),
    "compose": lambda: SPEC.compose(pydag.dag_structure([0, [0]])),
    "transform": lambda: SPEC.transform(None, lambda spec: spec),
    "common suffix": lambda: SPEC.broadcast_to_common_suffix(restored()),
    "traverse": lambda: SPEC.traverse(range(SPEC.num_leaves), None, None),
    "children": SPEC.children,
    "retie": lambda: pydag.retie(SPEC, bomb(4, depth=17)),
    "json": SPEC.to_json,
    "all_paths": lambda: pydag.dag_paths(TO_SPEC, all_paths=True),
    "num_paths": lambda: SPEC.num_paths,
}


@pytest.mark.parametrize("name", LONG)
def test_again_and_again(name: str) -> None:
    """Walks over structures, and over trees that are known, end soon after Ctrl-C."""
    start = time.process_time()

    def work() -> None:
        while time.process_time() - start < SOON:
            LONG[name]()

    assert ends_by_ctrl_c(work)
    assert time.process_time() - start < SOON
    assert gc.isenabled()


@pytest.mark.parametrize("delay", [0.002, 0.005, 0.01, 0.02, 0.04])
def test_update_is_all_or_nothing(delay: float) -> None:
    """An update that is interrupted has changed everything or nothing."""
    target = [[0] for _ in range(60_000)]
    source = [[1] for _ in range(60_000)]
    with handler(interrupt):
        try:
            signal.setitimer(signal.ITIMER_REAL, delay)
            pydag.dag_update(target, source)
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            pass
    assert {item for [item] in target} in ({0}, {1})


def test_iterator_goes_on() -> None:
    """An iterator that was interrupted gives the other leaves when it is asked again."""
    tree = [[[]] * 3, [()] * 2_000_000, 1, 2]
    leaves: list[Any] = []
    times = 0
    iterator = pydag.dag_iter(tree)
    with handler(interrupt):
        while len(leaves) < 2:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.002)
                leaves.extend(iterator)  # what it has got so far stays
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                times += 1
    assert leaves == [1, 2]
    assert times > 0


@contextmanager
def ticking(handle: Callable[[], Any], interval: float = 0.001) -> Iterator[list[int]]:
    """With a handler that runs again and again; says how often."""
    ticks = [0]

    def tick() -> None:
        ticks[0] += 1
        handle()

    with handler(tick):
        signal.setitimer(signal.ITIMER_REAL, interval, interval)
        yield ticks


def test_collector_is_on_in_a_handler() -> None:
    """While a handler runs, the collector is as the user has set it, and so it is afterwards."""
    seen = set()
    spec = pydag.dag_structure([[[i]] for i in range(30_000)])
    leaves = list(range(30_000))
    with ticking(lambda: seen.add(gc.isenabled())) as ticks:
        for _ in range(3):
            built = spec.unflatten(leaves)
            assert pydag.dag_leaves(pydag.dag_copy(built)) == leaves
    assert seen == {True}
    assert ticks[0] > 0
    assert gc.isenabled()
    try:
        with ticking(gc.disable):
            for _ in range(3):
                spec.unflatten(leaves)
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("is_leaf", [None, lambda x: False], ids=["looking", "asking"])
def test_handler_changes_the_tree(is_leaf: Any) -> None:
    """A handler may empty what is being walked: the walk sees each list before that or after it."""
    for operation in (pydag.dag_leaves, pydag.dag_copy, pydag.dag_structure):
        for _ in range(3):
            inner = [[object(), [object()]] for _ in range(30_000)]
            tree = {"a": inner, "b": [inner[:10_000], list(inner)]}

            running: list[int] = []

            def empty(inner: Any = inner, tree: Any = tree, running: Any = running) -> None:
                if running:  # this is the handler of a signal that came in a handler
                    return
                running.append(1)
                for item in inner:
                    item.clear()
                tree["b"].clear()
                inner.clear()
                gc.collect(0)
                running.clear()

            with ticking(empty, 0.002):
                found = operation(tree, is_leaf)
            assert found is not None
    assert pydag.dag_leaves({"a": [1]}) == [1]


def test_handler_calls_the_library() -> None:
    """A handler may call what it interrupts, on the same tree."""
    tree = [[i, (i, [i])] for i in range(10_000)]
    expected, spec = pydag.dag_flatten(tree)
    results = []
    running: list[int] = []

    def call() -> None:
        if not running:  # else this is the handler of a signal that came in a handler
            running.append(1)
            results.append(pydag.dag_flatten(tree) == (expected, spec))
            running.clear()

    with ticking(call, 0.01):
        for _ in range(5):
            assert pydag.dag_flatten([tree, 1])[0] == [*expected, 1]
            assert pydag.dag_leaves(pydag.dag_map(int, tree)) == expected
            assert pydag.dag_leaves(tree, is_leaf=lambda x: False) == expected
            assert spec == pydag.dag_structure(spec.unflatten(expected))
    assert results == [True] * len(results)
    assert results


def test_other_threads_run_no_handler() -> None:
    """Handlers run in the main thread alone. A walk in another one is not disturbed."""
    tree = [[i] for i in range(100_000)]
    threads: set[Any] = set()
    found: list[Any] = []
    with ticking(lambda: threads.add(threading.current_thread())):
        thread = threading.Thread(
            target=lambda: found.extend(pydag.dag_leaves([tree, i]) for i in range(5))
        )
        thread.start()
        thread.join()
    assert [len(leaves) for leaves in found] == [100_001] * 5
    assert threads <= {threading.main_thread()}


@pytest.mark.skipif(sys.version_info < (3, 13), reason="only Ctrl-C can be told before")
def test_any_signal() -> None:
    """Not only Ctrl-C ends a walk that looks alone, but every signal whose handler raises."""

    def work() -> None:  # on a busy machine the signal may come before the walk
        signal.setitimer(signal.ITIMER_REAL, DELAY)
        pydag.dag_leaves(BOMB)

    with handler(interrupt), pytest.raises(KeyboardInterrupt):
        work()


def nested(width: int) -> Any:
    """Eight levels of lists, each of which holds the next one so many times."""
    row: Any = [0] * width
    for _ in range(9):
        row = [row] * width
    return row


def table_of(value: Any) -> Table:
    table = Table()
    table.table = value
    return table


@pytest.mark.parametrize("make", [lambda: nested(40), lambda: nested(2000), lambda: [[bomb(1.5)]]])
def test_interning_shared_metadata(make: Callable[[], Any]) -> None:
    """Metadata that holds itself exponentially often is hashed and compared in linear time."""
    first, other = table_of(make()), table_of(make())
    start = time.process_time()
    one, two, three = pydag.dag_intern([first, other, table_of([[0]])])
    assert one is first
    assert two is first
    assert three is not first
    assert time.process_time() - start < SOON


SHARED = nested(40)


@pytest.mark.parametrize(
    "make",
    [
        lambda: pydag.dag_structure(table_of(SHARED)),
        lambda: pydag.dag_structure(table_of([SHARED])).shared,
        lambda: pydag.shared_objects([SHARED, SHARED]),
        lambda: pydag.explain(
            pydag.dag_structure(table_of(SHARED)), pydag.dag_structure(table_of(nested(3)))
        ),
        lambda: pydag.Anchor(0, SHARED),
        lambda: pydag.Node(list, SHARED, ()),
        lambda: pydag.deref([table_of(SHARED)] * 2),
        lambda: pydag.dag_accessors(table_of(SHARED)),
        lambda: pydag.view(table_of(SHARED)),
    ],
)
def test_repr_of_shared_metadata(make: Callable[[], Any]) -> None:
    """The text of whatever the library makes is short, however often metadata holds itself."""
    assert len(repr(make())) < 200_000
