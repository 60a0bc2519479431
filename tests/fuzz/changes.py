# SPDX-License-Identifier: Apache-2.0
"""Objects changed between two calls: what was remembered of a structure must not be believed."""

import random
from collections import OrderedDict, defaultdict, deque
from typing import Any

import specimens as sp
from reference_kinds import FROZEN_DICTS, MAPPINGS

TWINS: list[tuple[type, type]] = [
    *((sp.Box, sp.Loose), (sp.Box, sp.Tagged), (sp.Box, sp.Twofold), (sp.Box, sp.Foreign)),
    *((sp.Module, sp.LooseModule), (sp.Module, sp.Named)),
]
"""Classes of one layout: an instance of the one can become an instance of the other."""


def containers(tree: Any) -> list[Any]:
    """What can be changed of a tree, each object once. No function of a class is called."""
    found: dict[int, Any] = {}
    waiting = [tree]
    while waiting:
        obj = waiting.pop()
        if id(obj) in found:
            continue
        children: list[Any] = []
        if isinstance(obj, list | tuple | deque):
            children = list(obj)
        elif isinstance(obj, MAPPINGS):
            children = list(obj.values())
        elif hasattr(type(obj), "__dict__") and type(obj).__module__ in ("specimens", "hostile"):
            children = list(getattr(obj, "__dict__", {}).values())
        else:
            continue
        found[id(obj)] = obj
        waiting.extend(children)
    return [obj for obj in found.values() if not isinstance(obj, (tuple, *FROZEN_DICTS))]


def change(rng: random.Random, obj: Any, child: Any) -> None:
    """One change of one container, with a new child where one is needed."""
    if isinstance(obj, list | deque):
        _change_sequence(rng, obj, child)
    elif isinstance(obj, dict):
        _change_mapping(rng, obj, child)
    elif isinstance(obj, sp.Box) and rng.random() < 0.6:
        below = list(obj.children)
        _change_sequence(rng, below, child)
        obj.children = tuple(below)
    elif not isinstance(obj, sp.Box | sp.Module | sp.Mixed | sp.Chosen):
        return
    elif isinstance(obj, sp.Chosen):
        vars(obj)["x"] = child  # all of its fields must be set
    elif rng.random() < 0.2:
        _change_class(rng, obj)
    elif not isinstance(obj, sp.Box):
        names = ["w", "x", "y"] if isinstance(obj, sp.Mixed) else ["w", "b", "x", "y", "name"]
        _change_mapping(rng, vars(obj), child, names)  # the others of a Mixed are slots


def _change_sequence(rng: random.Random, items: Any, child: Any) -> None:
    what = rng.randrange(5)
    if what == 0 or not items:
        items.append(child)
    elif what == 1:
        items.pop()
    elif what == 2:
        items[rng.randrange(len(items))] = child
    elif what == 3:
        items.reverse()
    else:
        items.extend([items[0]] * rng.choice([1, 1, 20]))


def _change_mapping(
    rng: random.Random, items: dict[Any, Any], child: Any, names: list[Any] | None = None
) -> None:
    what, keys = rng.randrange(5), list(items)
    if what == 0 or not keys:
        items[rng.choice(names or ["a", "b", "new", 7, ("t",), 1.5])] = child
    elif what == 1:
        del items[rng.choice(keys)]
    elif what == 2:
        items[rng.choice(keys)] = child
    elif what == 3:  # the same items in another order
        pairs = list(items.items())
        rng.shuffle(pairs)
        items.clear()
        items.update(pairs)
    elif isinstance(items, OrderedDict):
        items.move_to_end(rng.choice(keys), last=rng.random() < 0.5)
    elif isinstance(items, defaultdict):
        items.default_factory = rng.choice([int, None, list])


def _change_class(rng: random.Random, obj: Any) -> None:
    others = [b if type(obj) is a else a for a, b in TWINS if type(obj) in (a, b)]
    if others:
        obj.__class__ = rng.choice(others)


def change_some(rng: random.Random, tree: Any, child: Any) -> None:
    """Changes one container of a tree or a few, now and then so that a cycle comes about."""
    for _ in range(rng.choice([1, 1, 2, 5])):
        if found := containers(tree):
            new = rng.choice(found) if rng.random() < 0.15 else child
            changed = rng.choice(found)
            change(rng, changed, new)
            if isinstance(changed, sp.Named) and "name" in vars(changed):
                vars(changed)["name"] = rng.choice("no")  # a meta field, in which no array may be
