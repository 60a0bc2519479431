# SPDX-License-Identifier: Apache-2.0
"""Mistakes with Dags and with donated models: what the errors say to do."""

import copy
import pickle
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import jax.numpy as jnp
import pytest
from pydag.jaxinterop.compiled.deleted import DELETED

import pydag
from pydag import jaxinterop as pj


def double(model: Any) -> Any:
    return pydag.dag_map(lambda x: 2 * x, model)


def mixed(model: Any, other: Any) -> Any:
    return pydag.dag_map(jnp.add, model, other)


def total(model: Any) -> Any:
    return model["a"].sum()


def notes(error: BaseException) -> list[str]:
    """Without JAX's note about its frames, by their beginnings."""
    return [note for note in getattr(error, "__notes__", []) if not note.startswith("---")]


def test_a_dag_is_no_sequence() -> None:
    """The hints change nothing else: a Dag can't be iterated, and is copied and pickled."""
    dag: Any = pj.Dag({"a": 1.0})
    assert not isinstance(dag, Iterable)
    with pytest.raises(TypeError, match="not iterable"):
        iter(dag)
    assert not hasattr(dag, "__jax_array__")
    for other in (copy.copy(dag), copy.deepcopy(dag), pickle.loads(pickle.dumps(dag))):
        assert other.tree == {"a": 1.0}


def test_a_donated_model_used_again() -> None:
    """The error says which leaf was deleted, and that the function donates this argument."""
    step = pj.jit(double, donate_argnums=0)
    model = {"a": jnp.ones(2), "b": [jnp.zeros(2)]}
    step(model)
    for _ in range(2):
        with pytest.raises(DELETED, match="deleted") as raised:
            step(model)
        deleted, donor = notes(raised.value)[-2:]
        assert deleted == "The array was deleted before this call: args[0]['a'], and 1 more."
        assert donor.startswith("double at ")
        assert "donates this argument (donate_argnums, donate_argnames)" in donor


def test_a_donated_model_given_to_another_function() -> None:
    """One that donates nothing, or not this argument, names the functions that donate."""
    step = pj.jit(mixed, donate_argnames="model")
    model = {"a": jnp.ones(2)}
    fine = step(model=model, other={"a": jnp.ones(2)})
    with pytest.raises(DELETED, match="deleted") as raised:
        pj.jit(total)(model)
    deleted, donors = notes(raised.value)[-2:]
    assert deleted == "The array was deleted before this call: args[0]['a']."
    assert donors.startswith("Of the functions compiled by pydag.jaxinterop.jit these donate")
    assert "mixed at " in donors
    with pytest.raises(DELETED, match="deleted") as raised:
        step(fine, model)
    assert "args[1]['a']" in notes(raised.value)[-2]
    assert notes(raised.value)[-1].startswith("Of the functions compiled")


def test_other_errors_get_no_such_note() -> None:
    """A RuntimeError of the function's own is raised as it is."""

    @pj.jit
    def fails(model: Any) -> Any:
        raise RuntimeError("nothing was taken away")

    with pytest.raises(RuntimeError, match="taken away") as raised:
        fails({"a": jnp.ones(2)})
    assert not any("deleted" in note for note in notes(raised.value))


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
