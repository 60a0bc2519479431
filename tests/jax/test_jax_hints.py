# SPDX-License-Identifier: Apache-2.0
"""What is said of a Dag that is taken for its tree, and of modules that nobody opens."""

import copy
import pickle
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import pytest

from pydag import jaxinterop as pj


def test_a_dag_is_no_sequence() -> None:
    """The hints change nothing else: a Dag can't be iterated, and is copied and pickled."""
    dag: Any = pj.Dag({"a": 1.0})
    assert not isinstance(dag, Iterable)
    with pytest.raises(TypeError, match="not iterable"):
        iter(dag)
    assert not hasattr(dag, "__jax_array__")
    for other in (copy.copy(dag), copy.deepcopy(dag), pickle.loads(pickle.dumps(dag))):
        assert other.tree == {"a": 1.0}


MODULES = {
    "equinox": "import equinox as eqx; cell = eqx.nn.Identity()",
    "flax": "from flax import nnx; cell = nnx.Rngs(0)",
}


@pytest.mark.parametrize("library", MODULES)
def test_modules_without_the_boundary(library: str) -> None:
    """A module is a leaf without `pydag.jaxinterop`, and one warning says to import that."""
    pytest.importorskip(library)
    program = (
        f"import warnings, pydag; {MODULES[library]}\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    assert pydag.dag_leaves([cell, cell]) == [cell] == pydag.dag_leaves([cell])\n"
        "[warning] = caught\n"
        "print(warning.message, warning.filename)\n"
        "import pydag.jaxinterop\n"
        "assert not any(leaf is cell for leaf in pydag.dag_leaves([cell]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "Write `import pydag.jaxinterop` first" in done.stdout, done.stderr
    assert done.stdout.rstrip().endswith("<string>")
    assert done.returncode == 0, done.stderr
