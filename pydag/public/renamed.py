# SPDX-License-Identifier: Apache-2.0
"""Errors for names that pydag doesn't have, with its own name for the thing, if there is one."""

import functools
import importlib
import opcode
import sys
import types
from collections.abc import Callable

_PREFIXES = {
    "tree_": "dag_",
    "treespec_": "dagspec_",
    "register_pytree_": "register_pydag_",
    "unregister_pytree_": "unregister_pydag_",
    "PyTreeSpec": "PyDagSpec",
    "PyTreeDef": "PyDagSpec",
}


def our_name(name: str) -> str:
    """What optree's `name` is called here."""
    for theirs, ours in _PREFIXES.items():
        if name.startswith(theirs):
            return ours + name.removeprefix(theirs)
    return name


def advice(name: str) -> str:
    """What to say about a name that the package doesn't have; "" if nothing is known about it."""
    package, ours = sys.modules["pydag"], our_name(name)
    if name == "jaxinterop":
        return "pydag.jaxinterop isn't imported yet: write `import pydag.jaxinterop as pj`"
    if ours in dir(package):
        return f"pydag has no '{name}'; did you mean '{ours}'?"
    if name == "MAX_RECURSION_DEPTH":
        return "pydag has no 'MAX_RECURSION_DEPTH': only memory bounds the depth of a structure"
    if f"dag_{name}" in dir(package):
        return f"pydag has no '{name}'; did you mean 'dag_{name}'?"
    if name in _names_for_jax():
        return f"pydag has no '{name}'; did you mean 'pydag.jaxinterop.{name}'?"
    return ""


_IMPORT_FROM = opcode.opmap["IMPORT_FROM"]


def _is_imported_from(frame: types.FrameType) -> bool:
    """Whether a frame is at `from ... import name`."""
    return frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == _IMPORT_FROM


@functools.cache
def _names_for_jax() -> frozenset[str]:
    """The public names of `pydag.jaxinterop`, read from its text: to import it would import JAX."""
    import ast
    from pathlib import Path

    text = Path(__file__).parents[1].joinpath("jaxinterop", "__init__.py").read_text("utf-8")
    for statement in ast.parse(text).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                return frozenset(ast.literal_eval(value))
    return frozenset()


_WITH_DAGS = "write {}, with pydag.jaxinterop.Dag around each tree."
_INSTEAD = {
    "custom_linear_solve": _WITH_DAGS.format("jax.lax.custom_linear_solve"),
    "custom_root": _WITH_DAGS.format("jax.lax.custom_root"),
    "debug": _WITH_DAGS.format("jax.debug"),
    "export": "give jax.export.export a function of pydag.jaxinterop.tree.flatten's leaves.",
    "io_callback": _WITH_DAGS.format("jax.experimental.io_callback"),
    "pmap": "write shard_map, or jit with shardings.",
    "pure_callback": _WITH_DAGS.format("jax.pure_callback"),
}
"""What to write for names of JAX's that `pydag.jaxinterop` doesn't have."""


def advice_for_jax(name: str) -> str:
    """The same of `pydag.jaxinterop`, which people ask for names of pydag's, equinox' and NNX's."""
    package, ours = sys.modules["pydag"], our_name(name)
    plain = name.removeprefix("filter_").lower()
    of_tree = name.removeprefix("tree_")
    if of_tree != name and of_tree in importlib.import_module("pydag.jaxinterop.tree").__all__:
        return f"pydag.jaxinterop has no '{name}'; did you mean 'pydag.jaxinterop.tree.{of_tree}'?"
    if ours in dir(package):
        return f"pydag.jaxinterop has no '{name}'; did you mean 'pydag.{ours}'?"
    if plain in _names_for_jax():
        return f"pydag.jaxinterop has no '{name}'; did you mean 'pydag.jaxinterop.{plain}'?"
    if name in {"new_ref", "Ref", "freeze"} & vars(sys.modules["jax"]).keys():
        return f"pydag.jaxinterop has no '{name}': write jax.{name}, whose refs pydag knows."
    if name in _INSTEAD:
        return f"pydag.jaxinterop has no '{name}': {_INSTEAD[name]}"
    if name in vars(sys.modules.get("optax", types)):
        return (
            f"pydag.jaxinterop has no '{name}': that is optax's\n"
            f"  Give optimizer what it returns: pydag.jaxinterop.optimizer(optax.{name}(...))."
        )
    return ""


def missing(name: str) -> Exception:
    """The error for a name that `pydag` doesn't have."""
    return _missing("pydag", name, advice)


def missing_for_jax(name: str) -> Exception:
    """The same for `pydag.jaxinterop`."""
    return _missing("pydag.jaxinterop", name, advice_for_jax)


def _missing(module: str, name: str, advise: Callable[[str], str]) -> Exception:
    if not name.startswith("_") and (text := advise(name)):
        # Of an AttributeError `from pydag import jit` keeps no word.
        kind = ImportError if _is_imported_from(sys._getframe(3)) else AttributeError
        return kind(text)
    # With `name` and `obj` Python itself proposes names with a similar spelling.
    return AttributeError(
        f"module '{module}' has no attribute '{name}'", name=name, obj=sys.modules[module]
    )
