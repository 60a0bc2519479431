# SPDX-License-Identifier: Apache-2.0
"""Nodes that Python functions open, met again in a known structure: all is as at first sight."""

import gc
import weakref
from random import Random
from typing import Any

import pytest

import pydag


class Node:
    """Opened by a function, which answers what it was given."""

    def __init__(self, children: Any, aux: Any, names: Any) -> None:
        self.answer = [children, aux] if names is None else [children, aux, names]


def _build(aux: Any, children: Any) -> Node:
    return Node(children, aux, None)


pydag.register_pydag_node(Node, lambda node: node.answer, _build)


class Leaf:
    """A leaf with identity."""


def random_dag(random: Random, size: int) -> Any:
    """A DAG of so many inner nodes; what is shared may be met first in one that is asked."""
    made: list[Any] = [Leaf(), Leaf(), 1.5, None]
    for i in range(size):
        count = random.randrange(4)
        parts = [random.choice(made) if random.random() < 0.5 else Leaf() for _ in range(count)]
        if i and random.random() < 0.8:
            parts.append(made[-1])
        kind = random.randrange(5)
        if kind == 0:
            made.append(parts)
        elif kind == 1:
            made.append(dict(zip("abcdef", parts, strict=False)))
        elif kind == 2:
            made.append({(i, name): part for name, part in zip("bacdef", parts, strict=False)})
        else:
            names = random.choice(
                [None, [f"x{j}" for j in range(len(parts))], [*range(len(parts))]]
            )
            made.append(
                Node(random.choice([list, tuple])(parts), random.choice([None, "a", i]), names)
            )
    return [made[-1], made[-2], random.choice(made)]


def flattened(tree: Any) -> Any:
    """All that a flatten tells."""
    paths, leaves, spec = pydag.dag_flatten_with_path(tree)
    return [id(leaf) for leaf in leaves], repr(spec), paths, list(pydag.dag_leaves(tree))


@pytest.mark.parametrize("seed", range(60))
def test_random_dags(seed: int) -> None:
    """Flattened again, each DAG has the leaves, structure and paths that it had at first."""
    random = Random(seed)
    trees = [random_dag(random, random.randrange(1, 40)) for _ in range(4)]
    expected = []
    for tree in trees:
        pydag.clear_caches()
        expected.append(flattened(tree))
    for i in [0, 0, 0, 1, 1, 1, 2, 3, 2, 3, 0, 1, 0, 0]:
        assert flattened(trees[i]) == expected[i]
    for tree in trees:
        leaves = pydag.dag_leaves(tree)
        again = pydag.dag_leaves(pydag.dag_map(lambda x: x, tree))
        assert [id(x) for x in again] == [id(x) for x in leaves]


@pytest.mark.parametrize("names", [None, ["x", "y"]])
@pytest.mark.parametrize("seed", range(10))
def test_answers_that_change(seed: int, names: Any) -> None:
    """What a node says this time counts, and not what it, or one like it, said before."""
    random = Random(seed)
    nodes = [Node([Leaf(), Leaf()], None, names) for _ in range(12)]
    shared = Leaf()
    for _ in range(30):
        node = random.choice(nodes)
        change = random.randrange(4)
        if change == 0:
            node.answer[0] = [random.choice([shared, Leaf()]), random.choice([nodes[-1], Leaf()])]
            if node is nodes[-1]:
                node.answer[0] = [shared, shared]
        elif change == 1:
            node.answer[1] = random.choice([None, "text", 3, ("a", 1), Leaf, 10**30])
        elif change == 2 and names:
            node.answer[2:] = [random.choice([["x", "y"], ["u", "v"], [0, 1]])]
        found = [flattened(nodes) for _ in range(3)]
        pydag.clear_caches()
        assert found == [flattened(nodes)] * 3


def test_nothing_of_an_answer_is_kept() -> None:
    """A name or aux_data that is no constant dies with its last user."""

    class Name:
        pass

    aux, name = Name(), Name()
    references = [weakref.ref(aux), weakref.ref(name)]
    tree = [Node([1.5], aux, [name]), Node([1.5], ("a", aux), None)]
    for _ in range(3):
        pydag.dag_flatten(tree)
    del aux, name, tree
    gc.collect()
    assert [reference() for reference in references] == [None, None]


class Mover:
    """Its function takes an object out of a box, and answers it."""

    def __init__(self, box: Any, leaf: Any) -> None:
        self.box, self.leaf = box, leaf


def _move(mover: Mover) -> Any:
    mover.box[0] = Leaf()
    return [mover.leaf], None


pydag.register_pydag_node(Mover, _move, lambda *_: None)
