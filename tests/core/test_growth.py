# SPDX-License-Identifier: Apache-2.0
"""The cost of every operation is linear in objects and edges, never in paths."""

import time
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from operations import OPERATIONS, doubled, seconds

import pydag

pytestmark = pytest.mark.measures
Point = namedtuple("Point", "x")


@pydag.register_fields
class Pair:
    def __init__(self, x: Any) -> None:
        self.x, self.y = x, x


@pytest.mark.parametrize("operation", OPERATIONS)
def test_sixty_levels(operation: str) -> None:
    """Sixty levels of dicts, lists, tuples and fields, 6**30 paths, take next to no time."""
    tree: Any = object()
    for _ in range(30):
        pair = Pair(tree)
        tree = {"a": pair, "b": [pair, (pair,)]}
    assert seconds(lambda: OPERATIONS[operation](tree), times=3) < 2


def test_results_of_sixty_levels() -> None:
    """The counts, the text and the results of sixty levels are those of sixty lists."""
    tree = doubled(60)
    leaves, spec = pydag.dag_flatten(tree)
    assert leaves == [0.5, 0.5]
    assert (spec.num_leaves, spec.num_nodes, spec.num_shared) == (2, 62, 59)
    assert spec.num_paths == 2**60
    assert spec.paths() == [(0,) * 59 + (0,), (0,) * 59 + (1,)]
    assert repr(spec).startswith("PyDagSpec([&0 [&1 [&2 [")
    assert repr(spec).endswith("*2], *1], *0])")
    assert len(repr(spec)) < 700
    out = pydag.dag_map(lambda x: x + 1, tree)
    for _ in range(59):
        assert out[0] is out[1]
        out = out[0]
    assert out == [1.5, 1.5]


def test_number_of_paths_has_no_end() -> None:
    """The number of paths is a Python int, however many there are."""
    assert pydag.dag_structure(doubled(1000)).num_paths == 2**1000


def test_rest_that_shares_less_at_the_top() -> None:
    """A rest whose upper levels are unshared is walked once for each of its own objects."""
    rest = doubled(50, 2.5)
    for _ in range(10):
        rest = [rest, list(rest)]
    out = pydag.dag_map(lambda x, y: y, doubled(60), rest)
    for _ in range(59):
        out = out[0]
    assert out == [2.5, 2.5]


def test_matching_many_copies_of_a_parent() -> None:
    """Copies that hold one big object in common don't each cost its size."""
    size = 20_000
    inner = [0.5] * size
    tree = [[inner]] * size
    other = [0.5] * size
    rest = [[other] for _ in range(size)]
    assert seconds(lambda: pydag.dag_map(lambda x, y: x, tree, rest), times=3) < 2


def test_message_about_other_keys() -> None:
    """Two dicts of 50,000 other keys each are told apart in no time, and in few words."""
    one, other = ({f"{letter}{i}": i for i in range(50_000)} for letter in "ab")

    def work() -> None:
        with pytest.raises(ValueError, match="key") as info:
            pydag.dag_map(lambda x, y: x, one, other)
        assert len(str(info.value)) < 2000

    assert seconds(work, times=3) < 2


@pytest.mark.parametrize("back", [True, False])
def test_reref_of_a_chain_of_aliases(back: bool) -> None:
    """Anchors that hold aliases of anchors, 20,000 long, are followed once each."""
    size = 20_000
    anchors: list[Any] = [pydag.Anchor(i, pydag.Alias(i + 1)) for i in range(size)]
    anchors.append(pydag.Anchor(size, [0.5]))
    if back:
        anchors.reverse()
    start = time.thread_time()
    out = pydag.reref(anchors)
    assert time.thread_time() - start < 4
    assert len({id(x) for x in out}) == 1


@dataclass
class Plain:
    x: Any


@pytest.mark.parametrize(
    "wrap",
    [
        lambda t: Point(t),
        lambda t: OrderedDict(x=t),
        lambda t: defaultdict(list, x=t),
        lambda t: Plain(t),
        lambda t: [Plain([Plain(t)])],
        lambda t: {Point((1, 2)): t},
        lambda t: t,
    ],
)
def test_messages_about_shared_structures(wrap: Callable[[Any], Any]) -> None:
    """A message never writes out a structure along all its paths."""
    big = wrap(doubled(60))

    def work() -> None:
        for tree, rest in (((1, 2, 3), big), ([(1, 2, 3)], [big])):
            with pytest.raises(ValueError, match="Expected") as info:
                pydag.dag_map(lambda x, y: x, tree, rest)
            assert len(str(info.value)) < 2000

    assert seconds(work, times=3) < 2
