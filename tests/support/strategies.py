# SPDX-License-Identifier: Apache-2.0
"""Random DAGs, trees without sharing, cycles, and what goes with them.

A DAG grows from a pool: each new container takes its children from those before it, so a child
may be taken again, at any distance.
"""

import time
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import specimens as sp
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from reference_kinds import FROZEN_DICTS

thorough = settings(max_examples=2 * settings().max_examples)  # 200, or 40: see conftest.py

Take = Callable[[], Any]  # the next child
Shape = Callable[[DrawFn, Take], Any]  # makes a container

UNSORTABLE = [sp.Unsortable("one"), sp.Unsortable("two")]
KEYS: list[Any] = [
    *("a", "b", "c", "key with space", "it's", 0, 1, 2, -1, True, 1.5, 2.0, None, b"b", ()),
    *((1, 2), (1, "a"), ("b",), sp.Opaque, sp.Color.RED, frozenset({1}), frozenset({2})),
    *(*UNSORTABLE, 1j, sp.IntChild(7)),
]
names = st.sampled_from(["w", "b", "x", "y", "name"])
small = st.integers(0, 3)
keys = st.one_of(st.sampled_from("abc"), st.sampled_from(KEYS))

leaves: SearchStrategy[Any] = st.one_of(
    st.sampled_from(sp.VALUES), st.sampled_from(sp.OBJECTS).map(lambda make: make())
)
options = st.fixed_dictionaries(
    {
        "none_is_leaf": st.booleans(),
        "namespace": st.sampled_from(["", sp.NAMESPACE]),
        "identity": st.sampled_from(["all", "nodes"]),
    }
)


def several(draw: DrawFn, take: Take) -> list[Any]:
    """Up to three children."""
    return [take() for _ in range(draw(small))]


def items(draw: DrawFn, take: Take) -> list[tuple[Any, Any]]:
    """Up to three items for a mapping."""
    return [(key, take()) for key in draw(st.lists(keys, max_size=3))]


def attributes(draw: DrawFn, take: Take, *choice: str) -> dict[str, Any]:
    """Attributes in any order, some of `choice` or any."""
    chosen = st.sampled_from(choice) if choice else names
    return {name: take() for name in draw(st.lists(chosen, max_size=3, unique=True))}


def with_attributes(obj: Any, values: dict[str, Any]) -> Any:
    """The object, with these attributes set."""
    for name, value in values.items():
        setattr(obj, name, value)
    return obj


def a_deque(draw: DrawFn, take: Take) -> Any:
    """With and without a limit."""
    return deque(several(draw, take), draw(st.sampled_from([None, 3, 5])))


def a_time(draw: DrawFn, take: Take) -> Any:
    """A struct sequence with two interesting fields."""
    return time.struct_time((take(), take(), *range(7)))


def a_defaultdict(draw: DrawFn, take: Take) -> Any:
    """With and without a factory."""
    return defaultdict(draw(st.sampled_from([int, None, list])), items(draw, take))


def a_tagged(draw: DrawFn, take: Take) -> Any:
    """A callback node with hashable aux_data."""
    tag = draw(st.sampled_from([None, "tag", 3, ("t", 1)]))
    return with_attributes(sp.Tagged(*several(draw, take)), {"tag": tag})


def a_named(draw: DrawFn, take: Take) -> Any:
    """A module whose name is aux_data."""
    return sp.Named(**attributes(draw, take) | {"name": draw(st.sampled_from("no"))})


def a_slotted(draw: DrawFn, take: Take) -> Any:
    """Slots set in any order, some unset."""
    return with_attributes(sp.Slotted(), attributes(draw, take, "a", "b", "c"))


def a_mixed(draw: DrawFn, take: Take) -> Any:
    """Slots and other attributes."""
    return with_attributes(sp.Mixed(), attributes(draw, take, "a", "x", "c", "w"))


BUILTIN: list[Shape] = [
    several,
    lambda draw, take: tuple(several(draw, take)),
    lambda draw, take: dict(items(draw, take)),
    lambda draw, take: OrderedDict(items(draw, take)),
    lambda draw, take: sp.Point(take(), take()),
    lambda draw, take: sp.Nothing(),
    *(a_defaultdict, a_deque, a_time),
    *(lambda draw, take, cls=cls: cls(items(draw, take)) for cls in FROZEN_DICTS),
]
CUSTOM: list[Shape] = [
    lambda draw, take: sp.Box(*several(draw, take)),
    lambda draw, take: sp.Loose(*several(draw, take)),
    lambda draw, take: sp.Foreign(*several(draw, take)),
    lambda draw, take: sp.Local(*several(draw, take)),
    lambda draw, take: sp.Twofold(*several(draw, take)),
    lambda draw, take: sp.Registered(take(), take()),
    a_tagged,
]
FRESH: list[Shape] = [lambda draw, take: sp.Fresh(*several(draw, take))]
FIELDS: list[Shape] = [
    lambda draw, take: sp.Module(**attributes(draw, take)),
    lambda draw, take: sp.LooseModule(**attributes(draw, take)),
    lambda draw, take: sp.Chosen(x=take(), mode="m", y=take()),
    lambda draw, take: sp.Linear(take(), take(), units=draw(small)),
    lambda draw, take: sp.Frozen(take(), take()),
    lambda draw, take: sp.Ratio(take(), take(), *several(draw, take)),
    *(a_named, a_slotted, a_mixed),
]
ALL = BUILTIN + CUSTOM + FRESH + FIELDS


@st.composite
def dags(
    draw: DrawFn, shapes: list[Shape] = ALL, *, sharing: bool = True, max_nodes: int = 9
) -> Any:
    """Random DAGs. Without `sharing` every object has one place."""
    pool = draw(st.lists(leaves, min_size=1, max_size=4))
    unused = list(range(len(pool)))

    def take() -> Any:
        candidates = list(range(len(pool))) if sharing else unused
        if not candidates:
            return draw(leaves)
        place = candidates[-1 - draw(st.integers(0, len(candidates) - 1))]
        if place in unused:
            unused.remove(place)
        return pool[place]

    for _ in range(draw(st.integers(0, max_nodes))):
        node = draw(st.sampled_from(shapes))(draw, take)
        unused.append(len(pool))
        pool.append(node)
    root = [pool[place] for place in unused]
    if sharing:
        root += several(draw, take)
    return root[0] if len(root) == 1 else root


def trees(shapes: list[Shape] = ALL) -> SearchStrategy[Any]:
    """Trees in which every object has one place."""
    return dags(shapes, sharing=False)


@st.composite
def ladders(draw: DrawFn) -> Any:
    """Sixty levels and more, each of which holds the one below it twice."""
    rungs: list[Callable[[Any], Any]] = [
        *(lambda t: [t, t], lambda t: {"b": t, "a": t}, lambda t: sp.Box(t, t)),
        *(lambda t: sp.Module(x=t, y=t), lambda t: deque([t, t]), lambda t: sp.Linear(t, t)),
    ]
    tree = draw(leaves)
    for rung in draw(st.lists(st.sampled_from(rungs), min_size=60, max_size=80)):
        tree = rung(tree)
    return tree


CLOSE: list[tuple[Any, Callable[[Any, Any], Any]]] = [
    *((list, list.append), (deque, deque.append)),
    *((cls, lambda obj, top: obj.update(key=top)) for cls in (dict, OrderedDict, defaultdict)),
    *((cls, lambda obj, top: setattr(obj, "children", (1, top))) for cls in (sp.Box, sp.Loose)),
    *((cls, lambda obj, top: setattr(obj, "b", top)) for cls in (sp.Module, sp.LooseModule)),
    (sp.Slotted, lambda obj, top: setattr(obj, "b", top)),
]
"""What can lie at the bottom of a cycle, and how it gets its child."""


@st.composite
def cycles(draw: DrawFn) -> Any:
    """DAGs in which one object lies below itself."""
    cls, close = draw(st.sampled_from(CLOSE))
    bottom = cls()
    pool = [bottom]

    def take() -> Any:
        return pool[-1] if draw(st.booleans()) else draw(dags(max_nodes=2))

    def wrap() -> Any:
        wrapped = draw(st.sampled_from([list, tuple, sp.Box, sp.Module]))
        if wrapped is sp.Module:
            return sp.Module(w=draw(leaves), x=pool[-1], y=take())
        below = [take(), pool[-1], take()]
        return sp.Box(*below) if wrapped is sp.Box else wrapped(below)

    for _ in range(draw(small)):
        pool.append(wrap())
    close(bottom, pool[-1])
    for _ in range(draw(small)):
        pool.append(wrap())
    return pool[-1]


@dataclass
class Predicate:
    """An `is_leaf` that answers by a pattern, whatever it is asked, and notes what it was asked."""

    pattern: tuple[bool, ...]

    def __post_init__(self) -> None:
        self.asked: list[Any] = []
        self.answers: Iterator[bool] = iter(self.pattern)

    def __call__(self, obj: Any) -> bool:
        self.asked.append(obj)
        return next(self.answers, False)

    def again(self) -> "Predicate":
        """The same one from its beginning."""
        return Predicate(self.pattern)


predicates = st.lists(st.booleans(), max_size=12).map(lambda p: Predicate(tuple(p)))
