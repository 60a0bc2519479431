# SPDX-License-Identifier: Apache-2.0
"""Classes whose `__eq__` and `__hash__` a library wrote: they compare an instance by its fields."""

import dataclasses
import inspect
import types
from typing import Any

from .class_table import bases_of, names_in


@dataclasses.dataclass(frozen=True)
class _Written:
    """A class to try out what `@dataclass` writes."""

    field: int


def _place(method: Any) -> tuple[str, str]:
    return method.__code__.co_filename, method.__code__.co_qualname


_PLACES = [_place(method) for method in (_Written.__eq__, _Written.__hash__)]


def has_generated_methods(cls: type) -> bool:
    """Whether `@dataclass`, attrs or pydantic wrote how instances are compared, or hashed."""
    bases = [names_in(base) for base in bases_of(cls)]
    for name in ("__eq__", "__hash__"):
        method = inspect.unwrap(next(names[name] for names in bases if name in names))
        if type(method) is types.FunctionType:
            is_attrs = method.__code__.co_filename.startswith("<attrs generated ")
            is_pydantic = (method.__module__ or "").partition(".")[0] == "pydantic"
            if is_attrs or is_pydantic or _place(method) in _PLACES:
                return True
    return False
