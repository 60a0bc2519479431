# SPDX-License-Identifier: Apache-2.0
"""The functions and methods of specs have optree's parameters: names, kinds, order and defaults."""

import inspect
import re
from typing import Any

import optree
import pytest

import pydag

FUNCTIONS = [name for name in optree.__all__ if name.startswith("treespec_")]
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


def parameters(function: Any) -> list[tuple[str, Any, Any]]:
    """Name, kind and default of each."""
    found = inspect.signature(function).parameters.values()
    return [(ours(p.name), p.kind, p.default) for p in found]


def documented(method: Any) -> str:
    """The parameters of a method, from the signature in its documentation, without the types."""
    [line] = re.findall(r"\w+\((.*)\) -> ", (method.__doc__ or "").partition("\n")[0])
    without = re.sub(
        r"\[[^\[\]]*\]", "", re.sub(r"\[[^\[\]]*\]", "", re.sub(r"\[[^\[\]]*\]", "", line))
    )
    return re.sub(r": [^,=]*?(?= = |,|$)", "", without)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    """Each `treespec_*` is there as `dagspec_*`, and is called alike."""
    assert parameters(getattr(pydag, ours(name).replace("spec_", "dagspec_", 1))) == parameters(
        getattr(optree, name)
    )


@pytest.mark.parametrize("name", NAMED)
def test_methods(name: str) -> None:
    """Each method of a `PyTreeSpec` is one of a `PyDagSpec`, and is called alike."""
    mine, theirs = getattr(pydag.PyDagSpec, name), getattr(optree.PyTreeSpec, name)
    assert documented(mine) == documented(theirs)


@pytest.mark.parametrize("name", [*SPECIAL, *PROPERTIES])
def test_other_attributes(name: str) -> None:
    """Each property and special method of a `PyTreeSpec` is there."""
    assert hasattr(pydag.PyDagSpec, name)
