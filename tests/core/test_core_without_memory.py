# SPDX-License-Identifier: Apache-2.0
"""Every operation, where the core's own memory ends: its scratch arrays and tables."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
SOURCE = Path(__file__).parents[1] / "support" / "failing_malloc.c"

PROGRAM = """
import collections, ctypes, sys
import pydag
library = ctypes.CDLL(sys.argv[1])
library.find_the_core()
fail_after = library.fail_after
@pydag.register_fields
class Empty: pass
@pydag.register_fields(meta_fields=("m",))
class Fields: pass
class Value: pass
pydag.register_pydag_node(
    Value, lambda _: ((), None), lambda *_: Value(), preserve_relative_identities=False)
def fields():
    made = Fields()
    made.m, made.x = 1, [Empty(), (1, Empty())]
    return made
def no(_): return False
empty = [Empty() for _ in range(200)]
wide = [[Empty(), Value(), {"b": 1, "a": Empty()}, fields()] for _ in range(60)]
deep = []
for _ in range(300): deep = [deep, Empty(), Value()]
spec = pydag.dag_structure(wide)
leaves = pydag.dag_leaves(wide)
def iterate(tree):
    # A walk that goes on after an error finds nothing that it hasn't written down.
    walk = pydag.dag_iter(tree)
    for _ in range(3000):
        try: next(walk)
        except StopIteration: return
        except MemoryError: fail_after(-1)
OPERATIONS = {
    "flatten": pydag.dag_flatten,
    "flatten is_leaf": lambda tree: pydag.dag_flatten(tree, is_leaf=no),
    "paths": pydag.dag_flatten_with_path,
    "copy": pydag.dag_copy,
    "iterate": iterate,
    "map": lambda tree: pydag.dag_map(lambda x, y: y, tree, tree),
    "broadcast": lambda tree: pydag.dag_broadcast_prefix(tree, tree, is_leaf=no),
    "fold": lambda tree: pydag.dag_fold(lambda node, children: 1, tree),
    "intern": pydag.dag_intern,
    "update": lambda tree: pydag.dag_update(tree, tree),
    "deref": lambda tree: pydag.reref(pydag.deref(tree)),
}
num_failed = 0
for name, operation in OPERATIONS.items():
    for tree in (empty, wide, deep):
        for n in range(40):
            if n % 5 == 0: pydag.clear_caches()
            fail_after(n)
            try: operation(tree)
            except MemoryError: num_failed += 1
            finally: fail_after(-1)
assert pydag.dag_structure(wide) == spec
assert all(map(lambda a, b: a is b, pydag.dag_leaves(wide), leaves))
assert num_failed > 100, num_failed
print("done")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="preloads a library of glibc's functions")
@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer has its own functions there")
def test_operations_without_the_cores_memory(tmp_path: Path) -> None:
    """Whichever allocation of the core fails: a MemoryError, no crash, and all works afterwards."""
    library = tmp_path / "failing_malloc.so"
    assert COMPILER is not None
    subprocess.run([COMPILER, "-O1", "-shared", "-fPIC", "-o", library, SOURCE], check=True)
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", PROGRAM, library],
        env=os.environ | {"LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-4000:]
