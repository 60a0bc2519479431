# SPDX-License-Identifier: Apache-2.0
"""Public functions that are functions of the core, with a definition in Python."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

import pydag._core as _core

from .options import with_options

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
        function: Any = _core.publish(
            core_name,
            definition,
            tuple(p.name for p in parameters),
            tuple(() if p.default is p.empty else (p.default,) for p in parameters),
            sum(p.kind is p.POSITIONAL_ONLY for p in parameters),
            sum(p.kind in _POSITIONAL for p in parameters),
            any(p.kind is p.VAR_POSITIONAL for p in parameters),
            f"{definition.__name__}{_bare(signature)}\n--\n\n{inspect.getdoc(definition)}",
        )
        return cast("F", function)

    return replace


def _bare(signature: inspect.Signature) -> inspect.Signature:
    """The signature without annotations, which `inspect` can read from a compiled function."""
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=signature.empty)
