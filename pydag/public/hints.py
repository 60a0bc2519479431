# SPDX-License-Identifier: Apache-2.0
"""Suggests what to write instead of a name or a keyword that pydag doesn't have."""

import difflib
import importlib
import inspect
import re
import sys
from typing import Any, NoReturn

_JAX = "pydag.jaxinterop"
_INSTEAD = {
    "MAX_RECURSION_DEPTH": "only memory bounds the depth of a structure",
    "export": f"give jax.export.export a function of {_JAX}.tree.flatten's leaves",
    "pmap": "write shard_map, or jit with shardings",
} | dict.fromkeys(("Dag", "Module", "grad", "jaxinterop", "jit", "vmap"), f"first import {_JAX}")


def our_name(name: str) -> str:
    """pydag's name for optree's `name`."""
    return re.sub("^PyTree(Spec|Def)", "PyDagSpec", re.sub("^tree|(?<=_py)tree", "dag", name))


def missing(module: str, name: str) -> AttributeError:
    """The error for a name that a package of pydag doesn't have, with what to write instead."""
    error = AttributeError(f"module '{module}' has no attribute '{name}'")
    error.name, error.obj = name, sys.modules[module]  # Python proposes names with these
    if name[:1] == "_":
        return error
    packages = ["pydag", _JAX]
    if module == _JAX:
        packages.insert(0, importlib.import_module(f"{_JAX}.tree").__name__)
    for package in packages:
        for near in (our_name(name), f"dag_{name}", re.sub("^(tree|filter)_", "", name).lower()):
            if near in getattr(sys.modules.get(package), "__all__", ()):
                where = "" if package == module == "pydag" else f"{package}."
                return AttributeError(f"{module} has no '{name}'; did you mean '{where}{near}'?")
    cure = _INSTEAD.get(name)
    for place in ("optax", "jax", "jax.lax", "jax.experimental"):
        if module == _JAX and not cure and hasattr(sys.modules.get(place), name):
            cure = f"write {place}.{name}, with {_JAX}.Dag around each tree"
            if place == "optax":
                cure = f"that is optax's\n  Give it to {_JAX}.optimizer(optax.{name}(...))."
    return AttributeError(f"{module} has no '{name}': {cure}") if cure else error


def raise_unexpected(keyword: str) -> NoReturn:
    """Raises Python's TypeError for a keyword that the core, which calls this, doesn't know."""
    frame: Any = sys._getframe(1)
    function: Any = None  # the outermost public function of pydag
    while frame and str(frame.f_globals.get("__package__")).startswith("pydag"):
        if (name := frame.f_code.co_name)[0] != "_":
            function = frame.f_globals.get(name, function)
        frame = frame.f_back
    same = {"where": "wrt", "wrt": "where"}.get(keyword, keyword)
    parameters = inspect.signature(function).parameters if function else ()
    near = difflib.get_close_matches(same, parameters, 1)
    advice = f". Did you mean {near[0]!r}?" if near else ""
    name = f"{function.__name__}() " if function else ""
    raise TypeError(f"{name}got an unexpected keyword argument {keyword!r}{advice}")
