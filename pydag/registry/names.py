# SPDX-License-Identifier: Apache-2.0
"""Registered classes by their names: `module.qualname`.

What is written to a file names classes; only a class that is registered by the time of reading is
found: of several that have one name, the one that was registered last. Nothing is imported for it.
"""

import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import optree

from pydag import _core

from . import lookup
from .latest import Fields, declared_fields, in_order


def class_name(cls: type) -> str:
    """The name under which a class is written."""
    return f"{cls.__module__}.{cls.__qualname__}"


# Typed for one class; without one it gives all of them.
_optree_entries: Any = optree.register_pytree_node.get


def _registered(namespace: str) -> Iterator[Iterable[object]]:
    spaces = ("", namespace)
    yield from lookup.fallback_classes()
    yield list(_optree_entries(namespace=namespace))
    yield in_order(cls for space, cls in _core.registered_classes() if space in spaces)


class ClassNames:
    """The registered classes that a namespace sees: its own, the global ones, and JAX's."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._classes: dict[str, list[type]] = {}
        for group in _registered(namespace):
            for cls in group:
                if isinstance(cls, type):
                    same = self._classes.get(class_name(cls), [])
                    self._classes[class_name(cls)] = [x for x in same if x is not cls] + [cls]

    def knows(self, cls: type) -> bool:
        """Whether this very class is registered."""
        return any(cls is other for other in self._classes.get(class_name(cls), ()))

    def find(self, name: str) -> type:
        """The class of that name that was registered last.

        Raises:
            ValueError: None is registered.

        Warns:
            UserWarning: An earlier one declares other fields.
        """
        found = self._classes.get(name, [])
        if not found:
            place = f" in namespace {self._namespace!r}" if self._namespace else ""
            raise ValueError(
                f"no class {name!r} is registered{place}: import the module that registers it first"
            )
        _warn_of_other_fields(name, found)
        return found[-1]


def _warn_of_other_fields(name: str, classes: list[type]) -> None:
    *earlier, last = map(declared_fields, classes)
    others = [fields for fields in earlier if fields != last]
    if others:
        warnings.warn(
            f"{len(classes)} classes were registered as {name!r}, with different fields; the last "
            f"one is taken\n  it has {_text(last)}\n  before, there was one with "
            f"{_text(others[-1])}",
            UserWarning,
            stacklevel=2,
        )


def _text(fields: Fields) -> str:
    data, meta = fields
    text = "any attributes" if data is None else f"the fields {', '.join(data)}"
    return text + f", and the meta fields {', '.join(meta)}" * bool(meta)
