# SPDX-License-Identifier: Apache-2.0
"""Errors for names that pydag doesn't have, with its own name for the thing, if there is one."""

import sys
from typing import Any

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
    if ours in vars(package):
        return f"pydag has no '{name}'; did you mean '{ours}'?"
    if name == "MAX_RECURSION_DEPTH":
        return "pydag has no 'MAX_RECURSION_DEPTH': only memory bounds the depth of a structure"
    if name in getattr(sys.modules.get("pydag.jaxinterop"), "__all__", ()):
        return f"pydag has no '{name}'; did you mean 'pydag.jaxinterop.{name}'?"
    return ""


def __getattr__(name: str) -> Any:
    """Called for each name that the package doesn't have: `__init__` imports it."""
    if not name.startswith("_") and (text := advice(name)):
        raise AttributeError(text)
    # With `name` and `obj` Python itself proposes names with a similar spelling.
    raise AttributeError(
        f"module 'pydag' has no attribute '{name}'", name=name, obj=sys.modules["pydag"]
    )
