# SPDX-License-Identifier: Apache-2.0
"""Lazy attributes of a class, whose values are stored in the instance that was asked for them."""

import functools

from .class_table import bases_of, inherits, names_in

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
