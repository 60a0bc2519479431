# SPDX-License-Identifier: Apache-2.0
"""What each kind of object means to pydag: value or object, how it is opened, how it is built.

Half of the model that judges the compiled core (the walks are in `reference.py`). It is meant to
be read, not to be fast: every rule of the design stands here once, in the plainest Python.
"""

import builtins
import dataclasses
import enum
import functools
import inspect
import types
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optree

# Python has `frozendict` from 3.15 on.
FROZEN_DICTS: tuple[Any, ...] = tuple(filter(None, [getattr(builtins, "frozendict", None)]))
DICTS = (dict, OrderedDict, defaultdict, *FROZEN_DICTS)
MAPPINGS: Any = (dict, *FROZEN_DICTS)  # of which these are instances
ATOMS = (
    *(type(None), bool, int, float, complex, str, bytes, range, property, weakref.ref),
    *(type(...), type(NotImplemented), np.bool_),
    *(types.FunctionType, types.BuiltinFunctionType, types.CodeType),
)
COMPARABLE = (bool, int, float, complex, str, bytes, range, np.bool_)


@dataclass(frozen=True)
class Callbacks:
    """A class registered with a flatten and an unflatten function."""

    flatten: Callable[[Any], tuple[Any, ...]]
    unflatten: Callable[[Any, Any], Any]
    keeps_identity: bool = True
    foreign: bool = False  # found in the registry of optree or JAX, not in pydag's
    leaves_are_values: bool = False  # those directly below, or in tuples directly below


@dataclass(frozen=True)
class Fields:
    """A class whose attributes are its children (data) and its aux_data (meta)."""

    data: tuple[str, ...] | None = None  # None: the dataclass's fields, else all that are set
    meta: tuple[str, ...] = ()
    keeps_identity: bool = True
    foreign: bool = False


Registry = Mapping[type, Callbacks | Fields]


@dataclass(frozen=True)
class Shape:
    """One opened node without its children."""

    kind: str
    cls: type
    entries: tuple[Any, ...]  # one for each child: index, key or attribute name
    aux: Any = None  # what else is needed to build the node again
    registration: Callbacks | Fields | None = None
    set_order: tuple[Any, ...] = ()  # the attributes of an instance as they were set


def is_tuple_like(cls: type) -> bool:
    """Whether a class is `tuple`, a namedtuple or a struct sequence."""
    return cls is tuple or optree.is_namedtuple_class(cls) or optree.is_structseq_class(cls)


def has_identity(obj: Any, registry: Registry) -> bool:
    """Whether `is` means something for this object (leaf or node)."""
    cls = type(obj)
    if cls in registry:
        return registry[cls].keeps_identity
    if cls in FROZEN_DICTS or is_tuple_like(cls):
        return False
    return not (cls in ATOMS or isinstance(obj, (type, enum.Enum)))


def are_leaves_values(obj: Any, registry: Registry, above: bool) -> bool:
    """Whether leaves directly below a node have no identity.

    Args:
        above: Whether leaves beside the node have none.
    """
    registration = registry.get(type(obj))
    if registration is not None:
        return isinstance(registration, Callbacks) and registration.leaves_are_values
    return above and not has_identity(obj, registry)


def one_answer(a: Any, b: Any, registry: Registry) -> bool:
    """The same object, or equal values; no object's own `__eq__` is asked."""
    if a is b:
        return True
    if type(a) is not type(b) or has_identity(a, registry):
        return False
    if type(a) in registry:
        return same_parts(a, b, registry)
    if is_tuple_like(type(a)):
        same_length = len(a) == len(b)
        return same_length and all(one_answer(x, y, registry) for x, y in zip(a, b, strict=True))
    if type(a) in FROZEN_DICTS:
        order_a, order_b = (tuple(sorted_keys(list(x))) for x in (a, b))
        values = tuple(a[k] for k in order_a), tuple(b[k] for k in order_b)
        return one_answer((order_a, values[0]), (order_b, values[1]), registry)
    if type(a) in COMPARABLE:
        return bool(a == b) or bool(a != a and b != b)
    return False


def same_parts(a: Any, b: Any, registry: Registry) -> bool:
    """Whether two instances of a registered class without identity consist of the same answers."""
    kind = kind_of(a, registry, none_is_leaf=False)
    assert kind is not None
    (one, parts), (other, others) = (open_node(x, kind, registry) for x in (a, b))
    if kind == "fields":
        if one.entries != other.entries:
            return False
        one_aux, other_aux = tuple(one.aux.values()), tuple(other.aux.values())
    else:
        one_aux, other_aux = one.aux, other.aux
    return one_answer((one_aux, *parts), (other_aux, *others), registry)


def kind_of(obj: Any, registry: Registry, none_is_leaf: bool) -> str | None:
    """The kind of node that an object is; `None` for a leaf."""
    cls = type(obj)
    if cls in registry:
        return "custom" if isinstance(registry[cls], Callbacks) else "fields"
    if obj is None:
        return None if none_is_leaf else "none"
    if cls in (list, tuple, deque):
        return str(cls.__name__)
    if cls in DICTS:
        return "dict"
    if optree.is_namedtuple_class(cls):
        return "namedtuple"
    return "structseq" if optree.is_structseq_class(cls) else None


def open_node(obj: Any, kind: str, registry: Registry) -> tuple[Shape, list[Any]]:
    """The shape and the children of a node."""
    cls = type(obj)
    registration = registry.get(cls)
    if isinstance(registration, Callbacks):
        returned = registration.flatten(obj)
        children = list(returned[0])
        entries = returned[2] if len(returned) == 3 else None
        entries = tuple(range(len(children)) if entries is None else entries)
        return Shape(kind, cls, entries, returned[1], registration), children
    if isinstance(registration, Fields):
        data, meta = field_names(obj, registration)
        values = {name: own_set(getattr(obj, name)) for name in meta}
        in_order = tuple(name for name in getattr(obj, "__dict__", ()) if name in data)
        set_order = in_order + tuple(name for name in data if name not in in_order)
        shape = Shape(kind, cls, data, values, registration, set_order)
        return shape, [getattr(obj, n) for n in data]
    if kind == "none":
        return Shape(kind, cls, ()), []
    if kind == "dict":
        keys = tuple(obj) if cls is OrderedDict else tuple(sorted_keys(list(obj)))
        factory = obj.default_factory if cls is defaultdict else None
        return Shape(kind, cls, keys, (factory, tuple(obj))), [obj[key] for key in keys]
    maxlen = obj.maxlen if kind == "deque" else None
    return Shape(kind, cls, tuple(range(len(obj))), maxlen), list(obj)


def build_node(shape: Shape, children: Sequence[Any]) -> Any:
    """The inverse of `open_node`, always a new object."""
    cls: Any = shape.cls
    if isinstance(shape.registration, Callbacks):
        return shape.registration.unflatten(shape.aux, tuple(children))
    by_entry = dict(zip(shape.entries, children, strict=True))
    if isinstance(shape.registration, Fields):
        built = object.__new__(cls)
        for name in shape.set_order:
            object.__setattr__(built, name, by_entry[name])
        for name, value in shape.aux.items():
            object.__setattr__(built, name, own_set(value))
        return built
    if shape.kind == "none":
        return None
    if shape.kind == "dict":
        factory, insertion_order = shape.aux
        items = [(key, by_entry[key]) for key in insertion_order]
        return defaultdict(factory, items) if cls is defaultdict else cls(items)
    if shape.kind == "deque":
        return deque(children, shape.aux)
    return cls(*children) if shape.kind == "namedtuple" else cls(children)


def check_nones(shape: Shape, node: Any, children: Sequence[Any]) -> None:
    """Raises where a node, built with None in the place of a leaf, holds something else there."""
    if isinstance(shape.registration, Callbacks) and type(node) is shape.cls:
        found = list(shape.registration.flatten(node)[0])
        places = [i for i, child in enumerate(children) if child is None]
        is_kept = len(found) == len(children) and all(found[i] is None for i in places)
        if not is_kept and len(found) != len(children) - len(places):
            raise TypeError("the class makes something else of None")


def own_set(value: Any) -> Any:
    """A meta field, which two objects don't share if it is a set that may change."""
    return set(value) if type(value) is set else value


def match_node(shape: Shape, obj: Any, registry: Registry) -> list[Any]:
    """The children of `obj`, in the order of `shape`; `ValueError` where `obj` doesn't fit."""
    fits = type(obj) in DICTS if shape.kind == "dict" else type(obj) is shape.cls
    if not fits:
        raise ValueError(f"Expected an instance of {shape.cls}, got {obj!r}.")
    other, children = open_node(obj, shape.kind, registry)
    if shape.kind in ("dict", "fields"):
        by_entry = dict(zip(other.entries, children, strict=True))
        if by_entry.keys() != set(shape.entries):
            raise ValueError(f"key mismatch; expected {shape.entries}, got {other.entries}.")
        children = [by_entry[entry] for entry in shape.entries]
    if len(children) != len(shape.entries):
        raise ValueError(f"arity mismatch; expected {len(shape.entries)}, got {len(children)}.")
    same_aux = shape.aux is other.aux or shape.aux == other.aux
    if shape.registration is not None and not same_aux:
        raise ValueError(f"aux_data mismatch; expected {shape.aux!r}, got {other.aux!r}.")
    return children


def sorted_keys(keys: list[Any]) -> list[Any]:
    """Sorted, if not possible by type and then key, if not possible as they came."""
    try:
        return sorted(keys)
    except TypeError:
        pass
    try:
        return sorted(keys, key=lambda k: (f"{type(k).__module__}.{type(k).__qualname__}", k))
    except TypeError:
        return keys


def field_names(obj: Any, fields: Fields) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the data and of the meta fields of one object.

    Declared fields and slots are in the class's order. What is only found on the instance is in the
    order of the names: so it doesn't matter which attribute was set first.
    """
    if fields.data is not None:
        check_nothing_lost(obj, fields.data + fields.meta)
        return fields.data, fields.meta
    meta = fields.meta
    if dataclasses.is_dataclass(obj):
        declared = dataclasses.fields(obj)
        names = [field.name for field in declared]
        meta += tuple(field.name for field in declared if field.metadata.get("static"))
        check_nothing_lost(obj, (*names, *meta))
    else:
        slots = [name for cls in reversed(type(obj).__mro__) for name in slots_of(cls)]
        stored = [n for n in getattr(obj, "__dict__", ()) if not is_lazy(type(obj), n)]
        found = sorted_keys(stored)
        names = [*found, *(name for name in slots if hasattr(obj, name))]
    return tuple(name for name in names if name not in meta), meta


def check_nothing_lost(obj: Any, names: Sequence[str]) -> None:
    """Raises where an object has attributes beside its fields."""
    for name in getattr(obj, "__dict__", ()):
        if name not in names and not is_lazy(type(obj), name):
            raise ValueError(f"{name!r} would be lost")


def is_lazy(cls: type, name: str) -> bool:
    """Whether a class computes the attribute, so that what an instance stores there is no field."""
    found = inspect.getattr_static(cls, name, None)
    is_method = callable(found) or isinstance(
        found, classmethod | functools.partialmethod | functools.singledispatchmethod
    )
    kind = type(found)
    return hasattr(kind, "__get__") and not hasattr(kind, "__set__") and not is_method


def slots_of(cls: type) -> list[str]:
    """The attribute names of the `__slots__` that this very class declares."""
    slots = cls.__dict__.get("__slots__", ())
    names = [slots] if isinstance(slots, str) else list(slots)
    return [name for name in names if name not in ("__dict__", "__weakref__")]


def text_of(shape: Shape, children: Sequence[str]) -> str:
    """One node in the language of a spec's `repr`, from the texts of its children."""
    name, entries = shape.cls.__name__, shape.entries
    inside = ", ".join(children)
    if shape.kind == "custom":
        return f"CustomTreeNode({name}[{shape.aux!r}], [{inside}])"
    if shape.kind in ("fields", "namedtuple", "structseq"):
        names = entries if shape.kind == "fields" else sequence_fields(shape)
        parts = [f"{n}={child}" for n, child in zip(names, children, strict=True)]
        if shape.kind == "fields":
            parts += [f"{n}={value!r}" for n, value in shape.aux.items()]
        module = f"{shape.cls.__module__}." if shape.kind == "structseq" else ""
        return f"{module}{name}({', '.join(parts)})"
    if shape.kind == "dict":
        pairs = [f"{key!r}: {child}" for key, child in zip(entries, children, strict=True)]
        items = "{" + ", ".join(pairs) + "}"
        if shape.cls is defaultdict:
            return f"defaultdict({shape.aux[0]!r}, {items})"
        name = shape.cls.__name__
        return items if shape.cls is dict else f"{name}({items if children else ''})"
    if shape.kind == "deque":
        maxlen = [] if shape.aux is None else [f"maxlen={shape.aux}"]
        return f"deque({', '.join([f'[{inside}]'] * bool(children) + maxlen)})"
    if shape.kind == "tuple":
        return f"({inside},)" if len(children) == 1 else f"({inside})"
    return "None" if shape.kind == "none" else f"[{inside}]"


def sequence_fields(shape: Shape) -> tuple[str, ...]:
    """The field names of a namedtuple or of a struct sequence."""
    if shape.kind == "namedtuple":
        return optree.namedtuple_fields(shape.cls)
    names = list(optree.structseq_fields(shape.cls))
    return tuple(n if n.isidentifier() else f"<unnamed@{i}>" for i, n in enumerate(names))
