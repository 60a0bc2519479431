# SPDX-License-Identifier: Apache-2.0
"""Suggests what to write if a name, a keyword or the order of arguments is wrong."""

import difflib
import importlib
import inspect
import sys
from typing import Any, NoReturn

import pydag._core as _core
from pydag.structure.text import short_repr


class _Missing:
    __slots__ = ()

    def __repr__(self) -> str:
        return "<MISSING>"


MISSING: Any = _Missing()
"""Stands for an argument that a call doesn't give."""

_OURS = {
    "tree_": "dag_",
    "treespec_": "dagspec_",
    "register_pytree_": "register_pydag_",
    "unregister_pytree_": "unregister_pydag_",
    "PyTreeSpec": "PyDagSpec",
    "PyTreeDef": "PyDagSpec",
}
_DAGS = "write {}, with pydag.jaxinterop.Dag around each tree"
_IMPORT = "write `import pydag.jaxinterop as pj`, and pj.{}"
_INSTEAD = {
    "MAX_RECURSION_DEPTH": "only memory bounds the depth of a structure",
    "custom_linear_solve": _DAGS.format("jax.lax.custom_linear_solve"),
    "custom_root": _DAGS.format("jax.lax.custom_root"),
    "debug": _DAGS.format("jax.debug"),
    "export": "give jax.export.export a function of pydag.jaxinterop.tree.flatten's leaves",
    "io_callback": _DAGS.format("jax.experimental.io_callback"),
    "jaxinterop": "write `import pydag.jaxinterop as pj`",
    "new_ref": "write jax.new_ref, whose refs pydag knows",
    "pmap": "write shard_map, or jit with shardings",
    "pure_callback": _DAGS.format("jax.pure_callback"),
} | {name: _IMPORT.format(name) for name in ("Dag", "Module", "grad", "jit", "optimizer", "vmap")}


def our_name(name: str) -> str:
    """pydag's name for optree's `name`."""
    start = next((theirs for theirs in _OURS if name.startswith(theirs)), "")
    return _OURS.get(start, "") + name.removeprefix(start)


def missing(module: str, name: str) -> Exception:
    """The error for a name that a package of pydag doesn't have, with a likely name."""
    plain = name.removeprefix("filter_").lower()
    jax = "pydag.jaxinterop"
    tries = [("pydag", our_name(name)), (jax, name), ("pydag", f"dag_{name}"), (jax, plain)]
    if name[:1] == "_":  # nobody means a public name, and many ask for such
        tries = []
    elif module == jax:
        importlib.import_module(f"{jax}.tree")
        tries.insert(0, (f"{jax}.tree", name.removeprefix("tree_")))
    for package, meant in tries:
        if meant in getattr(sys.modules.get(package), "__all__", ()):
            where = "" if package == module == "pydag" else f"{package}."
            return AttributeError(f"{module} has no '{name}'; did you mean '{where}{meant}'?")
    cure = _INSTEAD.get(name)
    if module == jax and hasattr(sys.modules.get("optax"), name):
        cure = f"that is optax's\n  Give it to pydag.jaxinterop.optimizer(optax.{name}(...))."
    if cure:
        return AttributeError(f"{module} has no '{name}': {cure}")
    # With `name` and `obj` Python itself proposes names with a similar spelling.
    text = f"module '{module}' has no attribute '{name}'"
    return AttributeError(text, name=name, obj=sys.modules[module])


_SAME = {"where": "wrt", "wrt": "where", "argnum": "argnums", "only": "where"}
"""What is called so in one function has another name in another."""


def raise_unexpected(keyword: str) -> NoReturn:
    """Raises the TypeError for a keyword that the core doesn't know, in Python's own words.

    It names the function that was called from outside of the package, and its parameter with a
    similar name. The core calls this.
    """
    frame: Any = sys._getframe(1)
    function: Any = None
    while frame is not None and str(frame.f_globals.get("__package__")).startswith("pydag"):
        found = frame.f_globals.get(frame.f_code.co_name)
        if callable(found) and frame.f_code.co_name[0] != "_":
            function = found
        frame = frame.f_back
    parameters = list(inspect.signature(function).parameters) if function else []
    near = [_SAME.get(keyword, ""), *difflib.get_close_matches(keyword, parameters, 1)]
    advice = next((f". Did you mean {name!r}?" for name in near if name in parameters), "")
    start = f"{function.__name__}() " if function else ""
    raise TypeError(f"{start}got an unexpected keyword argument {keyword!r}{advice}")


def check_function(name: str, func: object, tree: object) -> None:
    """Checks the function argument of a function of DAGs.

    Raises:
        TypeError: It can't be called, or it looks as if it and the tree were swapped.
    """
    if callable(func):
        # A model may be called, too; but a function is no tree.
        if not callable(tree) or not _core.is_leaf(tree) or _core.is_leaf(func):
            return
        wrong = f"the second argument is a function: {short_repr(tree)}"
    else:
        wrong = f"the first argument can't be called: {short_repr(func)}"
    advice = f"\n  Swap them: {name}(f, tree)." if callable(tree) else ""
    raise TypeError(f"{name} takes the function first and then the tree, but {wrong}{advice}")
