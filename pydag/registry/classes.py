# SPDX-License-Identifier: Apache-2.0
"""What a class defines, read without running its code: bases, lazy attributes, written methods."""

import dataclasses
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

bases_of: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
"""The classes that a class inherits from, itself first, whatever its metaclass says."""
names_in: Callable[[type], "types.MappingProxyType[str, Any]"] = type.__dict__["__dict__"].__get__
"""What is defined in a class itself, whatever its metaclass says."""


def inherits(cls: type, base: type) -> bool:
    """Whether `cls` is `base` or a class below it; no `__subclasscheck__` is called."""
    return any(known is base for known in bases_of(cls))


# No generators below: CPython 3.13 crashes if memory runs out while it makes a generator.


def attribute_of(cls: type, name: str) -> object:
    """What a class has under a name, without its metaclass; None where it has nothing."""
    found = [names_in(base)[name] for base in bases_of(cls) if name in names_in(base)]
    return found[0] if found else None


def cached_names(cls: type) -> list[str]:
    """The names under which lazy attributes of a class store what they computed."""
    names = dict.fromkeys([name for base in bases_of(cls) for name in names_in(base)])
    fields = attribute_of(cls, "__dataclass_fields__") or {}
    found = [(name, attribute_of(cls, name)) for name in names]
    lazy = [(n, x) for n, x in found if _is_lazy(x) and not (type(fields) is dict and n in fields)]
    own = functools.cached_property
    return [(inherits(type(x), own) and getattr(x, "attrname", None)) or n for n, x in lazy]


# Methods of these kinds aren't callable.
_METHODS = (classmethod, functools.partialmethod, functools.singledispatchmethod)


def _is_lazy(found: object) -> bool:
    """Whether an attribute of a class computes a value, which it may store in the instance.

    That is a descriptor with `__get__` and without `__set__`, such as `functools.cached_property`,
    and no method. None of its code runs.
    """
    kind = type(found)
    protocol = ("__get__", "__set__", "__call__")
    defined = [name for name in protocol if attribute_of(kind, name) is not None]
    return defined == ["__get__"] and True not in [inherits(kind, known) for known in _METHODS]


def _place(method: Any) -> tuple[str, str]:
    return method.__code__.co_filename, method.__code__.co_qualname


@functools.cache
def _dataclass_places() -> list[tuple[str, str]]:
    """Where the methods are that `@dataclass` writes, as those of a class that has some."""

    @dataclasses.dataclass(frozen=True)
    class Written:
        field: int

    return [_place(method) for method in (Written.__eq__, Written.__hash__)]


def has_generated_methods(cls: type) -> bool:
    """Whether `@dataclass`, attrs or pydantic wrote how instances are compared, or hashed."""
    bases = [names_in(base) for base in bases_of(cls)]
    for name in ("__eq__", "__hash__"):
        method = inspect.unwrap(next(names[name] for names in bases if name in names))
        if type(method) is types.FunctionType:
            is_attrs = method.__code__.co_filename.startswith("<attrs generated ")
            is_pydantic = (method.__module__ or "").partition(".")[0] == "pydantic"
            if is_attrs or is_pydantic or _place(method) in _dataclass_places():
                return True
    return False
