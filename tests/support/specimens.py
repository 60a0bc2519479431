# SPDX-License-Identifier: Apache-2.0
"""Classes of every sort that a DAG can hold, and what the reference has to know about them.

`EVENTS` records what the flatten and unflatten functions saw, so that two walks can be compared
call by call.
"""

import dataclasses
import enum
import warnings
from collections import namedtuple
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import optree
from reference_kinds import Callbacks, Fields, Registry

NAMESPACE = "specimens"  # where Local is a node and Twofold is another one
EVENTS: list[tuple[Any, ...]] = []


class Opaque:
    """Registered nowhere: a leaf with identity."""


class Unsortable:
    """A hashable key that nothing can be compared with. It prints and copies as itself."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> "Unsortable":
        return self


class Color(enum.Enum):
    """Its members are values."""

    RED = 1


class Meta(type):
    """Its instances are classes, hence values."""


class WithMeta(metaclass=Meta):
    """A class whose type isn't `type`."""


class IntChild(int):
    """An instance is an object: only exact ints are values."""


class StrChild(str):
    """An instance is an object."""

    __slots__ = ()


class ListChild(list[Any]):
    """An instance is a leaf: only exact lists are nodes."""


Point = namedtuple("Point", "x y")
Nothing = namedtuple("Nothing", "")
Registered = namedtuple("Registered", "x y")


class Box:
    """Registered by callbacks; its children are positional."""

    def __init__(self, *children: Any) -> None:
        self.children = children


class Tagged(Box):
    """Has aux_data and named entries."""

    tag: Any = None


class Fresh(Box):
    """Gives a new list around its children each time that it is flattened."""


class Loose(Box):
    """Registered without identity."""


class Foreign(Box):
    """Registered with optree, not with pydag."""


class Local(Box):
    """A node in NAMESPACE only."""


class Twofold(Box):
    """Has its children in the reverse order in NAMESPACE."""


class Module:
    """All attributes are children."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class LooseModule(Module):
    """As Module, without identity."""


class Named(Module):
    """As Module, but `name` is aux_data."""

    name = "nobody"


class Chosen(Module):
    """Declares its fields."""


class SlottedBase:
    """The first of two classes with slots."""

    __slots__ = ("a",)


class Slotted(SlottedBase):
    """No `__dict__`; slots may be unset."""

    __slots__ = ("b", "c")


class Mixed(Slotted):
    """Slots and a `__dict__`."""


class Ratio:
    """Its `__init__` has other parameters than an alphabet would, and not in that order."""

    def __init__(self, top: Any, bottom: Any, *more: Any, at: Any = None) -> None:
        self.at, self.more, self.bottom, self.top = at, more, bottom, top


@dataclasses.dataclass
class Linear:
    """A dataclass with a static field."""

    w: Any
    b: Any
    units: int = dataclasses.field(default=3, metadata={"static": True})
    kind: ClassVar[str] = "linear"


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    """Attributes can't be set by the ordinary way."""

    x: Any
    y: Any = None


def callbacks(
    cls: Any,
    open_: Callable[[Any], tuple[Any, ...]] = lambda obj: (obj.children, None),
    build: Callable[[Any, Any], Any] | None = None,
    **flags: bool,
) -> Callbacks:
    """A registration that records its calls. It may be asked with any children whatever."""

    def flatten(obj: Any) -> tuple[Any, ...]:
        EVENTS.append(("flatten", obj))
        return open_(obj)

    def unflatten(aux: Any, children: Any) -> Any:
        children = tuple(children)
        EVENTS.append(("unflatten", cls.__name__, aux, len(children)))
        return build(aux, children) if build else cls(*children)

    return Callbacks(flatten, unflatten, **flags)


def open_tagged(obj: Tagged) -> tuple[Any, ...]:
    """Children, aux_data, entries."""
    return obj.children, obj.tag, [f"part{i}" for i in range(len(obj.children))]


def build_tagged(tag: Any, children: tuple[Any, ...]) -> Tagged:
    """The inverse of `open_tagged`."""
    built = Tagged(*children)
    built.tag = tag
    return built


GLOBAL: Registry = {
    Box: callbacks(Box),
    Tagged: callbacks(Tagged, open_tagged, build_tagged),
    Fresh: callbacks(
        Fresh, lambda obj: ([list(obj.children)], None), lambda _, children: Fresh(*children[0])
    ),
    Loose: callbacks(Loose, keeps_identity=False),
    Foreign: callbacks(Foreign, foreign=True),
    Twofold: callbacks(Twofold),
    Registered: callbacks(Registered, lambda obj: (tuple(obj), None)),
    Module: Fields(),
    LooseModule: Fields(keeps_identity=False),
    Named: Fields(meta=("name",)),
    Chosen: Fields(data=("y", "x"), meta=("mode",)),
    Slotted: Fields(),
    Mixed: Fields(),
    Ratio: Fields(),
    Linear: Fields(),
    Frozen: Fields(),
}
LOCAL: Registry = {
    Local: callbacks(Local),
    Twofold: callbacks(
        Twofold, lambda obj: (obj.children[::-1], None), lambda _, c: Twofold(*c[::-1])
    ),
}
REGISTRIES: dict[str, Registry] = {"": GLOBAL, NAMESPACE: {**GLOBAL, **LOCAL}}

VALUES: list[Any] = [
    *(None, True, False, 0, 1, 10**20, 2.5, -0.0, float("nan"), 1j, "a", "", b"b", range(3)),
    *(..., Color.RED, Opaque, WithMeta, len, callbacks, property(), np.True_, np.False_),
]
"""Leaves without identity."""

OBJECTS: list[Callable[[], Any]] = [
    *(Opaque, bytearray, frozenset, set, lambda: np.arange(3), lambda: np.float64(1.5)),
    *(lambda: IntChild(3), lambda: StrChild("s"), lambda: ListChild([1])),
]
"""Make leaves with identity."""


def register_with_optree(cls: Any, namespace: str) -> None:
    """Makes optree use the callbacks of a class of GLOBAL."""
    registration = GLOBAL[cls]
    assert isinstance(registration, Callbacks)
    with warnings.catch_warnings():  # of a namedtuple that is registered
        warnings.simplefilter("ignore")
        optree.register_pytree_node(
            cls, registration.flatten, registration.unflatten, namespace=namespace
        )


register_with_optree(Foreign, optree.registry.__GLOBAL_NAMESPACE)
