# SPDX-License-Identifier: Apache-2.0
"""Functions that the library calls may call the library until an error, never a crash."""

import sys

import pytest
from operations import run_apart

pytestmark = pytest.mark.measures  # the sanitizers take several times as much of the stack

# Each function goes on for ever. It is counted how often it does so.
FUNCTIONS = """
import os, sys, threading
import pydag

count = 0
is_deep = False

class Box:
    def __init__(self, child): self.child = child

def again(work):
    global count
    count += 1
    return work() if is_deep else None

def flatten_box(box):
    again(lambda: pydag.dag_leaves(Box(1)))
    return (box.child,), None

def build_box(_, children):
    again(lambda: BOX.unflatten([1]))
    return Box(*children)

class Equal:
    def __eq__(self, other): return again(lambda: TAGS[0] == TAGS[1])
    __hash__ = None

class Tagged:
    def __init__(self, tag): self.tag = tag

class Shown:
    def __repr__(self): return again(lambda: repr(pydag.dag_structure({Shown(): 1})))
    def __hash__(self): return 1

class Copied:
    def __copy__(self): return again(lambda: pydag.untie([self, self], (0,)))

pydag.register_pydag_node(Box, flatten_box, build_box)
pydag.register_pydag_node(Tagged, lambda x: ((), x.tag), lambda tag, _: Tagged(tag))
ONE, BOX = pydag.dag_structure([1]), pydag.dag_structure(Box(1))
TAGS = [pydag.dag_structure(Tagged(Equal())) for _ in range(2)]
x = [object()]
TIED = pydag.dag_structure([x, x])

def endless(call):
    def function(*_): return again(lambda: call(function))
    return function

WORK = {
    name: endless(call)
    for name, call in {
        "map": lambda f: pydag.dag_map(f, [1]),
        "map of two": lambda f: pydag.dag_map(f, [1], [1]),
        "map with path": lambda f: pydag.dag_map_with_path(f, [1]),
        "map with accessor": lambda f: pydag.dag_map_with_accessor(f, [1]),
        "map in place": lambda f: pydag.dag_map_(f, [1]),
        "broadcast map": lambda f: pydag.dag_broadcast_map(f, [1], [1]),
        "transpose map": lambda f: pydag.dag_transpose_map(f, [1]),
        "flatten": lambda f: pydag.dag_flatten([1], is_leaf=f),
        "leaves": lambda f: pydag.dag_leaves([1], is_leaf=f),
        "structure": lambda f: pydag.dag_structure([1], is_leaf=f),
        "iter": lambda f: next(pydag.dag_iter([1], is_leaf=f)),
        "copy": lambda f: pydag.dag_copy([1], is_leaf=f),
        "shared objects": lambda f: pydag.shared_objects([1], is_leaf=f),
        "deref": lambda f: pydag.deref([1], is_leaf=f),
        "tie": lambda f: pydag.tie([[1], [1]], (0,), (1,), is_leaf=f),
        "retie": lambda f: pydag.retie(TIED, [[1], [2]], combine=f),
        "intern": lambda f: pydag.dag_intern([1], is_leaf=f),
        "rewrite": lambda f: pydag.dag_rewrite(f, [1]),
        "fold": lambda f: pydag.dag_fold(f, [1]),
        "fold with context": lambda f: pydag.dag_fold(f, [1], down=lambda n, c: c, init=0),
        "context": lambda f: pydag.dag_fold(lambda n, c, x: 0, [1], down=f, init=0),
        "traverse": lambda f: ONE.traverse([1], f_leaf=f),
        "walk": lambda f: ONE.walk([1], f),
        "transform": lambda f: ONE.transform(f),
        "transform leaves": lambda f: ONE.transform(None, f),
        "update": lambda f: pydag.dag_update([1], [1], is_leaf=f),
        "partition": lambda f: pydag.dag_partition(f, [1]),
        "mask": lambda f: pydag.dag_mask([1], f),
        "reduce": lambda f: pydag.dag_reduce(f, [1, 2]),
        "prefix errors": lambda f: pydag.prefix_errors([1], [1], is_leaf=f),
        "leaves that are made": lambda f: ONE.unflatten(f() for _ in range(1)),
    }.items()
} | {
    "flatten function": lambda: pydag.dag_leaves(Box(1)),
    "unflatten function": lambda: BOX.unflatten([1]),
    "equality": lambda: TAGS[0] == TAGS[1],
    "repr": lambda: repr(pydag.dag_structure({Shown(): 1})),
    "copy of a leaf": lambda: pydag.untie([c := Copied(), c], (0,)),
}

def run():
    global count, is_deep
    for name, work in WORK.items():
        counts = []
        for _ in range(2 if KILOBYTES else 1):
            count, is_deep = 0, True
            os.write(2, f"{name}\\n".encode())  # the last one, should this crash
            try:
                work()
                print(name, "ends by itself")
            except RecursionError as error:
                assert "maximum recursion depth exceeded" in str(error), error
            is_deep = False
            counts.append(count)
            assert pydag.dag_leaves([1, (2,)]) == [1, 2]
        if min(counts) < LEAST or max(counts) - min(counts) > 2: print(name, counts)

LIMIT, KILOBYTES, LEAST = map(int, sys.argv[1:])
sys.setrecursionlimit(LIMIT)
if KILOBYTES:
    threading.stack_size(KILOBYTES * 1024)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
else:
    run()
print("end")
"""


# It allows 1,500 nested calls of its own C functions, and `repr` of a spec takes eight of them.
IS_3_12 = sys.version_info[:2] == (3, 12)


@pytest.mark.parametrize(
    ("limit", "kilobytes", "least"),
    [(1000, 2048, 100), (1000, 256, 5), (20_000, 0, 150 if IS_3_12 else 300)],
)
def test_recursion_through_the_library(limit: int, kilobytes: int, least: int) -> None:
    """Every function with a callback: RecursionError, twice alike, as deep as is possible."""
    source = (
        f"import sys; sys.argv[1:] = {[str(x) for x in (limit, kilobytes, least)]}\n{FUNCTIONS}"
    )
    output = run_apart(source).split("\n")
    assert [line for line in output if line not in NAMES] == ["end", ""]


NAMES = {
    line.split('"')[1] for line in FUNCTIONS.split("\n") if line.startswith(('        "', '    "'))
}


def test_an_own_limit_comes_first() -> None:
    """Where Python's limit is lower than what the stack allows, the frames of Python count."""
    source = """
import sys, pydag
count = 0
def again(x):
    global count
    count += 1
    return pydag.dag_map(again, [x])
sys.setrecursionlimit(200)
try:
    again(1)
except RecursionError as error:
    print(error, 150 < count < 200)
"""
    output = run_apart(source)
    assert output.startswith("maximum recursion depth exceeded")
    assert output.endswith("True\n")
