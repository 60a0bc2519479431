# SPDX-License-Identifier: Apache-2.0
"""What operations on specs cost: linear in objects and edges, at any depth."""

import gc
import time
from collections.abc import Callable
from typing import Any

import pytest
from operations import DEPTHS, doubled, seconds

import pydag

Work = Callable[[pydag.PyDagSpec, pydag.PyDagSpec], Any]

# Of a spec, and of another one that is equal, and made of other objects.
WORK: dict[str, Work] = {
    "children": lambda spec, _: spec.children(),
    "child": lambda spec, _: spec.child(-1),
    "one_level": lambda spec, _: spec.one_level(),
    "is_one_level": lambda spec, _: spec.is_one_level(),
    "entries": lambda spec, _: spec.entries(),
    "entry": lambda spec, _: spec.entry(0),
    "is_prefix": lambda spec, other: spec <= other,
    "is_prefix of other sharing": lambda spec, other: pydag.dagspec_leaf() < other,
    "compose": lambda spec, other: spec.compose(other),
    "broadcast": lambda spec, other: spec.broadcast_to_common_suffix(other),
    "broadcast of a leaf": lambda spec, _: pydag.dagspec_leaf().broadcast_to_common_suffix(spec),
    "transform": lambda spec, _: spec.transform(lambda x: x, lambda x: x),
    "transform leaves": lambda spec, other: spec.transform(None, lambda _: other),
    "traverse": lambda spec, _: spec.traverse(range(len(spec)), lambda x: x),
    "walk": lambda spec, _: spec.walk(range(len(spec)), lambda *parts: None),
    "list": lambda spec, other: pydag.dagspec_list([spec, other]),
    "from_collection": lambda spec, other: pydag.dagspec_from_collection({"a": spec, "b": other}),
    "flatten_up_to": lambda spec, other: spec.flatten_up_to(other.unflatten(range(len(other)))),
    "paths": lambda spec, _: spec.paths(),
}


@pytest.mark.measures
@pytest.mark.parametrize("name", WORK)
def test_sixty_levels_in_a_millisecond(name: str) -> None:
    """2**60 paths are those of 61 lists."""
    spec, other = (pydag.dag_structure(doubled(60, object())) for _ in range(2))
    assert seconds(lambda: WORK[name](spec, other)) < 0.001


def test_results_of_sixty_levels() -> None:
    """What comes out of sixty levels has sixty levels, or twice as many."""
    spec = pydag.dag_structure(doubled(60, object()))
    assert spec.children() == [pydag.dag_structure(doubled(59, object()))] * 2
    assert spec.compose(spec) == pydag.dag_structure(doubled(120, object()))
    assert spec.transform(lambda s: s, lambda _: spec) == spec.compose(spec)
    assert spec.broadcast_to_common_suffix(spec) == spec
    assert pydag.dagspec_leaf().broadcast_to_common_suffix(spec) == spec
    assert not spec < spec


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("kind", ["list", "tuple", "dict"])
def test_deep_chain(kind: str, depth: int) -> None:
    """Depth is bounded by memory alone, to a million levels and more."""
    tree: Any = object()
    for _ in range(depth):
        tree = [tree] if kind == "list" else (tree,) if kind == "tuple" else {"k": tree}
    gc.disable()  # it would go down the chain, too
    try:
        spec = pydag.dag_structure(tree)
        other = pydag.dag_structure(pydag.dag_copy(tree))
        for name, work in WORK.items():
            start = time.thread_time()
            work(spec, other)
            assert time.thread_time() - start < 5, name
        assert spec.to_treespec().num_nodes == depth + 1
        assert spec.children()[0].num_nodes == depth
        assert spec.compose(other).num_nodes == 2 * depth + 1
    finally:
        gc.enable()


@pytest.mark.measures
def test_many_children_of_one_object() -> None:
    """A thousand slots that hold one large object don't cost its size each."""
    large = [object() for _ in range(10_000)]
    spec = pydag.dag_structure([large] * 1000)
    assert seconds(spec.children) < 0.1
    assert len(spec.children()) == 1000


@pytest.mark.measures
def test_broadcast_of_other_sharing() -> None:
    """A leaf with many places is compared with each different object once, not along every path."""
    w, size = object(), 1000
    first = pydag.dag_structure([w] * size)
    second = pydag.dag_structure([[object() for _ in range(10)] for _ in range(size)])
    assert seconds(lambda: first.broadcast_to_common_suffix(second)) < 0.1
    shared = pydag.dag_structure(doubled(60, w))
    upper: Any = doubled(50, w)
    for _ in range(10):
        upper = [upper, list(upper)]
    assert seconds(lambda: shared.broadcast_to_common_suffix(pydag.dag_structure(upper))) < 0.1


@pytest.mark.measures
def test_transpose_of_sixty_levels() -> None:
    """Both structures are shared sixty-fold, and so is what each holds of the other."""
    spec = pydag.dag_structure(doubled(60, object()))
    parts = spec.compose(spec).unflatten([object()])
    assert seconds(lambda: pydag.dag_transpose(spec, spec, parts)) < 0.001
    assert pydag.dag_structure(pydag.dag_transpose(spec, spec, parts)) == spec.compose(spec)


@pytest.mark.measures
def test_errors_of_sixty_levels() -> None:
    """What doesn't fit is found once, at its first path."""
    errors = pydag.prefix_errors(doubled(60, [1]), doubled(60, (1,)))
    assert len(errors) == 1
    assert "in_axes" + "[0]" * 60 + "\n" in str(errors[0]("in_axes"))
    assert seconds(lambda: pydag.prefix_errors(doubled(60, [1]), doubled(60, (1,)))) < 0.02


@pytest.mark.measures
def test_many_answers_for_one_object() -> None:
    """A large object at many places, each with a leaf of its own, is gone through once."""
    large = [object() for _ in range(10_000)]
    prefix, full = [1.5] * 1000, [large] * 1000
    assert seconds(lambda: pydag.broadcast_prefix(prefix, full)) < 0.1
    assert seconds(lambda: pydag.broadcast_common(full, [float(1) for _ in range(1000)])) < 0.1
