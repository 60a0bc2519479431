# SPDX-License-Identifier: Apache-2.0
"""Operations on specs, with callbacks, keys and aux_data that turn against them."""

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import specimens as sp

import pydag

W = sp.Opaque()
N = [W]


class Box:
    """A node with aux_data."""

    def __init__(self, *children: Any, aux: Any = None) -> None:
        self.children, self.aux = children, aux


pydag.register_pydag_node(
    Box, lambda box: (box.children, box.aux), lambda aux, items: Box(*items, aux=aux)
)

TREE = {"b": N, "a": [N, (W, None)], "c": Box(N, 1)}
SPEC = pydag.dag_structure(TREE)

# What each operation does with functions that it calls.
CALLS: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "transform node": lambda f: SPEC.transform(f),
    "transform leaf": lambda f: SPEC.transform(None, f),
    "traverse node": lambda f: SPEC.traverse([W, 1], f),
    "traverse leaf": lambda f: SPEC.traverse([W, 1], None, f),
    "walk node": lambda f: SPEC.walk([W, 1], lambda *parts: f(parts)),
    "walk leaf": lambda f: SPEC.walk([W, 1], None, f),
}


SECOND = {"node": "tree['a'][1][1]", "leaf": "tree['c'][1]"}
"""Where the second node, and the second leaf, is."""


@pytest.mark.parametrize("name", CALLS)
def test_raising_function(name: str) -> None:
    """An exception passes through unchanged, with a note that says where; the spec is as before."""
    count = 0

    def boom(x: Any) -> Any:
        nonlocal count
        count += 1
        if count == 2:
            raise LookupError("mine")
        return x

    for _ in range(2):
        count = 0
        with pytest.raises(LookupError) as info:
            CALLS[name](boom)
        what = "transforming" if "transform" in name else "traversing"
        assert info.value.args == ("mine",)
        assert info.value.__notes__ == [f"raised while {what} {SECOND[name.split()[1]]}"]
    assert pydag.dag_structure(TREE) == SPEC


def test_leaves_that_turn_against_the_walk() -> None:
    """An iterator of leaves may raise, come back and be endless."""
    log: list[int] = []

    def endless() -> Iterator[int]:
        for i in range(100):
            log.append(i)
            SPEC.traverse(iter([0, 1]))
            yield i

    with pytest.raises(ValueError, match=r"^Too many leaves for PyDagSpec\.\n  at tree$"):
        SPEC.traverse(endless())
    assert log == [0, 1, 2]
    too_few = r"^Too few leaves for PyDagSpec\.\n  at tree\['c'\]\[1\]$"
    with pytest.raises(ValueError, match=too_few):
        SPEC.walk([0])

    def broken() -> Iterator[int]:
        yield 1
        raise OSError("mine")

    with pytest.raises(OSError, match=r"^mine\n"):
        SPEC.traverse(broken())


class Vandal:
    """Aux_data or a key that is equal to nothing, raises, or changes its mind."""

    def __init__(self, answers: list[Any]) -> None:
        self.answers = answers

    def __eq__(self, other: object) -> Any:
        answer = self.answers.pop(0) if self.answers else False
        if isinstance(answer, Exception):
            raise answer
        return answer

    def __hash__(self) -> int:
        return 7


@pytest.mark.parametrize("where", ["aux", "key"])
def test_comparison_that_raises(where: str) -> None:
    """What a user's `==` raises passes through."""

    def spec() -> pydag.PyDagSpec:
        odd = Vandal([LookupError("mine")] * 3)
        return pydag.dag_structure([Box(1, aux=odd) if where == "aux" else {odd: 1, "a": 2}])

    works: list[Callable[[pydag.PyDagSpec, pydag.PyDagSpec], Any]] = [
        lambda a, b: a <= b,
        lambda a, b: a.is_suffix(b),
        lambda a, b: a.broadcast_to_common_suffix(b),
    ]
    for work in works:
        with pytest.raises(LookupError, match="mine"):
            work(spec(), spec())


def test_spec_that_was_never_restored() -> None:
    """A spec without a structure is refused, as an argument, too."""
    empty, leaf = pydag.PyDagSpec.__new__(pydag.PyDagSpec), pydag.dagspec_leaf()
    works: list[Callable[[], Any]] = [
        *(empty.children, empty.one_level, empty.is_one_level, empty.transform, empty.to_treespec),
        *(lambda: empty.child(0), lambda: empty.entry(0), lambda: empty <= leaf),
        *(lambda: leaf <= empty, lambda: leaf.compose(empty), lambda: empty.compose(leaf)),
        *(lambda: empty.traverse([]), lambda: empty.walk([]), lambda: leaf.is_suffix(empty)),
        *(lambda: leaf.broadcast_to_common_suffix(empty), lambda: pydag.dagspec_list([empty])),
        *(lambda: leaf.transform(None, lambda _: empty),),
    ]
    for work in works:
        with pytest.raises(ValueError, match="This PyDagSpec is empty"):
            work()


def test_results_are_specs_like_any_other() -> None:
    """What the operations give is pickled, copied, hashed, printed and built."""
    for spec in (
        *(SPEC.compose(SPEC), SPEC.transform(None, lambda _: SPEC), pydag.dagspec_list([SPEC] * 2)),
        *(SPEC.broadcast_to_common_suffix(SPEC.compose(SPEC)), *SPEC.children(), SPEC.child(0)),
    ):
        again = pydag.dag_structure(spec.unflatten([sp.Opaque() for _ in range(len(spec))]))
        assert spec == again == pickle.loads(pickle.dumps(spec)) == copy.deepcopy(spec)
        assert hash(spec) == hash(again)
        assert repr(spec) == repr(again)
        assert len(spec.paths()) == len(spec) == spec.num_leaves


def test_lists_are_fresh() -> None:
    """What is done to a list that a spec gave away does not change the spec."""
    SPEC.children().clear()
    SPEC.entries().clear()
    seen: list[Any] = []
    SPEC.walk([0, 1], lambda cls, data, parts: seen.append(data))
    next(data for data in seen if isinstance(data, list)).clear()
    assert len(SPEC.children()) == len(SPEC.entries()) == 3
    assert pydag.dag_structure(TREE) == SPEC
