# SPDX-License-Identifier: Apache-2.0
"""Random DAGs from a plain generator, a hundred times as fast as strategies that can shrink.

As in strategies.py a DAG grows from a pool: each new container takes its children from those before
it. What a child would be written out, path by path, is bounded: the reference follows every path.
"""

import random
import time
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import specimens as sp
from reference_kinds import FROZEN_DICTS
from strategies import KEYS

NAMES = ["w", "b", "x", "y", "name"]
LEAVES: list[Callable[[], Any]] = [
    *(partial(lambda value: value, value) for value in sp.VALUES),
    *sp.OBJECTS,
]
MOST_PATHS = 400  # of what may still be taken as a child

Shape = Callable[["Grower"], Any]


def _struct_time(grow: "Grower") -> Any:
    return time.struct_time((grow.take(), grow.take(), *range(7)))


def _tagged(grow: "Grower") -> Any:
    made = sp.Tagged(*grow.several())
    made.tag = grow.rng.choice([None, "tag", 3, ("t", 1)])
    return made


def _with_slots(cls: Any, *names: str) -> Shape:
    def make(grow: "Grower") -> Any:
        made = cls()
        for name in grow.rng.sample(names, grow.rng.randrange(len(names))):
            setattr(made, name, grow.take())
        return made

    return make


def _wide(grow: "Grower") -> Any:
    """More children than fit into what is kept on the stack."""
    return [grow.leaf() for _ in range(grow.rng.choice([17, 40, 130]))]


def _deep(grow: "Grower") -> Any:
    """A chain that is deeper than what is kept on the stack."""
    tree = grow.take()
    wraps: list[Callable[[Any], Any]] = [lambda x: [x], lambda x: {"k": x}, sp.Box]
    for _ in range(grow.rng.choice([9, 33, 70])):
        tree = grow.rng.choice(wraps)(tree)
    return tree


BUILTIN: list[Shape] = [
    lambda grow: grow.several(),
    lambda grow: tuple(grow.several()),
    lambda grow: dict(grow.items()),
    lambda grow: OrderedDict(grow.items()),
    lambda grow: defaultdict(grow.rng.choice([int, None, list]), grow.items()),
    lambda grow: deque(grow.several(), grow.rng.choice([None, 3, 5])),
    lambda grow: sp.Point(grow.take(), grow.take()),
    lambda grow: sp.Nothing(),
    _struct_time,
    *(lambda grow, cls=cls: cls(grow.items()) for cls in FROZEN_DICTS),
]
CUSTOM: list[Shape] = [
    lambda grow: sp.Box(*grow.several()),
    lambda grow: sp.Loose(*grow.several()),
    lambda grow: sp.Foreign(*grow.several()),
    lambda grow: sp.Local(*grow.several()),
    lambda grow: sp.Twofold(*grow.several()),
    lambda grow: sp.Registered(grow.take(), grow.take()),
    _tagged,
]
FIELDS: list[Shape] = [
    lambda grow: sp.Module(**grow.attributes()),
    lambda grow: sp.LooseModule(**grow.attributes()),
    lambda grow: sp.Named(**grow.attributes() | {"name": grow.rng.choice("no")}),
    lambda grow: sp.Chosen(x=grow.take(), mode="m", y=grow.take()),
    lambda grow: sp.Linear(grow.take(), grow.take(), units=grow.rng.randrange(4)),
    lambda grow: sp.Frozen(grow.take(), grow.take()),
    _with_slots(sp.Slotted, "a", "b", "c"),
    _with_slots(sp.Mixed, "a", "x", "c", "w"),
]
LARGE: list[Shape] = [_wide, _deep]
KNOWN = BUILTIN + CUSTOM + FIELDS
ALL = [*KNOWN, lambda grow: sp.Fresh(*grow.several())]


class Grower:
    """Makes DAGs of at most `size` nodes.

    Args:
        rng: All choices come from it.
        size: The largest number of containers.
        shapes: What containers there are.
        keys: What keys there are, beside "a", "b" and "c".
        leaves: What leaves there are.
        large: Whether a tree may hold a wide or a deep part.
    """

    def __init__(
        self,
        rng: random.Random,
        size: int,
        shapes: Sequence[Shape] = ALL,
        keys: Sequence[Any] = KEYS,
        leaves: Sequence[Callable[[], Any]] = LEAVES,
        large: bool = True,
    ) -> None:
        self.rng: random.Random = rng
        self.size, self.shapes, self.keys, self.leaves = size, shapes, keys, leaves
        self.large = large and rng.random() < 0.05
        self._pool: list[tuple[Any, int]] = []  # with the number of paths in it
        self._paths = 0

    def leaf(self) -> Any:
        """A value or a new object."""
        return self.rng.choice(self.leaves)()

    def take(self) -> Any:
        """The next child: mostly what was made last."""
        if not self._pool:
            return self.leaf()
        last = len(self._pool) - 1
        place = last - min(int(self.rng.expovariate(0.4)), last)
        child, paths = self._pool[place]
        if paths > MOST_PATHS:
            return self.leaf()
        self._paths += paths
        return child

    def several(self) -> list[Any]:
        """Up to three children."""
        return [self.take() for _ in range(self.rng.randrange(4))]

    def key(self) -> Any:
        """A key of a mapping."""
        return self.rng.choice(self.rng.choice(["abc", self.keys]))

    def items(self) -> list[tuple[Any, Any]]:
        """Up to four items for a mapping."""
        return [(self.key(), self.take()) for _ in range(self.rng.randrange(5))]

    def attributes(self) -> dict[str, Any]:
        """Attributes in any order."""
        return {name: self.take() for name in self.rng.sample(NAMES, self.rng.randrange(4))}

    def tree(self) -> Any:
        """A DAG, most of whose parts are reached from its root."""
        for _ in range(self.rng.randrange(1, 4)):
            self._pool.append((self.leaf(), 1))
        shapes = [*self.shapes, *(LARGE if self.large else [])]
        for _ in range(self.rng.randrange(self.size + 1)):
            self._paths = 1
            made = self.rng.choice(shapes)(self)
            self._pool.append((made, self._paths))
        if self.rng.random() < 0.3:
            return self._pool[-1][0]
        return [self.take() for _ in range(self.rng.randrange(1, 4))]
