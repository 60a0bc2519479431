# SPDX-License-Identifier: Apache-2.0
"""Rows of the table of cliffs: one odd node in a tree, trees that look alike, keys never seen."""

import enum
import itertools
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from peers import Peers, flattens
from rows import USUAL, Race, Row, at_least, at_most, steady
from timing import Effort, Outcome, Work, contest, fresh_contest

import pydag

LEAVES = 800
Color = enum.StrEnum("Color", ["RED", "GREEN", "BLUE"])


class Pair:
    """A node that Python functions open and build."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


class Bag:
    """An object of attributes, registered by its fields."""

    def __init__(self, order: tuple[str, ...]) -> None:
        for name in order:
            setattr(self, name, object())


def rows(peers: Peers, effort: Effort) -> list[Row]:
    """All of them."""
    if pydag.register_pydag_node.get(Pair) is None:
        pydag.register_pydag_node(Pair, lambda p: ((p.a, p.b), None), lambda _, c: Pair(*c))
        pydag.register_fields(Bag, ["a", "b", "c", "d"], [])
    fresh = partial(_fresh, peers)
    return [
        at_most("one dict keyed by tuples among 800 leaves", 1.3, _odd({(0, 1): 1, (1, 0): 2})),
        at_most("one dict keyed by a StrEnum", 1.3, _odd({Color.RED: 1, Color.BLUE: 2})),
        at_most("one node with Python functions", 1.3, _odd(Pair(1, 2))),
        at_most("model, batch and metrics in turn, all dicts of two keys", 1.3, _alike()),
        at_most("records of four kinds with the same first key", 1.3, _kinds()),
        at_most("attributes in an order of each instance's own", 1.5, _attribute_orders()),
        at_least("new strings as keys, in any order", 2.0, fresh(lambda i: f"key {i}")),
        at_least("new integers as keys", 2.0, fresh(lambda i: i)),
        at_least("new tuples as keys", 2.0, fresh(lambda i: (i, "key"))),
        at_least("first sight of a tree of a hundred thousand nodes", 2.0, _large(peers, effort)),
    ]


def _tree(names: tuple[str, str], odd: Any = None) -> dict[str, Any]:
    """A tree of 800 leaves in dicts of ten."""
    layers = [{f"weight {i}": object() for i in range(10)} for _ in range(LEAVES // 10 - 1)]
    return dict(zip(names, (layers, [object(), object()] if odd is None else odd), strict=True))


def _odd(odd: Any) -> Race:
    """The same trees, but for a node in the second branch."""
    names = "layers", "other"
    usual, with_odd = _tree(names), _tree(names, odd)
    return steady(
        {
            "pydag": Work(pydag.dag_flatten, with_odd),
            USUAL: Work(pydag.dag_flatten, usual),
        }
    )


def _alike() -> Race:
    """The leaves of each are dropped before the next is flattened, as are those of a step."""
    trees = [_tree(names) for names in (("model", "state"), ("x", "y"), ("loss", "scores"))]

    def flatten_all(trees: list[Any]) -> None:
        for tree in trees:
            pydag.dag_flatten(tree)

    return steady(
        {"pydag": Work(flatten_all, trees), USUAL: Work(flatten_all, [trees[0]] * len(trees))}
    )


def _records(firsts: list[str]) -> Callable[[], list[Any]]:
    """Lists of 200 records of four kinds, in a random order."""
    random = Random(0)
    kinds = [(first, f"x{i}", f"y{i}") for i, first in enumerate(firsts)]

    def make() -> list[Any]:
        return [dict.fromkeys(random.choice(kinds), 0.0) for _ in range(200)]

    return make


def _kinds() -> Race:
    """Lists whose structure was never seen, so that the keys of each record are looked up."""
    alike, usual = _records(["id"] * 4), _records(["id", "name", "time", "place"])

    def race(effort: Effort) -> Outcome:
        def flatten_all(lists: Any) -> None:
            for one in lists:
                pydag.dag_flatten(one)

        lists, usual_lists = ([make() for _ in range(100)] for make in (alike, usual))
        return contest(
            {"pydag": Work(flatten_all, lists), USUAL: Work(flatten_all, usual_lists)}, effort
        )

    return race


def _attribute_orders() -> Race:
    """80 instances; of the usual ones all got their attributes in one order."""
    orders = list(itertools.permutations("abcd"))
    odd = [Bag(orders[i % len(orders)]) for i in range(80)]
    usual = [Bag(orders[0]) for _ in range(80)]
    return steady({"pydag": Work(pydag.dag_flatten, odd), USUAL: Work(pydag.dag_flatten, usual)})


def _fresh(peers: Peers, key: Callable[[int], Any]) -> Race:
    """Forty dicts of ten keys, each key made for this tree, in an order of its own."""
    random, numbers = Random(0), itertools.count()

    def make() -> Any:
        keys = [[key(next(numbers)) for _ in range(10)] for _ in range(40)]
        for some in keys:
            random.shuffle(some)
        return [dict.fromkeys(some, 0.0) for some in keys]

    return lambda effort: fresh_contest(make, flattens(peers), effort)


def _large(peers: Peers, effort: Effort) -> Race:
    """Dicts of ten leaves, each with keys of its own."""
    dicts, numbers = 1_000 if effort.quick else 9_000, itertools.count()

    def make() -> Any:
        first = next(numbers)
        return [{f"{first} {i} {j}": 0.0 for j in range(10)} for i in range(dicts)]

    return lambda effort: fresh_contest(make, flattens(peers), effort)
