# SPDX-License-Identifier: Apache-2.0
"""Code of a user that does its worst while the core runs: keys, aux_data, callbacks, finalizers.

Whatever is called springs the trap of the round, which now and then raises, changes the tree that
is walked, calls the core again, collects garbage, registers classes or frees what it can. It does
so a few times in a round: every round ends.
"""

import gc
from collections.abc import Callable, Iterator
from typing import Any

import specimens as sp
import trees
from changes import change_some, containers
from passing import Passers, is_passing
from rounds import Round
from strategies import KEYS

import pydag


class PlannedError(RuntimeError):
    """Raised on purpose."""


class Trap:
    """What happens when code of the user runs.

    Args:
        this: The round.
        operate: Runs some operation of the package on a tree.
    """

    def __init__(self, this: Round, operate: Callable[[Any], Any]) -> None:
        self.this, self.operate = this, operate
        self.left = this.rng.randrange(1, 8)
        self.probability = this.rng.choice([0.02, 0.1, 0.5])
        self.depth = 0
        self.trees: list[Any] = []  # what is walked, and what can be
        self.iterators: list[Iterator[Any]] = []
        self.passers = Passers(this.rng, spring)
        self.actions = [
            *(self._raise, self._collect, self._change, self._change, self._free),
            *(self._again, self._again, self._register, self._advance, pydag.clear_caches),
        ]

    def spring(self) -> None:
        """Does something, with some probability, as long as something is left to do."""
        if self.left > 0 and self.depth < 3 and self.this.rng.random() < self.probability:
            self.left -= 1
            self.depth += 1
            try:
                self.this.rng.choice(self.actions)()
            finally:
                self.depth -= 1

    def _raise(self) -> None:
        raise self.this.rng.choice([PlannedError, PlannedError, PlannedError, KeyboardInterrupt])

    def _collect(self) -> None:
        gc.collect(self.this.rng.choice([0, 1, 1, 2]))

    def _change(self) -> None:
        if self.trees:
            change_some(self.this.rng, self.this.rng.choice(self.trees), sp.Opaque())

    def _free(self) -> None:
        """Lets go of the trees, and fills the memory that was freed."""
        if self.this.rng.random() < 0.5:
            self.trees.clear()
        self.junk = [bytearray(b"\xff" * size) for size in (16, 40, 90, 200, 500) * 20]

    def _again(self) -> None:
        if self.trees:
            self.operate(self.this.rng.choice(self.trees))

    def _register(self) -> None:
        if self.this.rng.random() < 0.5:
            self._register_again()
            return
        cls = self.this.rng.choice([sp.Local, Unsteady])
        try:
            pydag.unregister_pydag_node(cls, namespace=sp.NAMESPACE)
        except ValueError:
            pass
        else:
            register_locally(cls)

    def _register_again(self) -> None:
        """Takes a class of a tree out of the registry, and mostly puts it in in another way."""
        passing = [obj for tree in self.trees for obj in containers(tree) if is_passing(obj)]
        if passing:
            self.passers.unregister(type(self.this.rng.choice(passing)))

    def _advance(self) -> None:
        if not self.iterators and self.trees:
            self.iterators.append(pydag.dag_iter(self.this.rng.choice(self.trees)))
        for iterator in self.iterators:
            next(iterator, None)


TRAP: list[Trap] = []
"""The trap of the running round, if it has one."""


def spring() -> None:
    """Called by all that is hostile."""
    if TRAP:
        TRAP[-1].spring()


def odd(answer: Any) -> Any:
    """An answer, or one that was not expected."""
    if not TRAP or TRAP[-1].this.rng.random() < 0.9:
        return answer
    return TRAP[-1].this.rng.choice([NotImplemented, not answer, 1, None, Undecided()])


class Undecided:
    """Is neither true nor false."""

    def __bool__(self) -> bool:
        raise PlannedError


class Key(str):
    """Text whose comparisons run code; its hash stays, as dicts demand."""

    __slots__ = ()

    def __hash__(self) -> int:
        spring()
        return str.__hash__(self)

    def __eq__(self, other: object) -> Any:
        spring()
        return odd(str.__eq__(self, other))

    def __lt__(self, other: Any) -> Any:
        spring()
        return odd(str.__lt__(self, other))

    def __repr__(self) -> str:
        spring()
        return str.__repr__(self)


class Lookalike(str):
    """Text that is equal to nothing but itself, and found by its address."""

    __slots__ = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__


class Aux:
    """A key, or aux_data, that is equal by a number; all that is asked of it runs code."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        spring()
        return self.number if odd(True) is True else 3

    def __eq__(self, other: object) -> Any:
        spring()
        return odd(isinstance(other, Aux) and self.number == other.number)

    def __lt__(self, other: Any) -> Any:
        spring()
        return odd(self.number < other.number)

    def __repr__(self) -> str:
        spring()
        return f"Aux({self.number})"


class Dying(sp.Opaque):
    """Runs code when it dies."""

    def __del__(self) -> None:
        try:
            spring()
        except (Exception, KeyboardInterrupt):  # would be printed, and mean nothing
            return


class Unsteady(sp.Box):
    """Its flatten function runs code, and its children come one by one, or not at all."""


class Fields(sp.Module):
    """Its attributes are found by code."""

    def __getattribute__(self, name: str) -> Any:
        if name != "__class__":
            spring()
        return super().__getattribute__(name)


class Declared:
    """Has two fields that are no children; a key of its `__dict__` may only look like one."""

    def __init__(self, x: Any, *, first: Any, second: Any) -> None:
        self.x, self.first, self.second = x, first, second


def declared(grow: trees.Grower) -> Any:
    """Mostly with all fields; else with two keys of one text, and without the other field."""
    made = Declared(grow.take(), first=Aux(grow.rng.randrange(2)), second="n")
    if grow.rng.random() < 0.3:
        name = grow.rng.choice(["x", "first", "second"])
        vars(made)[Lookalike(name)] = 1
        if grow.rng.random() < 0.5:
            del vars(made)[grow.rng.choice(["x", "first", "second"])]
    return made


def one_by_one(items: Any) -> Iterator[Any]:
    """The items, with code between them."""
    for item in items:
        spring()
        yield item
    spring()


def flatten_unsteady(obj: Any) -> Any:
    """Children, aux_data and entries; or, rarely, something else."""
    spring()
    children = obj.children
    entries = [Key(f"part{i}") for i in range(len(children))]
    rng = TRAP[-1].this.rng if TRAP else None
    if rng is not None and rng.random() < 0.1:
        return rng.choice([None, (), (children,), (children, 1, entries[1:]), (1, 2), (0, 1, 2, 3)])
    return one_by_one(children), Aux(len(children)), one_by_one(entries)


def build_unsteady(aux: Any, children: Any) -> Any:
    """The inverse."""
    spring()
    return Unsteady(*children)


def register_locally(cls: Any) -> None:
    """Makes a class a node in the namespace of the specimens, if it is none yet."""
    known = sp.LOCAL.get(cls)
    try:
        pydag.register_pydag_node(
            cls,
            getattr(known, "flatten", flatten_unsteady),
            getattr(known, "unflatten", build_unsteady),
            namespace=sp.NAMESPACE,
        )
    except ValueError:
        return


pydag.register_pydag_node(Unsteady, flatten_unsteady, build_unsteady)
pydag.register_fields(Fields)
pydag.register_fields(Declared, meta_fields=("first", "second"))

HOSTILE_KEYS = [*map(Key, "abcd"), *map(Lookalike, "ab"), *map(Aux, range(4)), *KEYS]
HOSTILE_SHAPES: list[trees.Shape] = [
    *trees.ALL,
    *[lambda grow: Unsteady(*grow.several())] * 4,
    *[lambda grow: Fields(**grow.attributes())] * 3,
    *[declared] * 3,
    *[lambda grow: dict(grow.items())] * 4,
]
HOSTILE_LEAVES = [*trees.LEAVES, *[Dying] * 6, lambda: Aux(1)]


def hostile_tree(this: Round, passers: Passers) -> Any:
    """A DAG of friendly and of hostile parts."""
    shapes = [*HOSTILE_SHAPES, *[lambda grow: passers.make(grow.take())] * 4]
    return this.tree(shapes=shapes, keys=HOSTILE_KEYS, leaves=HOSTILE_LEAVES)
