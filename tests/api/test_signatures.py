# SPDX-License-Identifier: Apache-2.0
"""Functions and the methods of specs have optree's parameters: names, kinds, order and defaults."""

import inspect
import re
from typing import Any

import optree
import pytest

import pydag

TREES = ("tree_", "treespec_", "broadcast_", "prefix_errors", "all_leaves")
FUNCTIONS = [name for name in optree.__all__ if name.startswith(TREES)]
OURS_ALONE = {"identity", "where", "all_paths"}
METHODS = [name for name in dir(optree.PyTreeSpec) if callable(getattr(optree.PyTreeSpec, name))]
NAMED = [name for name in METHODS if not name.startswith("_")]
# Comparisons get an `object` as any class does.
SPECIAL = ["__len__", "__getstate__", "__setstate__", "__lt__", "__le__", "__gt__", "__ge__"]
PROPERTIES = [
    name
    for name in dir(optree.PyTreeSpec)
    if isinstance(vars(optree.PyTreeSpec).get(name), property)
]


def ours(name: str) -> str:
    """The name of a parameter: `spec` where optree says `treespec`."""
    return name.replace("treespec", "spec")


def parameters(function: Any) -> list[tuple[str, Any, str]]:
    """Name, kind and default of each; optree has marks of its own for what is missing."""
    found = inspect.signature(function).parameters.values()
    return [(ours(p.name), p.kind, str(p.default)) for p in found]


def documented(method: Any) -> str:
    """The parameters of a method, from the signature in its documentation, without the types."""
    [line] = re.findall(r"\w+\((.*)\) -> ", (method.__doc__ or "").partition("\n")[0])
    without = re.sub(
        r"\[[^\[\]]*\]", "", re.sub(r"\[[^\[\]]*\]", "", re.sub(r"\[[^\[\]]*\]", "", line))
    )
    return re.sub(r": [^,=]*?(?= = |,|$)", "", without)


def our_name(name: str) -> str:
    """The name of a function."""
    return name.replace("treespec_", "dagspec_").replace("tree_", "dag_")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    """Each is there, and is called alike; what pydag adds is by keyword alone."""
    mine = parameters(getattr(pydag, our_name(name)))
    added = [parameter for parameter in mine if parameter[0] in OURS_ALONE]
    assert [parameter for parameter in mine if parameter not in added] == parameters(
        getattr(optree, name)
    )
    assert all(kind is inspect.Parameter.KEYWORD_ONLY for _, kind, _ in added)


@pytest.mark.parametrize("name", NAMED)
def test_methods(name: str) -> None:
    """Each method of a `PyTreeSpec` is one of a `PyDagSpec`, and is called alike."""
    mine, theirs = getattr(pydag.PyDagSpec, name), getattr(optree.PyTreeSpec, name)
    assert documented(mine) == documented(theirs)


@pytest.mark.parametrize("name", [*SPECIAL, *PROPERTIES])
def test_other_attributes(name: str) -> None:
    """Each property and special method of a `PyTreeSpec` is there."""
    assert hasattr(pydag.PyDagSpec, name)
