# SPDX-License-Identifier: Apache-2.0
"""Every operation of the package on hostile trees: any answer and any planned error will do.

No crash, no `SystemError`, no walk without end, and afterwards all is as before.
"""

import copy
import gc
import pickle
import random
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import hostile
import specimens as sp
from agree_trees import is_small
from changes import change_some
from hostile import TRAP, Trap, hostile_tree, odd, one_by_one, spring
from operations import OPERATIONS
from rounds import ALLOWED, Round, expect, scenario

import pydag

Call = Callable[[Any, Any, dict[str, Any]], Any]


def f(*arguments: Any) -> Any:
    """A function of the user, to map with and to be asked."""
    spring()
    return odd(arguments[-1])


def says(*arguments: Any) -> Any:
    """A predicate of the user."""
    spring()
    return odd(False)


def one_of(spec: Any, *_: Any) -> Any:
    """A function that gives a structure."""
    spring()
    return odd(spec)


def _spec(tree: Any, options: Any) -> pydag.PyDagSpec:
    return pydag.dag_structure(tree, **options)


EVERY: dict[str, Call] = {
    "flatten": lambda x, y, o: pydag.dag_flatten(x, says, **o),
    "with path": lambda x, y, o: pydag.dag_flatten_with_path(x, says, **o),
    "with accessor": lambda x, y, o: pydag.dag_flatten_with_accessor(x, says, **o),
    "iter": lambda x, y, o: list(pydag.dag_iter(x, says, **o)),
    "iter, a part": lambda x, y, o: next(pydag.dag_iter(x, says, **o), None),
    "copy": lambda x, y, o: pydag.dag_copy(x, says, leaf=f, **o),
    "deep copy": lambda x, y, o: pydag.dag_copy(x, says, deep=True, **o),
    "map": lambda x, y, o: pydag.dag_map(f, x, y, is_leaf=says, **o),
    "map_": lambda x, y, o: pydag.dag_map_(f, x, x, is_leaf=says, **o),
    "map with path": lambda x, y, o: pydag.dag_map_with_path(f, x, is_leaf=says, **o),
    "map with accessor": lambda x, y, o: pydag.dag_map_with_accessor(f, x, is_leaf=says, **o),
    "map where": lambda x, y, o: pydag.dag_map(f, x, where=says, **o),
    "unflatten": lambda x, y, o: _spec(x, o).unflatten(one_by_one(pydag.dag_leaves(x, **o))),
    "match": lambda x, y, o: _spec(x, o).flatten_up_to(y),
    "match itself": lambda x, y, o: _spec(x, o).flatten_up_to(x),
    "deref": lambda x, y, o: pydag.reref(pydag.deref(x, says, **o), says, **o),
    "fold": lambda x, y, o: pydag.dag_fold(f, x, says, **o),
    "fold by class": lambda x, y, o: pydag.dag_fold({object: f, list: says}, x, **o),
    "fold with context": lambda x, y, o: pydag.dag_fold(f, x, down=f, init=1, **o),
    "rewrite": lambda x, y, o: pydag.dag_rewrite(f, x, says, **o),
    "intern": lambda x, y, o: pydag.dag_intern([x, y], says, **o),
    "shared objects": lambda x, y, o: pydag.shared_objects(x, says, **o),
    "partition": lambda x, y, o: pydag.dag_partition(says, x, says, **o),
    "combine": lambda x, y, o: pydag.dag_combine(x, y, is_leaf=says),
    "mask": lambda x, y, o: pydag.dag_mask(x, says, **o),
    "reduce": lambda x, y, o: pydag.dag_reduce(f, x, 0, is_leaf=says, **o),
    "any": lambda x, y, o: pydag.dag_any(x, is_leaf=says, **o),
    "replace nones": lambda x, y, o: pydag.dag_replace_nones(y, x),
    "update": lambda x, y, o: pydag.dag_update(x, y, says, **o),
    "update by itself": lambda x, y, o: pydag.dag_update(x, pydag.dag_copy(x, **o), says, **o),
    "replace": lambda x, y, o: pydag.dag_replace(x, pydag.dag_leaves(x, **o)[-1], y, says, **o),
    "tie": lambda x, y, o: pydag.tie(x, *pydag.dag_paths(x, **o)[:2], is_leaf=says, **o),
    "untie": lambda x, y, o: pydag.untie(x, *pydag.dag_paths(x, **o)[:2], is_leaf=says, **o),
    "retie": lambda x, y, o: pydag.retie(_spec(x, o), y, combine=f),
    "broadcast prefix": lambda x, y, o: pydag.dag_broadcast_prefix(x, [y, x], says, **o),
    "broadcast common": lambda x, y, o: pydag.dag_broadcast_common(x, y, says, **o),
    "broadcast map": lambda x, y, o: pydag.dag_broadcast_map(f, x, y, is_leaf=says, **o),
    "prefix errors": lambda x, y, o: [e("p") for e in pydag.prefix_errors(x, y, says, **o)],
    "transpose map": lambda x, y, o: pydag.dag_transpose_map(f, x, is_leaf=says, **o),
    "one level": lambda x, y, o: pydag.dag_flatten_one_level(x, says),
    "all leaves": lambda x, y, o: pydag.all_leaves(one_by_one([x, y]), says),
    "paths": lambda x, y, o: pydag.dag_paths(x, says, **o),
    "all paths": lambda x, y, o: is_small(x) and pydag.dag_paths(x, says, all_paths=True, **o),
    "compare": lambda x, y, o: (_spec(x, o) == _spec(y, o), _spec(x, o) <= _spec(y, o)),
    "repr": lambda x, y, o: repr(_spec(x, o)),
    "hash": lambda x, y, o: hash(_spec(x, o)),
    "explain": lambda x, y, o: str(pydag.explain(_spec(x, o), _spec(y, o))),
    "view": lambda x, y, o: str(pydag.view(x, is_leaf=says, **o)),
    "pickle": lambda x, y, o: pickle.loads(pickle.dumps(_spec(x, o))),
    "deepcopy": lambda x, y, o: copy.deepcopy(_spec(x, o)),
    "json": lambda x, y, o: pydag.PyDagSpec.from_json(_spec(x, o).to_json()),
    "treespec": lambda x, y, o: _spec(x, o).to_treespec(),
    "walk": lambda x, y, o: _spec(x, o).walk(one_by_one(pydag.dag_leaves(x, **o)), f, f),
    "traverse": lambda x, y, o: _spec(x, o).traverse(pydag.dag_leaves(x, **o), f, f),
    "transform": lambda x, y, o: _spec(x, o).transform(one_of, one_of),
    "collect": lambda x, y, o: pydag.dagspec_from_collection({"a": _spec(x, o), 1: _spec(y, o)}),
    "suffix": lambda x, y, o: _spec(x, o).broadcast_to_common_suffix(_spec(y, o)),
    "accessors": lambda x, y, o: [a(x) for a in _spec(x, o).accessors()],
    "children": lambda x, y, o: [_spec(x, o).children(), _spec(x, o).entries()],
}
EXPECTED = (*ALLOWED, pickle.PicklingError, KeyboardInterrupt)
WATCHED: list[tuple[str, weakref.ref[Any]]] = []
"""An object of each recent round, which must die when the round is over."""


def operate(
    this: Round, tree: Any, other: Any, options: dict[str, Any], *, near_end: bool = True
) -> None:
    """Some operation, which may raise whatever is allowed.

    Args:
        this: The round.
        tree: What it works on.
        other: Its second argument, where it has one.
        options: How trees are flattened.
        near_end: Whether Python's limit may be set so that the operation meets it.
    """
    limit = sys.getrecursionlimit()
    try:
        if near_end and this.often(0.1):  # the end of the stack is near
            sys.setrecursionlimit(_depth() + this.rng.randrange(8, 120))
        if this.often(0.8):
            EVERY[this.rng.choice(list(EVERY))](tree, other, options)
        else:
            OPERATIONS[this.rng.choice(list(OPERATIONS))](tree)
    except EXPECTED:
        return
    finally:
        sys.setrecursionlimit(limit)


def _depth() -> int:
    frame, depth = sys._getframe(), 0
    while frame := frame.f_back:  # type: ignore[assignment]  # None ends the loop
        depth += 1
    return depth


@scenario(weight=20)
def hostile_trees(this: Round) -> None:
    """Operations on hostile trees, whose code changes them and calls the package again."""
    watched = sp.Opaque()
    trap = Trap(this, lambda tree: operate(this, tree, tree, this.options()))
    tree, other = hostile_tree(this, trap.passers), hostile_tree(this, trap.passers)
    if this.often(0.5):
        other = _twin(tree, this.options())
    trap.trees = [[tree, watched], [other, tree], tree]
    this.built.clear()  # so that they can die within the round
    TRAP.append(trap)
    try:
        for _ in range(this.rng.randrange(1, 5)):
            operate(this, tree, other, this.options())
    finally:
        TRAP.pop().passers.end()
        hostile.register_locally(sp.Local)
    WATCHED.append((f"{this.rng.random()}", weakref.ref(watched)))
    del trap, tree, other, watched
    sp.EVENTS.clear()
    _all_is_well()
    if len(WATCHED) >= 40:
        _nothing_is_kept()


@scenario()
def threads(this: Round) -> None:
    """Operations in three threads on a tree that a fourth one changes.

    How they take turns is the system's choice, so a second run of such a round isn't the same one.
    """
    tree, other = this.tree(), this.tree()
    escaped: list[BaseException] = []

    def work(act: Callable[[Round], None], seed: float) -> None:
        own = Round(random.Random(seed))
        try:
            for _ in range(8):
                act(own)
        except BaseException as error:
            escaped.append(error)

    acts: list[Callable[[Round], None]] = [
        lambda own: operate(own, tree, other, own.options(), near_end=False)
    ] * 3
    acts.append(lambda own: change_some(own.rng, tree, sp.Opaque()))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        running = [threading.Thread(target=work, args=(act, this.rng.random())) for act in acts]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    unexpected = [error for error in escaped if not isinstance(error, EXPECTED)]
    expect(f"threads: {unexpected!r}", not unexpected)
    _all_is_well()


def _twin(tree: Any, options: dict[str, Any]) -> Any:
    try:
        return pydag.dag_copy(tree, **options)
    except EXPECTED:
        return [tree, tree]


def _all_is_well() -> None:
    """What the package says of a small tree, after whatever happened."""
    w = sp.Opaque()
    tree = {"b": [w, 1], "a": sp.Box(w, sp.Module(x=w)), 3: (w, None)}
    leaves, spec = pydag.dag_flatten(tree)
    text = "PyDagSpec({3: (&0 *, None), 'a': CustomTreeNode(Box[None], [*0, Module(x=*0)]), "
    expect("afterwards: text", repr(spec) == text + "'b': [*0, *]})")
    expect("afterwards: leaves", len(leaves) == 2 and leaves[0] is w)
    built = pydag.dag_unflatten(spec, leaves)
    expect("afterwards: built", built["a"].children[1].x is w and list(built) == ["b", "a", 3])


def _nothing_is_kept() -> None:
    sp.EVENTS.clear()
    for _ in range(3):  # a finalizer may give an object some more time
        gc.collect()
    kept = sum(reference() is not None for _, reference in WATCHED)
    WATCHED.clear()
    expect(f"leaked: {kept} of 40 rounds left an object behind", kept == 0)
