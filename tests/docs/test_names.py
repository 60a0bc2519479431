# SPDX-License-Identifier: Apache-2.0
"""The public names: `__all__`, and what is said about names that pydag doesn't have."""

import importlib
import inspect
import re
from pathlib import Path

import pytest
from operations import run_apart

import pydag

FUNCTIONS = Path(__file__).parents[2] / "docs/functions.md"


@pytest.mark.parametrize("name", ["pydag", "pydag.jaxinterop"])
def test_all_is_what_is_public(name: str) -> None:
    """`__all__` has every public name, modules if it names them, by alphabet, constants first."""
    if name == "pydag.jaxinterop":
        pytest.importorskip("jax")
    package = importlib.import_module(name)
    public = {
        name
        for name in dir(package)
        if not name.startswith("_")
        and (name in package.__all__ or not inspect.ismodule(getattr(package, name)))
    } - {"TYPE_CHECKING"}
    assert list(package.__all__) == sorted(public, key=lambda name: (not name.isupper(), name))


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("pydag", "pydag"),
        ("pydag.files", "pydag"),
        ("pydag.integrations.torch", "torch"),
        ("pydag.jaxinterop", "jax"),
    ],
)
def test_the_list_has_all_functions(name: str, needed: str) -> None:
    """Each public function of the package stands in docs/functions.md, with what it does."""
    pytest.importorskip(needed)
    package = importlib.import_module(name)
    text = FUNCTIONS.read_text("utf-8")
    functions = {
        name
        for name in package.__all__
        if name.islower()
        and not (getattr(getattr(package, name), "__module__", None) or "").startswith("optree")
    }
    assert functions - set(re.findall(r"`(?:files\.|pj\.)?(\w+)", text)) == set()


SAID = {
    "tree_map": "pydag has no 'tree_map'; did you mean 'dag_map'?",
    "register_pytree_node": (
        "pydag has no 'register_pytree_node'; did you mean 'register_pydag_node'?"
    ),
    "unregister_pytree_node": (
        "pydag has no 'unregister_pytree_node'; did you mean 'unregister_pydag_node'?"
    ),
    "PyTreeDef": "pydag has no 'PyTreeDef'; did you mean 'PyDagSpec'?",
    "MAX_RECURSION_DEPTH": (
        "pydag has no 'MAX_RECURSION_DEPTH': only memory bounds the depth of a structure"
    ),
    "ties": "pydag has no 'ties': it is in pydag.integrations.torch",
    "check": "pydag has no 'check': files are checked by the command `python -m pydag check PATH`",
    "dag_ravel": "pydag has no 'dag_ravel': integrations.jax, .numpy and .torch have one each",
    "no_such_name": "module 'pydag' has no attribute 'no_such_name'",
}


@pytest.mark.parametrize("name", SAID)
def test_a_missing_name_points_to_the_nearest_thing(name: str) -> None:
    """An `AttributeError` says which name is meant."""
    with pytest.raises(AttributeError) as caught:
        getattr(pydag, name)
    assert str(caught.value) == SAID[name]


def test_every_function_for_torch_is_found_there() -> None:
    """pydag says where a function is that `pydag.integrations.torch` has, without PyTorch, too."""
    room = Path(pydag.__file__).parent / "integrations" / "torch"
    names = re.findall(r"^from [.]\w+ import (\w+) as", (room / "__init__.py").read_text(), re.M)
    functions = {name for name in names if name.islower()} - {"dag_ravel"}
    assert len(functions) > 5
    for name in functions:
        with pytest.raises(AttributeError, match=f"has no '{name}': it is in pydag.integ"):
            getattr(pydag, name)


def test_a_name_of_the_jax_boundary_is_found_there() -> None:
    """Once `pydag.jaxinterop` is imported, its names are what is meant."""
    pytest.importorskip("jax")
    importlib.import_module("pydag.jaxinterop")
    with pytest.raises(AttributeError, match=r"did you mean 'pydag\.jaxinterop\.vmap'\?"):
        getattr(pydag, "vmap")  # noqa: B009  # mypy knows that it isn't there


REMOVED = {
    "custom_linear_solve": "write jax.lax.custom_linear_solve, with pydag.jaxinterop.Dag around",
    "export": "give jax.export.export a function of pydag.jaxinterop.tree.flatten's leaves",
    "pure_callback": "write jax.pure_callback, with pydag.jaxinterop.Dag around each tree",
}


@pytest.mark.parametrize("name", REMOVED)
def test_a_removed_name_says_what_to_write(name: str) -> None:
    """An `AttributeError` says it."""
    pytest.importorskip("jax")
    package = importlib.import_module("pydag.jaxinterop")
    with pytest.raises(AttributeError) as caught:
        getattr(package, name)
    assert f"pydag.jaxinterop has no '{name}': {REMOVED[name]}" in str(caught.value)


def test_asking_for_a_name_imports_nothing_of_the_package() -> None:
    """`hasattr` is False for what isn't there, and submodules are imported as ever."""
    source = """
import sys, pydag
before = set(sys.modules)
print(hasattr(pydag, "tree_map"), hasattr(pydag, "jit"), hasattr(pydag, "__wrapped__"))
print([name for name in set(sys.modules) - before if name.startswith("pydag")])
from pydag import errors
print(errors.CycleError is pydag.CycleError)
"""
    assert run_apart(source) == "False False False\n[]\nTrue\n"
