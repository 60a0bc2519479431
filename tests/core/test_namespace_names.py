# SPDX-License-Identifier: Apache-2.0
"""What can't be the name of a namespace: optree, whose registrations count, can't take it."""

import inspect
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from registering import fresh

import pydag
import pydag.dag
import pydag.files
from pydag import _core


class Point(NamedTuple):
    x: Any
    y: Any


LEAF = pydag.dag_structure(1)
NAMES = ["\udc80", "a\ud800", "\udfff" * 3]
# By the names of the parameters that have no default; the first one that fits counts.
GIVEN: dict[str, Any] = {
    "func": lambda *leaves: leaves[-1],
    "f": lambda *_: 1,
    "predicate": bool,
    "where": bool,
    "path": (0,),
    "paths": (0,),
    "old": 1,
    "new": 2,
    "sentinel": 0,
    "namedtuple": Point(LEAF, LEAF),
    "structseq": time.struct_time([LEAF] * 9),
    "iterable": [1],
    "prefix_tree": [1],
    "full_tree": [[1, 2]],
}
# The registrations are below; an entry is only a record; `dict_insertion_ordered` is optree's own.
OTHERS = {"RegistryEntry", "dict_insertion_ordered"}
if sys.version_info < (3, 15):
    OTHERS.add("dagspec_frozendict")


def functions() -> dict[str, Callable[..., Any]]:
    """All public functions that take a namespace, but those that register."""
    found = {}
    for name in sorted(pydag.__all__):
        function = getattr(pydag, name)
        if not callable(function) or "register" in name or name in OTHERS:
            continue
        try:
            parameters = inspect.signature(function).parameters
        except (TypeError, ValueError):
            continue
        if "namespace" in parameters:
            found[name] = function
    return found


def call(function: Callable[..., Any], namespace: str) -> Any:
    positional = [
        GIVEN.get(name, [1])
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is inspect.Parameter.empty
        and parameter.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    return function(*positional, namespace=namespace)


FUNCTIONS = functions()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_refuse_lone_surrogates(name: str) -> None:
    """Every function that looks classes up refuses the name, which it shows."""
    for namespace in NAMES:
        with pytest.raises(ValueError, match=r"^The namespace '.*\\ud.*' has a lone surrogate"):
            call(FUNCTIONS[name], namespace)


@pytest.mark.parametrize("namespace", NAMES)
def test_registrations_refuse_lone_surrogates(namespace: str) -> None:
    """Nothing is registered under such a name, nor looked for, nor taken out."""
    cls: Any = fresh()
    for work in (
        lambda: pydag.register_fields(cls, namespace=namespace),
        lambda: pydag.register_module(cls, namespace=namespace),
        lambda: pydag.register_pydag_node(cls, list, lambda *_: None, namespace=namespace),
        lambda: pydag.register_pydag_node_class(cls, namespace=namespace),
        lambda: pydag.unregister_pydag_node(cls, namespace=namespace),
        lambda: pydag.register_pydag_node.get(cls, namespace=namespace),
        lambda: pydag.register_pydag_node.get(namespace=namespace),
        lambda: pydag.dag.reexport(namespace=namespace, module="some.module"),
        lambda: _core.register_node(cls, list, list, object, namespace, True),
        lambda: _core.unregister(cls, namespace),
    ):
        with pytest.raises(ValueError, match="has a lone surrogate"):
            work()
    assert pydag.dag_leaves([cls]) == [cls]
