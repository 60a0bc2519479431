# SPDX-License-Identifier: Apache-2.0
"""Every operation, where the interpreter's memory ends at some point, or the core's."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from operations import run_apart

# A class statement, a generator and a method that is bound (as pickle and copy ask for one) crash
# without memory in CPython 3.13.0 and nanobind 3.1 themselves, so none of them is used here.
PROGRAM = """
import collections, time
import pydag
pydag.explain  # its module is imported now: CPython's importer crashes without memory
Point = collections.namedtuple("Point", "x y")
@pydag.register_fields
class Module: pass
@pydag.register_fields(data_fields=("a", "b"), meta_fields=("m",))
class Named: pass
@pydag.register_fields
class Slotted: __slots__ = ("a", "b")
class Tagged:
    def __init__(self, *c): self.c = c
pydag.register_pydag_node(
    Tagged, lambda x: (x.c, "t", tuple(range(len(x.c)))), lambda t, c: Tagged(*c))
class Leaf: pass
def made(cls, **attributes):
    node = cls()
    for name, value in attributes.items(): setattr(node, name, value)
    return node
w = [1.0, Leaf()]
tree = {
    "b": w, "a": (w, None, Point(1, 2)), 3: 4, "od": collections.OrderedDict(b=w, a=w),
    "dd": collections.defaultdict(int, b=1, a=w), "dq": collections.deque([1, w], 5),
    "m": made(Module, y=w, x=1), "n": made(Named, a=w, b=w, m=3), "s": made(Slotted, a=1, b=2),
    "c": Tagged(1, w), "t": time.gmtime(0),
}
cyclic = []
cyclic.append(cyclic)
leaves, spec = pydag.dag_flatten(tree)
state = spec.__getstate__()
classes = [type("Class", (), {}) for _ in range(2000)]
rows = [pydag.dag_structure(1), pydag.dag_structure([w, w])]
def register():
    cls = classes.pop()
    pydag.register_pydag_node(cls, list, list)
    pydag.dag_leaves([1])
    pydag.unregister_pydag_node(cls)
    pydag.register_fields(cls, ("a",))
    pydag.dag_leaves([made(cls, a=1)])
OPERATIONS = {
    "flatten": lambda: pydag.dag_flatten(tree),
    "flatten nodes": lambda: pydag.dag_flatten(tree, identity="nodes", namespace="n"),
    "flatten is_leaf": lambda: pydag.dag_flatten(tree, is_leaf=lambda _: False),
    "flatten_with_path": lambda: pydag.dag_flatten_with_path(tree),
    "leaves": lambda: pydag.dag_leaves(tree),
    "unflatten": lambda: pydag.dag_unflatten(spec, leaves),
    "unflatten iterator": lambda: pydag.dag_unflatten(spec, iter(leaves)),
    "copy": lambda: pydag.dag_copy(tree),
    "deep copy": lambda: pydag.dag_copy(tree, deep=True),
    "map": lambda: pydag.dag_map(lambda x, y: y, tree, tree),
    "map_with_path": lambda: pydag.dag_map_with_path(lambda path, x: x, tree),
    "match": lambda: spec.flatten_up_to(tree),
    "deref, reref": lambda: pydag.reref(pydag.deref(tree)),
    "shared_objects": lambda: pydag.shared_objects(tree),
    "paths": lambda: spec.paths(),
    "entries, kind": lambda: (spec.entries(), spec.kind, spec.type, spec.num_paths, spec.shared),
    "equal": lambda: spec == pydag.dag_structure(pydag.dag_copy(tree)),
    "explain": lambda: pydag.explain(spec, rows[1]),
    "repr": lambda: repr(spec),
    "state": lambda: pydag.PyDagSpec.__new__(pydag.PyDagSpec).__setstate__(state),
    "getstate": lambda: spec.__getstate__(),
    "tie": lambda: pydag.tie(tree, ("b",), ("a", 0)),
    "untie": lambda: pydag.untie(tree, ("b",)),
    "retie": lambda: pydag.retie(spec, tree),
    "replace": lambda: pydag.dag_replace(tree, w, 5),
    "update": lambda: pydag.dag_update({"a": [0, 0], "c": 1}, {"a": [1, 2], "c": 2}),
    "mixed keys": lambda: pydag.dag_leaves({i if i % 2 else str(i): i for i in range(20)}),
    "new class": lambda: pydag.dag_leaves([classes.pop()()]),
    "register": register,
    "cycle": lambda: pydag.dag_leaves([[cyclic]]),
    "mismatch": lambda: spec.flatten_up_to({"b": 1}),
    "user's error": lambda: pydag.dag_map(lambda x: 1 // 0, tree),
    "too few": lambda: spec.unflatten([1]),
}
EXPECTED = (MemoryError, ValueError, ZeroDivisionError, SystemError, RuntimeError)
def attempt(operation, after, only_one):
    fail_after(after, only_one)
    try: operation()
    except EXPECTED: pass                        # SystemError: CPython lost its MemoryError
    finally: fail_never()
for name, operation in OPERATIONS.items():
    print(name, flush=True)
    for n in range(1, 60):
        if n % 3 == 0: pydag.clear_caches()
        attempt(operation, n, True)              # one allocation fails
        attempt(operation, n, False)             # all do, from there on
    again, same = pydag.dag_flatten(tree)
    assert same == spec and all(a is b for a, b in zip(again, leaves, strict=True))
    assert repr(same) == repr(spec)
print("done")
"""


@pytest.fixture(autouse=True)
def _without_coverage(monkeypatch: pytest.MonkeyPatch) -> None:
    """`make coverage` leaves these programs alone: its tracer needs memory, too."""
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)


INTERPRETER = """
import _testcapi
def fail_after(n, only_one): _testcapi.set_nomemory(n, n + 1 if only_one else 0)
fail_never = _testcapi.remove_mem_hooks
"""

CORE = """
import ctypes, os
memory = ctypes.CDLL(os.environ["LD_PRELOAD"])
import pydag
# nanobind ends the process where its table of instances can't grow: it is made large enough.
specs = [pydag.dag_structure({i: 0}) for i in range(5000)]
del specs
memory.find_core()
fail_after, fail_never = memory.fail_after, memory.fail_never
"""


@pytest.mark.skipif(
    hasattr(sys, "gettotalrefcount"), reason="a debug build asserts what fails without memory"
)
@pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    reason="making a list crashes there without memory, in CPython 3.13 itself",
)
def test_operations_without_memory() -> None:
    """Whichever allocation of the interpreter's fails, nothing crashes; afterwards all works."""
    pytest.importorskip("_testcapi", reason="not every interpreter is built with it")
    assert "\ndone\n" in run_apart(INTERPRETER + PROGRAM, timeout=300)  # optree may complain


FIRST_INSTANCE = """
failures = 0
for n in range(60):
    cls = type("Slotted", (), {"__slots__": ("a", "b")})
    pydag.register_fields(cls, ("a", "b"))
    node = cls()
    node.a, node.b = 1, 2
    fail_after(n, True)
    try: leaves = pydag.dag_leaves(node)
    except MemoryError:
        fail_never()
        failures += 1
        leaves = pydag.dag_leaves(node)
    fail_never()
    assert leaves == [1, 2]
print(failures)
"""


def test_no_memory_where_a_class_is_first_seen() -> None:
    """The walk that looks a class up ends with a MemoryError, and the next one does it all."""
    pytest.importorskip("_testcapi", reason="not every interpreter is built with it")
    source = "import pydag\n" + INTERPRETER + FIRST_INSTANCE
    assert int(run_apart(source)) > 0


@pytest.fixture
def _failing_malloc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that are run apart find a library that makes the core's allocations fail."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux" or "LD_PRELOAD" in os.environ:
        pytest.skip("needs Linux's loader, a C compiler, and no other library in the same place")
    source = Path(__file__).parents[1] / "support" / "failing_malloc.c"
    library = tmp_path / "failing_malloc.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    monkeypatch.setenv("LD_PRELOAD", str(library))


@pytest.mark.usefixtures("_failing_malloc")
def test_operations_without_memory_for_the_core() -> None:
    """Whichever allocation of the core's own fails, nothing crashes; afterwards all works."""
    assert "\ndone\n" in run_apart(CORE + PROGRAM, timeout=300)


REGISTRATION = """
class Node: pass
node = Node()
assert pydag.dag_leaves([node]) == [node]
flatten, unflatten = (lambda x: ((1, 2), None)), (lambda aux_data, children: Node())
failures = 0
for n in range(30):
    fail_after(n, True)
    try: pydag.register_pydag_node(Node, flatten, unflatten)
    except MemoryError:
        fail_never()
        failures += 1
        assert pydag.register_pydag_node.get(Node) is None
        assert pydag.dag_leaves([node]) == [node]
        continue
    fail_never()
    assert pydag.dag_leaves([node]) == [1, 2]
    pydag.unregister_pydag_node(Node)
    assert pydag.dag_leaves([node]) == [node]
print(failures)
"""


@pytest.mark.usefixtures("_failing_malloc")
def test_registration_is_made_or_not() -> None:
    """A class whose registration ended without memory isn't registered, and can be."""
    assert int(run_apart(CORE + REGISTRATION)) > 0


UNTRACKED = """
@pydag.register_fields(preserve_relative_identities=False)
class Empty: pass
tree = [Empty() for _ in range(60)]
for n in range(40):
    leaves = pydag.dag_iter(tree, is_leaf=lambda _: False)
    fail_after(n, True)
    try: assert list(leaves) == []
    except MemoryError: pass
    finally: fail_never()
    assert list(leaves) == []
    assert pydag.dag_leaves(tree, is_leaf=lambda _: False) == []
print("done")
"""


@pytest.mark.parametrize("identity", ["", "preserve_relative_identities=False"])
@pytest.mark.usefixtures("_failing_malloc")
def test_memory_ends_in_a_node_without_children(identity: str) -> None:
    """A walk that has no memory between two of its steps ends there, without a path."""
    source = CORE + UNTRACKED.replace("preserve_relative_identities=False", identity)
    assert run_apart(source) == "done\n"
