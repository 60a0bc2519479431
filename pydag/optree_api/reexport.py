# SPDX-License-Identifier: Apache-2.0
"""A library's own copy of `pydag.dag`, in which its namespace is the default."""

import functools
import importlib
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pydag._core as _core
from pydag.registry.optree_private import GLOBAL_NAMESPACE


def _with_default(function: Callable[..., Any], namespace: str) -> Callable[..., Any]:
    """The same function with another default for its parameter `namespace`, if it has it."""
    signature = inspect.signature(function)
    if "namespace" not in signature.parameters:
        return function
    is_positional = (
        signature.parameters["namespace"].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    )
    place = list(signature.parameters).index("namespace")

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if not (is_positional and len(args) > place):
            kwargs.setdefault("namespace", namespace)
        return function(*args, **kwargs)

    parameters = [
        p.replace(default=namespace) if p.name == "namespace" else p
        for p in signature.parameters.values()
    ]
    wrapped.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # inspect reads it
    if callable(get := getattr(function, "get", None)):
        wrapped.get = _with_default(get, namespace)  # type: ignore[attr-defined]  # as the function has
    return wrapped


class ReexportedModule(ModuleType):
    """The names of another module, with a default namespace."""

    def __init__(self, name: str, original: ModuleType, namespace: str) -> None:
        super().__init__(name, f"{original.__name__} with the namespace {namespace!r} as default.")
        self.__all__ = sorted(set(original.__all__) - {"reexport"})
        for public in self.__all__:
            thing = getattr(original, public)
            is_function = inspect.isroutine(thing)
            setattr(self, public, _with_default(thing, namespace) if is_function else thing)

    def __dir__(self) -> list[str]:
        return [name for name in vars(self) if not name.startswith("_")]


def reexport(*, namespace: str, module: str | None = None) -> ModuleType:
    """A copy of `pydag.dag` with another default namespace, which `import` then finds.

    Its submodules `dataclasses` and `functools` also have that default.

    Args:
        namespace: The default of each function that has an argument of this name.
        module: The full name of the new module. Left out: the name of the calling module, followed
            by `.dag`.

    Returns:
        The module.

    Raises:
        TypeError: The namespace is no string.
        ValueError: The namespace has a lone surrogate, the name isn't a valid module name, or such
            a module exists.

    >>> tree = reexport(namespace="models", module="models.tree")
    >>> tree.leaves([1, [2]]), tree.__name__
    ([1, 2], 'models.tree')
    """
    if namespace is GLOBAL_NAMESPACE:
        namespace = ""
    _core.check_namespace(namespace)
    if module is None:
        module = f"{sys._getframe(1).f_globals.get('__name__', '__main__')}.dag"
    if not all(part.isidentifier() for part in module.split(".")):
        raise ValueError(f"invalid module name: {module!r}")
    originals = {
        suffix: importlib.import_module(f"pydag.{name}")
        for suffix, name in (
            ("", "dag"),
            (".dataclasses", "dataclasses"),
            (".functools", "functools"),
        )
    }
    for suffix in originals:
        if module + suffix in sys.modules:
            raise ValueError(f"module {module + suffix!r} already exists")
    copies = {
        suffix: ReexportedModule(module + suffix, original, namespace)
        for suffix, original in originals.items()
    }
    for suffix, each in copies.items():
        sys.modules[module + suffix] = each
        if suffix:
            setattr(copies[""], suffix[1:], each)
    return copies[""]
