# SPDX-License-Identifier: Apache-2.0
"""Nothing in the core waits for its first use: what it needs of Python is there when it is."""

import re
import sys
import sysconfig

import pytest
from operations import run_apart

# Programs that stood still for ever; a thread that ends the process tells so in time.
WATCHDOG = """
import faulthandler, threading
faulthandler.dump_traceback_later(200, exit=True)
def in_threads(work, count=8):
    go = threading.Barrier(count)
    def run():
        go.wait()
        work()
    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""


def test_first_errors_of_several_threads() -> None:
    """Threads may raise their first error, which shows an object, at the same time."""
    source = """
import pydag
spec = pydag.dag_structure([1])
def work():
    try: pydag.dag_unflatten(spec, 5)
    except TypeError: done.append(1)
done = []
in_threads(work)
print(len(done))
"""
    assert run_apart(WATCHDOG + source) == "8\n"


def test_import_function_that_gives_other_threads_their_turn() -> None:
    """No operation imports anything, so an `__import__` that is Python code is never met."""
    source = """
import builtins, collections, pickle, time
import pydag
original, imported = builtins.__import__, []
def importer(name, *args, **kwargs):
    imported.append(name)
    time.sleep(0.001)
    return original(name, *args, **kwargs)
@pydag.register_fields
class Node:
    __slots__ = ("a", "b")
Point = collections.namedtuple("Point", "x")
node = Node()
node.a, node.b = collections.deque([1], 3), collections.OrderedDict(z=1, y=[2])
tree = {"n": [node, node], "p": Point(collections.defaultdict(int, k=1)), "t": time.gmtime(0)}
def work():
    leaves, spec = pydag.dag_flatten(tree)
    pydag.dag_unflatten(spec, leaves)
    spec.flatten_up_to(tree)
    spec.accessors(), spec.paths(), spec.kind, spec.type, spec.__reduce__()
    spec.num_paths, repr(spec), hash(spec)
    pydag.dag_map_with_accessor(lambda a, x: x, tree)
    pydag.shared_objects(tree), spec.shared, pydag.explain(spec, pydag.dag_structure(1))
    pydag.PyDagSpec.__new__(pydag.PyDagSpec).__setstate__(spec.__getstate__())
    for bad in (7, [node], cyclic):
        try: pydag.dag_map(lambda x, y: x, tree, bad), pydag.dag_leaves(bad)
        except ValueError: pass
cyclic = []
cyclic.append(cyclic)
pydag.explain  # which is imported at its first use
builtins.__import__ = importer
in_threads(work)
builtins.__import__ = original
print(set(imported) - {"atexit"})  # which optree asks for, in a function of its own
"""
    assert run_apart(WATCHDOG + source) == "set()\n"


def test_module_made_anew() -> None:
    """The package can be imported again from the start; what there was before goes on working."""
    source = """
import sys
import pydag as first
spec = first.dag_structure({"b": [1], "a": 2})
for name in [name for name in sys.modules if name.partition(".")[0] == "pydag"]:
    del sys.modules[name]
import pydag as second
print(second is first, second.CycleError is first.CycleError)
w = [1]
print(second.dag_structure({"b": w, "a": 2}) == spec, spec.unflatten([1, 2]))
print(second.reref(second.deref([w, w])), first.dag_copy([w, w]))
"""
    expected = "False True\nTrue {'b': [2], 'a': 1}\n[[1], [1]] [[1], [1]]\n"
    assert run_apart(source) == expected


@pytest.mark.skipif(sys.version_info < (3, 13), reason="it can't be made from Python before")
def test_second_interpreter_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter that shares extension modules gets an ImportError; the first one works on."""
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)  # which can't start in it, either
    source = """
import _interpreters as interpreters
import pydag
cyclic = []
cyclic.append(cyclic)
def is_found():
    try: pydag.dag_leaves(cyclic)
    except pydag.CycleError: return True
before = is_found()
other = interpreters.create("legacy")
error = interpreters.exec(other, "import pydag")
again = interpreters.exec(other, "import pydag._core")
print(error.type.__name__, error.msg.partition(",")[0], again.type.__name__)
middle = is_found()
interpreters.destroy(other)
class New: pass
@pydag.register_fields
class Newer: pass
newer = Newer()
newer.x = 1
print(before, middle, is_found(), len(pydag.dag_leaves(New())), pydag.dag_copy(newer).x)
"""
    ours = "pydag can be used in one interpreter of a process only"
    # Without the GIL, CPython itself refuses before the core is asked, or optree's.
    cpythons = r"module (pydag\._core|optree\._C) does not support loading in subinterpreters"
    sentence = cpythons if sysconfig.get_config_var("Py_GIL_DISABLED") else ours
    expected = f"ImportError {sentence} ImportError\nTrue True True 1 1\n"
    assert re.fullmatch(expected, run_apart(source))
