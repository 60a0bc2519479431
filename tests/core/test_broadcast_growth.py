# SPDX-License-Identifier: Apache-2.0
"""What broadcasting and transposing cost: linear in objects and edges, at any depth."""

import gc
import time
from collections.abc import Callable
from typing import Any

import pytest
from operations import doubled, seconds

import pydag

pytestmark = pytest.mark.measures
Work = Callable[[Any, Any], Any]

# Of a tree, and of another one that is structured alike.
WORK: dict[str, Work] = {
    "prefix": pydag.dag_broadcast_prefix,
    "one leaf": lambda tree, _: pydag.dag_broadcast_prefix(1, tree),
    "list": pydag.broadcast_prefix,
    "predicate": lambda tree, other: pydag.broadcast_prefix(tree, other, lambda x: False),
    "common": pydag.dag_broadcast_common,
    "lists": pydag.broadcast_common,
    "map": lambda tree, other: pydag.dag_broadcast_map(lambda x, y: x, tree, other),
    "map one": lambda tree, _: pydag.dag_broadcast_map(lambda x, y: y, 1, tree),
    "errors": pydag.prefix_errors,
    "transpose map": lambda tree, other: pydag.dag_transpose_map(lambda x: tree, other),
}


@pytest.mark.parametrize("name", WORK)
def test_sixty_levels_in_a_millisecond(name: str) -> None:
    """2**60 paths are those of 61 lists."""
    tree, other = (doubled(60, object()) for _ in range(2))
    assert seconds(lambda: WORK[name](tree, other)) < 0.001


def test_transpose_of_sixty_levels() -> None:
    """Both structures are shared sixty-fold, and so is what each holds of the other."""
    spec = pydag.dag_structure(doubled(60, object()))
    parts = spec.compose(spec).unflatten([object()])
    assert seconds(lambda: pydag.dag_transpose(spec, spec, parts)) < 0.001
    assert pydag.dag_structure(pydag.dag_transpose(spec, spec, parts)) == spec.compose(spec)


def test_errors_of_sixty_levels() -> None:
    """What doesn't fit is found once, at its first path."""
    errors = pydag.prefix_errors(doubled(60, [1]), doubled(60, (1,)))
    assert len(errors) == 1
    assert "in_axes" + "[0]" * 60 + "\n" in str(errors[0]("in_axes"))
    assert seconds(lambda: pydag.prefix_errors(doubled(60, [1]), doubled(60, (1,)))) < 0.02


def test_many_answers_for_one_object() -> None:
    """A large object at many places, each with a leaf of its own, is gone through once."""
    large = [object() for _ in range(10_000)]
    prefix, full = [1.5] * 1000, [large] * 1000
    assert seconds(lambda: pydag.broadcast_prefix(prefix, full)) < 0.1
    assert seconds(lambda: pydag.broadcast_common(full, [float(1) for _ in range(1000)])) < 0.1


@pytest.mark.parametrize("kind", ["list", "tuple", "dict"])
def test_chain_of_a_million(kind: str) -> None:
    """Depth is bounded by memory alone."""

    def chain() -> Any:
        tree: Any = object()
        for _ in range(1_000_000):
            tree = [tree] if kind == "list" else (tree,) if kind == "tuple" else {"k": tree}
        return tree

    gc.disable()  # it would go down the chain, too
    try:
        tree, other = chain(), chain()
        for name, work in WORK.items():
            if name != "predicate":  # a Python call for each object
                start = time.thread_time()
                work(tree, other)
                assert time.thread_time() - start < 8, name
        spec = pydag.dag_structure(tree)
        assert pydag.dag_structure(pydag.dag_broadcast_prefix(tree, other)) == spec
        assert pydag.dag_structure(pydag.dag_transpose(spec, pydag.dag_structure([1]), tree)) == (
            pydag.dagspec_list([spec])
        )
    finally:
        gc.enable()
