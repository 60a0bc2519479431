# SPDX-License-Identifier: Apache-2.0
"""Registered classes by their names: `module.qualname`.

A file names classes. Reading finds only classes that are registered by then, or that the reader
names. Of several classes with one name it finds the class that was registered last. It imports
nothing.
"""

import builtins
import collections
import functools
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import optree

import pydag._core as _core

from . import lookup
from .function_names import FunctionNames
from .tables import Fields, declared_fields, in_order

# The meaning of a name: the class of a node, of a namedtuple or struct sequence, a default
# factory, or a class that is itself a value.
Role = Literal["node", "class", "factory", "value"]
# A call of one of these runs only code of Python itself.
_PLAIN = (
    bool, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset, type(None),
    collections.OrderedDict, collections.defaultdict, collections.deque,
    getattr(builtins, "frozendict", dict),
)  # fmt: skip
_SHOWN = 8  # of the classes in an error
_own_module = type.__dict__["__module__"].__get__
_own_qualname = type.__dict__["__qualname__"].__get__


def class_name(cls: type) -> str:
    """The name under which a class is written. No code of its metaclass runs."""
    return f"{_own_module(cls)}.{_own_qualname(cls)}"


# Typed for a call with a class; without a class it returns all entries.
_optree_entries: Any = optree.register_pytree_node.get


def _registered(namespace: str) -> Iterator[Iterable[object]]:
    spaces = ("", namespace)
    yield from lookup.fallback_classes()
    yield list(_optree_entries(namespace=namespace))
    yield in_order(cls for space, cls in _core.registered_classes() if space in spaces)


class UnknownClassError(ValueError):
    """A file, or JSON, names a class that isn't registered here."""


class UnaskedError(ValueError):
    """A file names classes that it may not use unless the reader names them.

    Args:
        where: Where the first of them appears.
    """

    def __init__(self, classes: list[type], where: str = "") -> None:
        self.classes, shown = classes, classes[:_SHOWN]
        more = len(classes) - len(shown)
        names = ", ".join(class_name(cls)[:120] for cls in shown) + f" and {more} more" * bool(more)
        short = ", ".join(_own_qualname(cls)[:80] for cls in shown) + ", ..." * bool(more)
        super().__init__(
            f"{where}the file names classes that have code of their own: {names}\n"
            f"  If you trust the file with them, name them, classes=[{short}]; "
            "or fill a model that you have built, like=."
        )


def _is_among(cls: type, classes: Iterable[type]) -> bool:
    return any(cls is other for other in classes)


def _by_name(classes: Iterable[object]) -> dict[str, list[type]]:
    """Distinct classes by their names."""
    found: dict[str, list[type]] = {}
    for cls in classes:
        if isinstance(cls, type):
            same = found.get(class_name(cls), [])
            found[class_name(cls)] = [x for x in same if x is not cls] + [cls]
    return found


def _is_quiet(cls: type) -> bool:
    """Whether a class can be hashed, compared and inspected without code of its metaclass."""
    meta = type(cls)
    looks = meta.__getattribute__ is type.__getattribute__ and not hasattr(meta, "__getattr__")
    return looks and lookup.is_found_by_identity(cls)


class ClassNames:
    """The registered classes that a namespace sees: its own, the global ones, and JAX's.

    Args:
        asked: The classes that the reader of a file named. Besides them the file may use only
            classes whose code isn't run: builtin classes, and those of `register_fields`. None: any
            class, since nothing is built.
    """

    def __init__(
        self,
        namespace: str,
        asked: Iterable[type] | None = None,
        functions: FunctionNames | None = None,
    ) -> None:
        self.namespace = namespace
        self.functions = FunctionNames() if functions is None else functions
        self._asked = None if asked is None else _by_name(asked)

    @functools.cached_property
    def _classes(self) -> dict[str, list[type]]:
        # JAX's alone are many, and mostly none is asked for.
        return _by_name(cls for group in _registered(self.namespace) for cls in group)

    def knows(self, cls: type) -> bool:
        """Whether this very class is registered."""
        return _is_among(cls, self._classes.get(class_name(cls), ()))

    def has(self, name: str) -> bool:
        """Whether a class is registered under this name."""
        return name in self._classes

    def find(self, name: str, role: Role) -> type:
        """The class of that name that was registered last.

        Raises:
            UnaskedError: The file may not use it unless the reader names it.
            UnknownClassError: No such class is registered.

        Warns:
            UserWarning: An earlier class of that name declares other fields.
        """
        asked = (self._asked or {}).get(name)
        found = asked or self._classes.get(name) or _builtin(name)
        if found:
            if not asked and not self._is_free(found[-1], role):
                raise UnaskedError(found[-1:])
            _warn_of_other_fields(name, found)
            return found[-1]
        where = f" in namespace {self.namespace!r}" if self.namespace else ""
        cure = "import the module that registers it first"
        if role == "class":
            cure = "a namedtuple is written by name: register it, or load it with classes= or like="
            if self._asked is None:
                cure += ", from a file"
        raise UnknownClassError(f"no class {name!r} is registered{where}: {cure}")

    def _is_free(self, cls: type, role: Role) -> bool:
        """Whether a file may use a class that its reader did not name."""
        if self._asked is None:
            return role != "value" or _is_quiet(cls)  # a value may be a key, which is hashed
        if role in ("factory", "value") and _is_among(cls, _PLAIN):
            return True
        return role in ("node", "value") and _is_quiet(cls) and self._is_built_by_fields(cls)

    def _is_built_by_fields(self, cls: type) -> bool:
        """Whether instances are made and destroyed without any function of the class."""
        found = _core.find_registration(cls, self.namespace)
        return found is not None and found[0] is None and not hasattr(cls, "__del__")


def _builtin(name: str) -> list[type]:
    module, _, rest = name.rpartition(".")
    found = getattr(builtins, rest, None) if module == "builtins" else None
    return [found] if isinstance(found, type) else []


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
