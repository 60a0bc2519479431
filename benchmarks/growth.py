# SPDX-License-Identifier: Apache-2.0
"""How the cost grows: with the number of objects, and with what is shared.

Libraries that don't see sharing walk every path, of which `t = [t, t]` has twice as many at each
level. Who takes too long at one size isn't asked for the next.
"""

import gc
import pickle
from collections.abc import Callable, Iterable
from dataclasses import make_dataclass, replace
from functools import partial
from typing import Any

from peers import Peers, works
from records import Record, Task
from timing import Effort, Outcome, Work, contest

import pydag

SIZES = tuple(10**n for n in range(1, 8))
QUICK_SIZES = SIZES[:-1]
DEPTHS = (1, 4, 8, 12, 16, 20, 24, 28, 32, 40, 50, 60)

FIELDS = "abcdefghi"  # nine leaves and what holds them make ten objects


@pydag.register_fields
class Nine:
    """A module with nine attributes."""

    def __init__(self, *values: Any) -> None:
        self.a, self.b, self.c, self.d, self.e, self.f, self.g, self.h, self.i = values


def _nine() -> list[Any]:
    return [object() for _ in range(9)]


def _jax_nine(peers: Peers) -> Callable[[], Any]:
    """The same class, as JAX knows it."""
    cls = make_dataclass("JaxNine", FIELDS)
    peers["jax"].tree_util.register_dataclass(cls, data_fields=list(FIELDS), meta_fields=[])
    return lambda: cls(*_nine())


GROUPS: dict[str, Callable[[], Any]] = {
    "lists": _nine,
    "dicts": lambda: dict(zip(FIELDS, _nine(), strict=True)),
    "modules": lambda: Nine(*_nine()),
}


def tasks(peers: Peers, effort: Effort) -> list[Task]:
    """A task for each kind of object, which does all the sizes; and one for sharing."""
    sizes = QUICK_SIZES if effort.quick else SIZES
    objects = [
        Task(f"up to {sizes[-1]:,} objects, {kind}", partial(_objects, peers, effort, kind, sizes))
        for kind in GROUPS
    ]
    return [*objects, Task("sharing depth", partial(_sharing, peers, effort))]


def _grow(
    values: Iterable[int], measure: Callable[[int, set[str]], Outcome]
) -> Iterable[tuple[int, Outcome]]:
    """Measure at each value. Who is out at one of them stays out."""
    out: set[str] = set()
    for value in values:
        outcome = measure(value, out)
        out |= outcome.notes.keys()
        yield value, outcome


def _many(group: Callable[[], Any], objects: int) -> list[Any]:
    gc.disable()  # it would go through them again and again
    try:
        return [group() for _ in range(objects // 10)]
    finally:
        gc.enable()


def _objects(peers: Peers, effort: Effort, kind: str, sizes: tuple[int, ...]) -> list[Record]:
    def measure(work: str, objects: int, out: set[str]) -> Outcome:
        contenders = _walkers(peers, kind, objects, out)
        return contest({name: own[work] for name, own in contenders.items()}, effort)

    return [
        Record.of("growth", {"kind": kind, "work": work, "objects": objects}, outcome)
        for work in ("flatten", "unflatten")
        for objects, outcome in _grow(sizes, partial(measure, work))
    ]


def _walkers(peers: Peers, kind: str, objects: int, out: set[str]) -> dict[str, dict[str, Work]]:
    """Those that can open this kind of object. Of modules, JAX opens its own."""
    able = {"modules": {"jax"}}.get(kind, {"optree", "jax", "dm-tree"}) - out
    others = Peers({name: peers[name] for name in able if name in peers})
    if kind != "modules":
        return works(others, _many(GROUPS[kind], objects))
    ours = works(Peers(), _many(GROUPS[kind], objects))
    if "jax" not in others:
        return ours
    theirs = works(others, _many(_jax_nine(peers), objects))
    return ours | {"jax": theirs["jax"]}


def doubled(depth: int) -> list[Any]:
    """`t = [t, t]`, so many times."""
    tree = [object(), object()]
    for _ in range(depth - 1):
        tree = [tree, tree]
    return tree


def _sharing(peers: Peers, effort: Effort) -> list[Record]:
    impatient = replace(effort, patience=0.1)

    def measure(depth: int, out: set[str]) -> Outcome:
        tree = doubled(depth)
        leaves, spec = pydag.dag_flatten(tree)
        other = pickle.loads(pickle.dumps(spec))
        contenders = {
            "pydag flatten": Work(pydag.dag_flatten, tree),
            "pydag unflatten": Work(pydag.dag_unflatten, spec, leaves),
            "pydag copy": Work(pydag.dag_copy, tree),
            "pydag map": Work(pydag.dag_map, id, tree),
            "pydag map of two": Work(pydag.dag_map, lambda x, y: x, tree, doubled(depth)),
            "pydag hash": Work(hash, spec),
            "pydag ==": Work(spec.__eq__, other),
            "pydag repr": Work(repr, spec),
            "pydag pickle": Work(lambda x: pickle.loads(pickle.dumps(x)), spec),
        }
        for name in ("optree", "jax", "dm-tree"):
            if name in peers and f"{name} flatten" not in out:
                module = peers[name].tree_util if name == "jax" else peers[name]
                flatten = module.flatten if name == "dm-tree" else module.tree_flatten
                contenders[f"{name} flatten"] = Work(flatten, tree)
        return contest(contenders, impatient)

    return [
        Record.of("sharing", {"depth": depth}, outcome) for depth, outcome in _grow(DEPTHS, measure)
    ]
