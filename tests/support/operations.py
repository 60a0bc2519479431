# SPDX-License-Identifier: Apache-2.0
"""Every operation on a tree, and what tests of hazards need again and again."""

import copy
import gc
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import pydag

# How deep the chains are that show that depth is bounded by memory alone. Under the sanitizers, a
# level takes many times as long, so the smaller depth has to do: no recursion gets that far either.
DEPTHS = [100_000, pytest.param(1_000_000, marks=pytest.mark.measures)]


def _unflatten(tree: Any) -> Any:
    leaves, spec = pydag.dag_flatten(tree)
    return pydag.dag_unflatten(spec, leaves)


def _match(tree: Any) -> Any:
    return pydag.dag_structure(tree).flatten_up_to(pydag.dag_copy(tree))


def _broadcast(tree: Any) -> Any:
    spec = pydag.dag_structure([tree, tree])
    return spec.broadcast_to_common_suffix(pydag.dag_structure([tree, pydag.dag_copy(tree)]))


def _through(tree: Any, method: str, f_node: Callable[..., Any]) -> Any:
    leaves, spec = pydag.dag_flatten(tree)
    return getattr(spec, method)(leaves, f_node, lambda leaf: leaf)


def _transpose(tree: Any) -> Any:
    spec, small = pydag.dag_structure([tree, (tree,)]), pydag.dag_structure([1, (2,)])
    return [
        pydag.dag_transpose(
            outer, inner, outer.compose(inner).unflatten([object() for _ in range(size)])
        )
        for outer, inner in ((spec, small), (small, spec))
        if (size := len(outer) * len(inner))
    ]


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "flatten": pydag.dag_flatten,
    "flatten nodes": lambda tree: pydag.dag_flatten(tree, identity="nodes"),
    "flatten is_leaf": lambda tree: pydag.dag_flatten(tree, is_leaf=lambda _: False),
    "flatten_with_path": pydag.dag_flatten_with_path,
    "flatten_with_accessor": pydag.dag_flatten_with_accessor,
    "leaves": pydag.dag_leaves,
    "unflatten": _unflatten,
    "copy": pydag.dag_copy,
    "map": lambda tree: pydag.dag_map(lambda x: x, tree),
    "map two": lambda tree: pydag.dag_map(lambda x, y: y, tree, tree),
    "map_with_path": lambda tree: pydag.dag_map_with_path(lambda path, x: x, tree),
    "map_": lambda tree: pydag.dag_map_(lambda x, y: None, tree, tree),
    "map where": lambda tree: pydag.dag_map(lambda x: x, tree, where=lambda x: True),
    "iter": lambda tree: list(pydag.dag_iter(tree)),
    "iter half": lambda tree: next(pydag.dag_iter(tree), None),
    "partition": lambda tree: pydag.dag_partition(lambda x: True, tree),
    "one level": pydag.dag_flatten_one_level,
    "match": _match,
    "deref": pydag.deref,
    "reref": lambda tree: pydag.reref(pydag.deref(tree)),
    "shared_objects": pydag.shared_objects,
    "copy leaves": lambda tree: pydag.dag_copy(tree, leaf=lambda x: x),
    "deep copy": lambda tree: pydag.dag_copy(tree, deep=True),
    "fold": lambda tree: pydag.dag_fold(lambda node, below: len(below), tree),
    "fold with context": lambda tree: pydag.dag_fold(
        lambda node, below, context: context, tree, down=lambda node, context: 1 - context, init=0
    ),
    "rewrite": lambda tree: pydag.dag_rewrite(lambda node: node, tree),
    "rewrite all": lambda tree: pydag.dag_rewrite({float: lambda x: x + 1}, tree),
    "intern": pydag.dag_intern,
    "paths": lambda tree: pydag.dag_structure(tree).paths(),
    "num_paths": lambda tree: pydag.dag_structure(tree).num_paths,
    "equal": lambda tree: pydag.dag_structure(tree) == pydag.dag_structure(pydag.dag_copy(tree)),
    "explain": lambda tree: pydag.explain(pydag.dag_structure(tree), pydag.dag_structure([tree])),
    "hash": lambda tree: hash(pydag.dag_structure(tree)),
    "repr": lambda tree: repr(pydag.dag_structure(tree)),
    "pickle": lambda tree: pickle.loads(pickle.dumps(pydag.dag_structure(tree))),
    "copy spec": lambda tree: copy.copy(pydag.dag_structure(tree)),
    "deepcopy spec": lambda tree: copy.deepcopy(pydag.dag_structure(tree)),
    "children": lambda tree: pydag.dag_structure(tree).children(),
    "one_level": lambda tree: pydag.dag_structure(tree).one_level(),
    "compose": lambda tree: pydag.dag_structure(tree).compose(pydag.dag_structure([tree, (tree,)])),
    "broadcast": _broadcast,
    "prefix": lambda tree: pydag.dag_structure(tree) <= pydag.dag_structure(pydag.dag_copy(tree)),
    "transform": lambda tree: pydag.dag_structure(tree).transform(lambda x: x, lambda x: x),
    "traverse": lambda tree: _through(tree, "traverse", lambda x: x),
    "walk": lambda tree: _through(tree, "walk", lambda *parts: parts),
    "broadcast_prefix": lambda tree: pydag.dag_broadcast_prefix([tree, 1], [tree, [2]]),
    "broadcast_common": lambda tree: pydag.dag_broadcast_common([1, tree], [tree, 2]),
    "broadcast_map": lambda tree: pydag.dag_broadcast_map(lambda *x: x[0], [1, tree], [tree, 2]),
    "prefix_errors": lambda tree: pydag.prefix_errors([tree, [tree]], [tree, [2]]),
    "transpose": _transpose,
    "transpose_map": lambda tree: pydag.dag_transpose_map(lambda x: [x, [x]], [tree, 1]),
    "collect": lambda tree: pydag.dagspec_list([pydag.dag_structure(tree)] * 2),
}


def seconds(work: Callable[[], Any], times: int = 7) -> float:
    """The least processor time of a few runs."""
    taken = []
    for _ in range(times):
        start = time.thread_time()
        work()
        taken.append(time.thread_time() - start)
    return min(taken)


def doubled(depth: int, innermost: Any = 0.5) -> Any:
    """`t = [t, t]`, again and again: `depth` lists, 2**depth paths."""
    tree = [innermost, innermost]
    for _ in range(depth - 1):
        tree = [tree, tree]
    return tree


needs_posix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs POSIX")
"""A mark of tests that need what Windows hasn't."""

KILLED_AT = """
import os, sys

def exit_code(step, work):
    # Of a process that ends with 7 at an event among `events`, before which there were so many.
    def count(event, arguments):
        nonlocal step
        if event in events:
            step -= 1
            if step < 0:
                os._exit(7)

    child = os.fork()
    if child == 0:
        sys.addaudithook(count)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""
"""The beginning of a program that does some work again and again, each time killed later."""


def run_apart(source: str, *options: str, timeout: float = 300) -> str:
    """What a program prints in an interpreter of its own, errors included. It must end well.

    For programs that would take the tests with them if they failed.
    """
    command = [sys.executable, "-X", "faulthandler", *options, "-c", source]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    output = done.stdout + done.stderr
    assert done.returncode == 0, output[-4000:]
    return output


def python_calls(work: Callable[[], Any], events: Sequence[str] = ("call",)) -> list[str]:
    """The Python functions that run, by name; `work` itself is the first.

    With "c_call" among the events, a function is also there once for each function of C's that it
    calls.
    """
    names: list[str] = []

    def profile(frame: Any, event: str, arg: Any) -> None:
        if event in events:
            names.append(frame.f_code.co_qualname)

    gc.disable()  # others' callbacks run with a collection
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return names
