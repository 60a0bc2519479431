# SPDX-License-Identifier: Apache-2.0
"""What objects hold that are leaves: attributes, items, what a view or an iterator leads to.

No code of the objects' classes runs here: attributes are read from `__dict__` and slots.
"""

import collections
import enum
import functools
import gc
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from pydag.registry.class_table import ClassTable, bases_of, inherits, names_in

from .leaves import is_known_to_jax

Part = tuple[str, Any, Any]
"""How a part is got from a whole (a format), the name or key in it, and the part."""

Contents = Callable[[Any], list[Part]]

_ordered: collections.OrderedDict[Any, Any] = collections.OrderedDict()


VIEWS = (
    *map(type, ({}.keys(), {}.values(), {}.items())),
    *map(type, (_ordered.keys(), _ordered.values(), _ordered.items())),
    types.MappingProxyType,
)
"""The views of dicts."""


def is_view(leaf: Any) -> bool:
    """Whether it shows what a dict holds."""
    return any(type(leaf) is view for view in VIEWS)


def is_iterator(leaf: Any) -> bool:
    """Whether it is used up by who looks at it."""
    return _iterators.of(leaf)


def _is_iterator(leaf: Any) -> bool:
    names = [names_in(base) for base in bases_of(type(leaf))]
    return all(any(name in own for own in names) for name in ("__next__", "__iter__"))


_iterators = ClassTable(_is_iterator)


def _of_dict(whole: Any) -> list[Part]:
    return [("[{}]", key, part) for key, part in list(dict.items(whole))]


def _in_order(iterate: Callable[[Any], Iterator[Any]]) -> Contents:
    def items(whole: Any) -> list[Part]:
        return [("[{}]", i, part) for i, part in enumerate(list(iterate(whole)))]

    return items


def _in_a_row(iterate: Callable[[Any], Iterator[Any]], count: Callable[[Any], int]) -> Contents:
    """The items of a list or tuple. Of one that somebody is filling none: some may be missing."""
    items = _in_order(iterate)
    return lambda whole: items(whole) if len(gc.get_referents(whole)) >= count(whole) else []


def _of_set(whole: Any) -> list[Part]:
    return [("{}", "{...}", part) for part in list(_iterate_set(whole))]


def _iterate_set(whole: Any) -> Iterator[Any]:
    return (set if inherits(type(whole), set) else frozenset).__iter__(whole)


def _of_partial(whole: Any) -> list[Part]:
    return [(".{}", name, get(whole)) for name, get in _PARTIAL]


def _of_method(whole: Any) -> list[Part]:
    return [(".{}", "__self__", whole.__self__)]


def _of_exception(whole: Any) -> list[Part]:
    return [(".{}", "args", _ARGS(whole))]


def _of_slice(whole: Any) -> list[Part]:
    return [(".{}", name, getattr(whole, name)) for name in ("start", "stop", "step")]


def _of_referents(whole: Any) -> list[Part]:
    """What an iterator or a view of Python's own leads to, without asking it for an item."""
    return [("{}", "{...}", part) for part in gc.get_referents(whole)]


_ARGS = names_in(BaseException)["args"].__get__

_PARTIAL = [
    (name, names_in(functools.partial)[name].__get__) for name in ("func", "args", "keywords")
]

# The parts of instances of these classes, and of classes below them, beside attributes.
CONTAINERS: dict[type, Contents] = {
    dict: _of_dict,
    list: _in_a_row(list.__iter__, list.__len__),
    tuple: _in_a_row(tuple.__iter__, tuple.__len__),
    collections.deque: _in_order(collections.deque.__iter__),
    set: _of_set,
    frozenset: _of_set,
    functools.partial: _of_partial,
    types.MethodType: _of_method,
    types.BuiltinMethodType: _of_method,
    types.MethodWrapperType: _of_method,
    BaseException: _of_exception,
    slice: _of_slice,
    **dict.fromkeys(VIEWS, _of_referents),
}

# The modules whose iterators hold nothing but references to what they iterate over.
_MODULES_OF_ITERATORS = ("builtins", "itertools", "collections")

# What may hold an array without being data: functions, and what is made once for all.
_JITTED: type = type(jax.jit(len))
_EXEMPT = (type, types.FunctionType, types.ModuleType, enum.Enum, _JITTED)

# Numbers, text and outlines of arrays: JAX may know them, but they are no arrays.
_NUMBERS_AND_TEXT = (bool, int, float, complex, str)
_NO_ARRAYS = (*_NUMBERS_AND_TEXT, np.generic, jax.ShapeDtypeStruct)


def is_bound(leaf: Any) -> bool:
    """Whether it is a bound method."""
    return CONTAINERS.get(type(leaf)) is _of_method


class Readers(NamedTuple):
    """How the parts of the instances of a class are read."""

    is_array: bool
    contents: tuple[Contents, ...]
    attributes: Callable[[Any], Any] | None  # gives the `__dict__`
    slots: tuple[tuple[str, Callable[[Any], Any]], ...]

    def is_blind(self) -> bool:
        """Whether the instances have no parts."""
        return not (self.is_array or self.contents or self.attributes or self.slots)

    def parts(self, whole: Any) -> Iterator[Part]:
        """The parts of an instance."""
        for contents in self.contents:
            yield from contents(whole)
        attributes: Any = self.attributes(whole) if self.attributes is not None else None
        if inherits(type(attributes), dict):
            for name, part in list(dict.items(attributes)):
                yield ".{}", name, part
        for name, get in self.slots:
            try:
                yield ".{}", name, get(whole)
            except AttributeError:
                continue  # not set


# How the `__dict__` is got, unless the class itself says what it is.
_DESCRIPTORS = (types.GetSetDescriptorType, types.MemberDescriptorType)

_NOTHING = Readers(False, (), None, ())


def _readers(instance: Any) -> Readers:
    cls = type(instance)
    if any(inherits(cls, exempt) for exempt in _EXEMPT):
        return _NOTHING
    if is_known_to_jax(cls) and not any(inherits(cls, base) for base in _NUMBERS_AND_TEXT):
        is_array = not any(inherits(cls, other) for other in _NO_ARRAYS)
        return Readers(is_array, (), None, ())
    contents = tuple(read for base, read in CONTAINERS.items() if inherits(cls, base))
    if is_iterator(instance) and MODULE(cls) in _MODULES_OF_ITERATORS:
        contents = (_of_referents,)
    found = [names_in(base).get("__dict__") for base in bases_of(cls)]
    dicts = [d for d in found if d is not None and type(d) in _DESCRIPTORS]
    slots = tuple(
        (name, member.__get__)
        for base in reversed(bases_of(cls))
        if "__slots__" in names_in(base)
        for name, member in names_in(base).items()
        if type(member) is types.MemberDescriptorType
    )
    return Readers(False, contents, dicts[0].__get__ if dicts else None, slots)


readers_of = ClassTable(_readers).of
"""How the parts of an object are read."""


def readers_with_functions(part: Any) -> Readers:
    """How parts are read if functions and classes are opened, too."""
    if type(part) is types.FunctionType:
        return _FUNCTION
    if type(part) is _JITTED:
        return _COMPILED
    return _CLASS if inherits(type(part), type) else readers_of(part)


def _of_function(whole: Any) -> list[Part]:
    parts: list[Part] = [
        (".__closure__[{}].cell_contents", i, cell.cell_contents)
        for i, cell in enumerate(whole.__closure__ or ())
        if gc.get_referents(cell)  # else it is empty
    ]
    parts += [(".{}", "__defaults__", whole.__defaults__)]
    parts += [(".{}", "__kwdefaults__", whole.__kwdefaults__)]
    return parts + [(".{}", name, part) for name, part in list(whole.__dict__.items())]


def _of_jitted(whole: Any) -> list[Part]:
    return [(".{}", "__wrapped__", getattr(whole, "__wrapped__", None))]


def _of_class(whole: Any) -> list[Part]:
    found = list(names_in(whole).items())
    return [(".{}", name, part) for name, part in found if isinstance(part, jax.core.Tracer)]


_FUNCTION = Readers(False, (_of_function,), None, ())
_COMPILED = Readers(False, (_of_jitted,), None, ())
_CLASS = Readers(False, (_of_class,), None, ())


NAME = type.__dict__["__name__"].__get__
QUALNAME = type.__dict__["__qualname__"].__get__
MODULE = type.__dict__["__module__"].__get__
