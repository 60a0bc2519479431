# SPDX-License-Identifier: Apache-2.0
"""How names become public: functions of the core, and names that are imported at first use.

What is imported at first use, such as files, views and wrappers, costs nothing where it isn't used.
"""

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import pydag._core as _core
from pydag.structure.text import short_repr

from .options import missing, with_options

F = TypeVar("F", bound=Callable[..., Any])
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def compiled(core_name: str) -> Callable[[F], F]:
    """Replace a definition by a function of the core.

    The definition has the parameters and defaults, which `help`, type checkers and documentation
    show. A call goes straight to the core, which for a small tree takes less time than one frame of
    Python. The definition runs only if the arguments don't fit its parameters, or if the call gives
    a parameter that the core's function doesn't take.

    Args:
        core_name: The function of the core. It takes the parameters of the definition in their
            order, or the first of them.
    """

    def replace(definition: F) -> F:
        signature = inspect.signature(with_options(definition))
        parameters = signature.parameters.values()
        # `inspect` can read a signature without annotations from a compiled function.
        bare = signature.replace(
            parameters=[p.replace(annotation=p.empty) for p in parameters],
            return_annotation=signature.empty,
        )
        function: Any = _core.publish(
            core_name,
            definition,
            tuple(p.name for p in parameters),
            tuple(() if p.default is p.empty else (p.default,) for p in parameters),
            sum(p.kind is p.POSITIONAL_ONLY for p in parameters),
            sum(p.kind in _POSITIONAL for p in parameters),
            any(p.kind is p.VAR_POSITIONAL for p in parameters),
            f"{definition.__name__}{bare}\n--\n\n{inspect.getdoc(definition)}",
        )
        return cast("F", function)

    return replace


def at_first_use(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Makes `__getattr__` and `__dir__` for a package.

    Args:
        modules: Maps each such name to the module that defines it; a module's name to itself.
    """

    def find(name: str) -> Any:
        if name not in modules:
            raise missing(package, name)
        module = importlib.import_module(f"{package}.{modules[name]}")
        # A module may have imported another library's module of the same name.
        value = module if name == modules[name] else getattr(module, name, module)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return find, names


class _Missing:
    def __repr__(self) -> str:
        return "<MISSING>"


MISSING: Any = _Missing()
"""Stands for an argument that a call doesn't give."""


def check_function(name: str, func: object, tree: object) -> None:
    """Raises TypeError if the function argument of a function of DAGs can't be called."""
    if not callable(func):
        advice = f"\n  Swap them: {name}(f, tree)." if callable(tree) else ""
        raise TypeError(
            f"{name} takes the function first and then the tree, but the first argument can't be "
            f"called: {short_repr(func)}{advice}"
        )
