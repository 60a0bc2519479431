# SPDX-License-Identifier: Apache-2.0
"""Rows of the table of cliffs: functions that might run Python for each node, or grow too fast."""

from collections.abc import Callable
from functools import partial
from typing import Any

from peers import Peers
from rows import USUAL, Race, Row, at_least, at_most, steady, within
from timing import Effort, Outcome, Work, contest

import pydag

MEMO = "a memo dict"


def rows(peers: Peers, effort: Effort) -> list[Row]:
    """All of them."""
    layers = 250 if effort.quick else 1250
    tree = model(layers)
    leaves = 8 * layers
    masks: dict[str, Any] = {
        "a class": int,
        "a pattern": "*'attn'*",
        "a predicate": lambda leaf: True,
    }
    return [
        *(
            within(f"dag_mask by {what}", 300e-9, alone(pydag.dag_mask, tree, where), leaves)
            for what, where in masks.items()
        ),
        within("str(view) of 10,000 leaves", 1e-6, alone(_viewed, model(1250, float)), 10_000),
        at_most("prefix_errors(1, tree), a hundred times as many leaves", 1.3, _constant()),
        at_most("shared_objects of a ladder, ten times as many levels", 1.3, _ladder(effort)),
        at_least("reref of a mapped deref of ten thousand edges", 0.7, _reref()),
        *_beside_optree(peers, tree),
    ]


def model(layers: int, leaf: Callable[[], Any] = object) -> Any:
    """Layers of eight leaves, in dicts and tuples."""
    return {
        "layers": [
            {
                "attn": {name: leaf() for name in "qkvo"},
                "mlp": {"w": leaf(), "b": leaf()},
                "norm": (leaf(), leaf()),
            }
            for _ in range(layers)
        ]
    }


def alone(function: Callable[..., Any], *args: Any) -> Race:
    """The time of one call."""
    return steady({"pydag": Work(function, *args)})


def _viewed(tree: Any) -> str:
    return str(pydag.view(tree))


def _constant() -> Race:
    small, large = list(range(100)), list(range(10_000))
    return steady(
        {
            "pydag": Work(pydag.prefix_errors, 1, large),
            USUAL: Work(pydag.prefix_errors, 1, small),
        }
    )


def _ladder(effort: Effort) -> Race:
    """Lists that hold the next one twice: as many paths lead to the last as two to the power."""
    levels = 100 if effort.quick else 1000

    def ladder(levels: int) -> Any:
        node: Any = [0.5]
        for _ in range(levels):
            node = [node, node]
        return node

    def all_of(ladders: list[Any]) -> None:
        for one in ladders:
            pydag.shared_objects(one)

    return steady(
        {
            "pydag": Work(all_of, [ladder(10 * levels)]),
            USUAL: Work(all_of, [ladder(levels) for _ in range(10)]),
        }
    )


def _reref() -> Race:
    """A graph's edges, each a pair of two of a hundred nodes, as anchors and aliases."""
    nodes = [object() for _ in range(100)]
    edges = [[nodes[i % 100], nodes[i * 7 % 100]] for i in range(5_000)]
    mapped = pydag.dag_map(lambda leaf: leaf, pydag.deref(edges))
    return steady({"pydag": Work(pydag.reref, mapped), MEMO: Work(_by_memo, mapped)})


def _by_memo(tree: Any) -> Any:
    """The same as `pydag.reref` of these lists, written down by hand."""
    seen: dict[int, Any] = {}

    def build(node: Any) -> Any:
        cls = type(node)
        if cls is list:
            return [build(child) for child in node]
        if cls is pydag.Anchor:
            found = seen[node.index] = build(node.value)
            return found
        return seen[node.index] if cls is pydag.Alias else node

    return build(tree)


def _beside_optree(peers: Peers, tree: Any) -> list[Row]:
    if "optree" not in peers:
        return []
    optree = peers["optree"]
    parts = partial(_parts, optree)
    specs = {name: _Specs(of, tree) for name, of in (("pydag", _Ours), ("optree", optree))}
    spec_race = partial(_spec_race, specs)
    return [
        at_least("dag_transpose of 10 parts that hold an object twice", 1.0, parts(10)),
        at_least("dag_transpose of 1,000 such parts", 1.0, parts(1000)),
        at_least(
            "is_prefix, of an equal spec", 1.1, spec_race(lambda s: (s.whole.is_prefix, s.alike))
        ),
        at_least(
            "is_prefix, of a deeper spec", 1.1, spec_race(lambda s: (s.part.is_prefix, s.whole))
        ),
        at_least(
            "is_prefix, of a small spec",
            1.1,
            spec_race(lambda s: (s.small.is_prefix, s.small_alike)),
        ),
        at_least("traverse", 1.1, spec_race(lambda s: (s.whole.traverse, s.leaves, same, same))),
        at_least(
            "traverse without functions", 1.1, spec_race(lambda s: (s.whole.traverse, s.leaves))
        ),
    ]


def same(node: Any) -> Any:
    """What a traversal calls for each node."""
    return node


class _Ours:
    """pydag's functions by the names of optree's."""

    tree_structure = staticmethod(pydag.dag_structure)


class _Specs:
    """Specs of one library, and leaves for one of them."""

    def __init__(self, library: Any, tree: Any) -> None:
        structure = library.tree_structure
        small = {"a": [1, 2], "b": (3, {"c": 4})}
        self.whole, self.alike = structure(tree), structure(model(len(tree["layers"])))
        self.part = structure({"layers": [0] * len(tree["layers"])})
        self.small, self.small_alike = structure(small), structure(dict(small))
        self.leaves = list(range(8 * len(tree["layers"])))


def _spec_race(specs: dict[str, _Specs], call: Callable[[_Specs], tuple[Any, ...]]) -> Race:
    return steady({name: Work(*call(of)) for name, of in specs.items()})


def _parts(optree: Any, number: int) -> Race:
    def part() -> Any:
        twice = object()
        return {"a": twice, "b": twice, "c": object()}

    tree, plain = [part() for _ in range(number)], {"a": 1, "b": 2, "c": 3}

    def race(effort: Effort) -> Outcome:
        ours = pydag.dag_structure([0] * number), pydag.dag_structure(plain)
        theirs = optree.tree_structure([0] * number), optree.tree_structure(plain)
        return contest(
            {
                "pydag": Work(pydag.dag_transpose, *ours, tree),
                "optree": Work(optree.tree_transpose, *theirs, tree),
            },
            effort,
        )

    return race
