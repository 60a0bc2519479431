# SPDX-License-Identifier: Apache-2.0
"""Objects that hold arrays where nobody sees them: in attributes of a class that isn't registered.

Such an object is a leaf that JAX can't trace, and so a constant. Its arrays would not be trained,
and a compiled function would not notice when they change.

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

from pydag.jaxinterop.messages.roots import shortened
from pydag.structure.text import short_repr

from .class_table import ClassTable, bases_of, inherits, names_in
from .leaves import is_known_to_jax, is_traced

Part = tuple[str, Any, Any]
"""How a part is got from a whole (a format), the name or key in it, and the part."""

Contents = Callable[[Any], list[Part]]


class Hidden(NamedTuple):
    """An array in the attributes of a leaf."""

    path: str  # from the leaf on
    array: Any


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


_PARTIAL = [
    (name, names_in(functools.partial)[name].__get__) for name in ("func", "args", "keywords")
]

# The parts of instances of these classes, and of classes below them, beside attributes.
_CONTAINERS: dict[type, Contents] = {
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
}

# What may hold an array without being data: functions, and what is made once for all.
_EXEMPT = (type, types.FunctionType, types.ModuleType, enum.Enum)

# Numbers, text and outlines of arrays: JAX may know them, but they are no arrays.
_NO_ARRAYS = (bool, int, float, complex, str, np.generic, jax.ShapeDtypeStruct)


class _Readers(NamedTuple):
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

_NOTHING = _Readers(False, (), None, ())


def _readers(instance: Any) -> _Readers:
    cls = type(instance)
    if any(inherits(cls, exempt) for exempt in _EXEMPT):
        return _NOTHING
    if is_known_to_jax(cls):
        is_array = not any(inherits(cls, other) for other in _NO_ARRAYS)
        return _Readers(is_array, (), None, ())
    contents = tuple(read for base, read in _CONTAINERS.items() if inherits(cls, base))
    found = [names_in(base).get("__dict__") for base in bases_of(cls)]
    dicts = [d for d in found if d is not None and type(d) in _DESCRIPTORS]
    slots = tuple(
        (name, member.__get__)
        for base in reversed(bases_of(cls))
        if "__slots__" in names_in(base)
        for name, member in names_in(base).items()
        if type(member) is types.MemberDescriptorType
    )
    return _Readers(False, contents, dicts[0].__get__ if dicts else None, slots)


_table = ClassTable(_readers)


def hidden_array(leaf: Any) -> Hidden | None:
    """An array that a leaf holds which JAX takes for a constant; None if it holds none.

    Looked for in `__dict__` and slots, in containers there and in the objects below; in what a
    method is bound to, and in the arguments of a partial. Functions, classes, modules and members
    of enums are exempt.
    """
    if _table.of(leaf).is_blind():
        return None
    seen = {id(leaf)}
    ways: list[tuple[int, str, Any]] = [(-1, "", None)]  # (the whole, how the part is got from it)
    waiting = [(0, leaf)]
    owned = [leaf]  # what the ids are of
    while waiting:
        way, whole = waiting.pop()
        for form, name, part in _table.of(whole).parts(whole):
            readers = _table.of(part)
            if readers.is_blind() or id(part) in seen:
                continue
            if readers.is_array and is_traced(part):
                return Hidden(_text([*ways, (way, form, name)]), part)
            seen.add(id(part))
            owned.append(part)
            ways.append((way, form, name))
            waiting.append((len(ways) - 1, part))
    return None


def _text(ways: list[tuple[int, str, Any]]) -> str:
    steps = []
    place = len(ways) - 1
    while place > 0:
        place, form, name = ways[place]
        steps.append(form.format(short_repr(name) if form == "[{}]" else name))
    return "".join(reversed(steps))


def refusal(leaf: Any, where: str, hidden: Hidden) -> str:
    """The text of an error about a leaf that holds an array.

    Args:
        where: The place of the leaf.
    """
    what, cure = _kind_and_cure(leaf)
    array = short_repr(hidden.array)
    return (
        f"{where} is {what}, and holds an array: {shortened(where + hidden.path)} is {array}\n"
        "  To JAX it would be a constant: not trained, and not noticed when it changes.\n"
        f"  {cure}"
    )


def _kind_and_cure(leaf: Any) -> tuple[str, str]:
    """What a leaf is, and how its arrays can be seen."""
    cls = type(leaf)
    name = f"{_MODULE(cls)}.{_QUALNAME(cls)}"
    if _CONTAINERS.get(cls) is _of_method:
        return (
            f"a method bound to {_named(leaf.__self__)}",
            "Pass that object itself, of a registered class, and call its method inside; or pass "
            "jax.tree_util.Partial(function, object), which JAX opens.",
        )
    if inherits(cls, functools.partial):
        return f"a {name}", "Use jax.tree_util.Partial instead, which JAX opens."
    if any(inherits(cls, base) for base in _CONTAINERS):
        return (
            _named(leaf),
            "Pass a list, a tuple or a dict, or register the class: "
            f"pydag.register_pydag_node({_NAME(cls)}, flatten_func, unflatten_func).",
        )
    inherited = ""
    if len(bases_of(cls)) > 2:
        inherited = " A registration of a base class doesn't hold for it."
    return (
        f"an object of {name}, a class that is not registered",
        f"Register the class: pydag.register_fields({_NAME(cls)}).{inherited} "
        f"Where its numbers and flags are no data: pydag.register_module({_NAME(cls)}). "
        f"To keep the object a constant, say static={_NAME(cls)}, or pass it to jit as an argument "
        "of its own that static_argnums names.",
    )


def _named(whole: Any) -> str:
    return f"an object of {_MODULE(type(whole))}.{_QUALNAME(type(whole))}"


_NAME = type.__dict__["__name__"].__get__
_QUALNAME = type.__dict__["__qualname__"].__get__
_MODULE = type.__dict__["__module__"].__get__
