# SPDX-License-Identifier: Apache-2.0
"""Importing the package: quietly, and without what it doesn't need."""

import sys

import pytest
from operations import run_apart


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


@pytest.mark.skipif(sys.version_info < (3, 12), reason="optree itself hangs there")
def test_import_in_a_second_interpreter() -> None:
    """A second interpreter in the process either works or is refused; it does no harm."""
    source = """
import pydag
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
other = interpreters.create()
try:
    interpreters.run_string(other, "import pydag; pydag.dag_copy([1, [2]])")
except Exception:
    pass
interpreters.destroy(other)
print(pydag.dag_copy([1, [2]]))
"""
    assert run_apart(source).endswith("[1, [2]]\n")
