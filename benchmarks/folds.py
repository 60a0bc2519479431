# SPDX-License-Identifier: Apache-2.0
"""Computing over expressions: pydag beside what each library has for its own classes.

On plain classes the others are a recursion with `functools.lru_cache` or `pytools.memoize`, which
find an object by identity, as the classes say. sympy's and UFL's walks each work on their own
classes, and pydag on the very same objects. (An expression of pymbolic keeps its hash in an
attribute once pymbolic walked it; pydag refuses to lose that.)
"""

import functools
from collections.abc import Callable
from functools import partial
from typing import Any

from expressions import (
    CHAIN,
    SHAPES,
    SIXTY_FOLD,
    Algebra,
    Variable,
    chain,
    plain_algebra,
    sympy_algebra,
    ufl_algebra,
    unfolded,
)
from peers import Peers
from records import Record, Task
from timing import Effort, Work, contest

import pydag

WRITTEN_OUT = "written out"  # equal parts that are objects of their own

Function = Callable[[Any], Any]
Works = dict[str, dict[str, Function]]  # work -> contender -> call


def tasks(peers: Peers, effort: Effort) -> list[Task]:
    """A task for each expression of each library that is installed."""
    owners: list[tuple[str, Callable[[Peers], Algebra], Callable[[Peers, Algebra], Works]]] = [
        ("", plain_algebra, works_on_plain),
        ("sympy", sympy_algebra, _on_sympy),
        ("UFL", ufl_algebra, _on_ufl),
    ]
    found = []
    for name, make_algebra, make_works in owners:
        if name and name not in peers:
            continue
        algebra = make_algebra(peers)
        shapes = SHAPES | {WRITTEN_OUT: lambda algebra: unfolded(algebra, 5)}
        if not name:  # building it takes the others too long
            shapes |= {CHAIN: lambda algebra: chain(algebra, 20_000)}
        for shape, make in shapes.items():
            run = partial(_race, peers, effort, algebra, shape, make, make_works)
            found.append(Task(f"{shape} of {algebra.owner}", run))
    return found


def _race(
    peers: Peers,
    effort: Effort,
    algebra: Algebra,
    shape: str,
    make: Callable[[Algebra], Any],
    make_works: Callable[[Peers, Algebra], Works],
) -> list[Record]:
    tree = make(algebra)
    nodes = pydag.dag_structure(tree).num_nodes
    records = []
    for work, functions in make_works(peers, algebra).items():
        if (work == "intern") is not (shape == WRITTEN_OUT):
            continue
        # It would not come back: each level doubles what it does.
        endless = {"sympy"} if shape == SIXTY_FOLD else set()
        running = {name: Work(f, tree) for name, f in functions.items() if name not in endless}
        outcome = contest(running, effort)
        outcome.notes |= dict.fromkeys(endless & functions.keys(), "follows each path")
        labels = {"work": work, "shape": shape, "owner": algebra.owner}
        records.append(Record.of("folds", labels, outcome, nodes=nodes))
    return records


def _pydag(old: Any, new: Any) -> dict[str, Function]:
    """What pydag does, whoever the classes belong to."""

    def replace(variable: Any) -> Any:
        return new if variable is old else variable

    return {
        "count": lambda tree: pydag.dag_structure(tree).num_nodes,
        "height": partial(pydag.dag_fold, {tuple: _highest, object: _height}),
        "rewrite one variable": partial(pydag.dag_rewrite, {type(old): replace}),
        "rewrite nothing": partial(pydag.dag_rewrite, _same),
        "intern": pydag.dag_intern,
    }


def _same(node: Any) -> Any:
    return node


def _highest(node: Any, below: tuple[int, ...]) -> int:
    return max(below)


def _height(node: Any, below: tuple[int, ...]) -> int:
    return 1 + max(below) if below else 0


def _beside(ours: dict[str, Function], **others: dict[str, Function]) -> Works:
    """By work: pydag, and those of the others that can do it."""
    return {
        work: {"pydag": ours[work]}
        | {name: own[work] for name, own in others.items() if work in own}
        for work in ours
        if any(work in own for own in others.values())
    }


def works_on_plain(peers: Peers, algebra: Algebra) -> Works:
    """What is done with plain classes, and by whom."""
    old, new = algebra.variable(3), algebra.variable(-1)
    others = {"functools.lru_cache": _recursions(functools.lru_cache(None), old, new)}
    if "pytools" in peers:
        memoize = partial(_started, peers["pytools"].memoize)
        others["pytools.memoize"] = _recursions(memoize, old, new)
    return _beside(_pydag(old, new), **others)


def _started(memoize: Callable[[Any], Any], function: Function) -> Any:
    """A function whose memo is there before it is called.

    Made within the first call, as pytools does it, it is made again by each level of a recursion,
    and forgets the one before.
    """
    memoized = memoize(function)
    memoized.__wrapped__._memoize_dic = {}
    return memoized


def _recursions(memoize: Callable[[Any], Any], old: Any, new: Any) -> dict[str, Function]:
    """What one writes by hand. The memo is one call's own, as the others' are."""

    def count(tree: Any) -> int:
        total = 0

        @memoize
        def visit(node: Any) -> None:
            nonlocal total
            total += 1
            if type(node) is not Variable:
                visit(node.left)
                visit(node.right)

        visit(tree)
        return total

    def height(tree: Any) -> int:
        @memoize
        def visit(node: Any) -> Any:
            if type(node) is Variable:
                return 0
            return 1 + max(visit(node.left), visit(node.right))

        return int(visit(tree))

    def rewrite(variable: Any, tree: Any) -> Any:
        @memoize
        def visit(node: Any) -> Any:
            if type(node) is Variable:
                return new if node is variable else node
            left, right = visit(node.left), visit(node.right)
            if left is node.left and right is node.right:
                return node
            return type(node)(left, right)

        return visit(tree)

    return {
        "count": count,
        "height": height,
        "rewrite one variable": partial(rewrite, old),
        "rewrite nothing": partial(rewrite, None),
    }


def _on_sympy(peers: Peers, algebra: Algebra) -> Works:
    sympy = peers["sympy"]
    old, new, other = (algebra.variable(i) for i in (3, -1, -2))
    own: dict[str, Function] = {
        "count": lambda tree: len(set(sympy.preorder_traversal(tree))),
        "rewrite one variable": lambda tree: tree.xreplace({old: new}),
        "rewrite nothing": lambda tree: tree.xreplace({other: new}),
        "intern": sympy.cse,
    }
    return _beside(_pydag(old, new), sympy=own)


def _on_ufl(peers: Peers, algebra: Algebra) -> Works:
    from ufl.algorithms import replace
    from ufl.corealg.map_dag import map_expr_dag
    from ufl.corealg.multifunction import MultiFunction
    from ufl.corealg.traversal import unique_post_traversal

    class Reuse(MultiFunction):  # type: ignore[misc]  # as above
        expr = MultiFunction.reuse_if_untouched

    def height(node: Any, *below: int) -> int:
        return _height(node, below)

    reuse = Reuse()
    old, new = algebra.variable(3), algebra.variable(-1)
    own: dict[str, Function] = {
        "count": lambda tree: sum(1 for _ in unique_post_traversal(tree)),
        "height": lambda tree: map_expr_dag(height, tree, compress=False),
        "rewrite one variable": lambda tree: replace(tree, {old: new}),
        "rewrite nothing": partial(map_expr_dag, reuse),
        "intern": partial(map_expr_dag, reuse),
    }
    return _beside(_pydag(old, new), UFL=own)
