# SPDX-License-Identifier: Apache-2.0
"""Importing the package: quietly, and without what it doesn't need."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from operations import run_apart

import pydag
import pydag.integrations


@pytest.mark.parametrize("options", [(), ("-X", "dev", "-W", "error"), ("-O",)])
def test_import_is_quiet(options: tuple[str, ...]) -> None:
    """Importing prints nothing and warns of nothing, however strict the interpreter is."""
    assert run_apart("import pydag", *options) == ""


def test_import_needs_no_jax() -> None:
    """The package alone imports neither JAX nor NumPy."""
    source = """
import sys
before = set(sys.modules)
import pydag
pydag.dag_map(lambda x: x, [1, {"a": 2}])
pydag.reref(pydag.deref([(w := [1]), w]))
print(sorted({name.partition(".")[0] for name in set(sys.modules) - before} & {"jax", "numpy"}))
"""
    assert run_apart(source) == "[]\n"


ADDED = """
import sys, {first}
before = set(sys.modules)
import {second}
added = set(sys.modules) - before
print(*sorted(name for name in added if name.partition(".")[0] != "pydag"))
print(sum(name.partition(".")[0] == "pydag" for name in added))
"""


def test_import_loads_little_beside_optree() -> None:
    """Beyond optree, the package loads small modules of the standard library and 60 of its own."""
    others, own = run_apart(ADDED.format(first="optree", second="pydag")).splitlines()
    small = {"_bisect", "_struct", "binascii", "bisect", "gc", "math", "struct"}
    small |= {"_math_integer", "copy", "math.integer"}  # Python 3.15 has divided its modules anew
    assert set(others.split()) <= small
    assert int(own) <= 60


def test_sources_without_the_core_say_what_to_run(tmp_path: Path) -> None:
    """In a clone in which nothing was built, the import fails with one sentence."""
    folder = tmp_path / "pydag"
    folder.mkdir()
    shutil.copy(Path(pydag.__file__), folder)
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import pydag"],  # without what is installed
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: pydag's compiled core isn't in {folder}: if that is a clone, run "
        "`pip install -e .` or `make dev` there with this Python, or start Python in another folder"
    )


def test_without_jax_the_boundary_says_what_to_install() -> None:
    """`import pydag.jaxinterop` without JAX is an ImportError that says `pip install`."""
    source = """
import sys
sys.modules["jax"] = None
try:
    import pydag.jaxinterop
except ImportError as error:
    print("pip install" in str(error))
"""
    assert run_apart(source) == "True\n"


MISSING = """
import {module} as module
del module.{name}
try:
    import {imported}
except ImportError as error:
    print(error)
"""


def test_a_private_name_that_optree_lost() -> None:
    """The import fails, and says which name it is and which versions of optree have it."""
    names = {"module": "optree._C", "name": "is_dict_insertion_ordered", "imported": "pydag"}
    text = run_apart(MISSING.format(**names))
    assert text.startswith("pydag needs optree._C.is_dict_insertion_ordered, which optree 0.")
    assert "doesn't have. optree 0.20 has it: pip install " in text


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("jax._src.tree_util", "_registry"),
        ("jax._src.core", "pytype_aval_mappings"),
        ("jax._src.lax.lax", "_convert_element_type"),
    ],
)
def test_a_private_name_that_jax_lost(module: str, name: str) -> None:
    """The error has its name, as for optree; pydag itself can still be imported."""
    pytest.importorskip("jax")
    text = run_apart(
        "import pydag" + MISSING.format(module=module, name=name, imported="pydag.jaxinterop")
    )
    assert text.startswith(f"pydag needs {module}.{name}, which jax 0.")
    assert "doesn't have. jax 0.10.2 to 0.12 has it: pip install " in text


def test_without_pytorch_its_package_says_what_to_install() -> None:
    """An ImportError has the command."""
    source = """
import sys
sys.modules["torch"] = None
import pydag.integrations
try:
    pydag.integrations.torch
except ImportError as error:
    print(str(error)[:61])
"""
    assert run_apart(source).strip() == (
        "pydag.integrations.torch needs PyTorch: pip install torch (im"
    )


def test_modules_of_optree_by_their_names() -> None:
    """`pydag.accessors` has what optree's module of that name has."""
    import optree.accessors

    import pydag.accessors

    assert pydag.accessors.__all__ == optree.accessors.__all__
    assert pydag.accessors.PyTreeAccessor is optree.accessors.PyTreeAccessor


def test_what_a_package_lists() -> None:
    """`dir` of a package lists what is imported at its first use; other names are errors."""
    assert "view" in dir(pydag)
    assert "save" in dir(pydag.files)
    assert {"attrs", "jax", "numpy", "torch"} <= set(dir(pydag.integrations))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = pydag.integrations.nothing
