# SPDX-License-Identifier: Apache-2.0
"""Functions over the distinct leaves, on DAGs: what sharing means to each of them."""

import functools
import gc
import weakref
from collections.abc import Callable
from typing import Any

import agreement
import numpy as np
import optree
import pytest
import reference as ref
import specimens as sp
import strategies
from hypothesis import given
from hypothesis import strategies as st
from isomorphism import difference
from strategies import Predicate, thorough

import pydag

Options = dict[str, Any]
W = sp.Opaque()
LAYER = [W, 1]
DAGS = strategies.dags() | strategies.ladders()


@thorough
@given(DAGS, strategies.options, strategies.predicates)
def test_iteration_is_flattening_bit_by_bit(
    dag: Any, options: Options, predicate: Predicate
) -> None:
    """An iterator gives the leaves of the reference, and asks and opens the same, in order."""
    asked = predicate.again(), predicate.again()
    known = agreement.known(options)
    theirs = agreement.outcome(lambda: ref.flatten(dag, asked[0], **known)[0])
    ours = agreement.outcome(lambda: list(pydag.dag_iter(dag, asked[1], **options)))
    assert difference(list(ours), list(theirs)) == ""
    assert difference(asked[1].asked, asked[0].asked) == ""


@thorough
@given(strategies.cycles())
def test_an_iterator_meets_a_cycle_when_it_gets_there(cyclic: Any) -> None:
    """`CycleError` comes behind the leaves that are reached before the cycle."""
    with pytest.raises(pydag.CycleError) as flat:
        pydag.dag_leaves(cyclic, namespace=sp.NAMESPACE)
    with pytest.raises(pydag.CycleError) as found:
        list(pydag.dag_iter(cyclic, namespace=sp.NAMESPACE))
    assert str(found.value) == str(flat.value)


def test_children_are_taken_when_a_node_is_opened() -> None:
    """What is done to a node before the iterator opens it is seen, what is done later isn't."""
    first, second = [1, 2], [3]
    iterator = pydag.dag_iter([first, second])
    assert next(iterator) == 1
    first.append(9)
    second.append(4)
    assert list(iterator) == [2, 3, 4]


def test_an_iterator_owns_what_it_has_met_and_no_more() -> None:
    """What was met lives until the last leaf has come: no other object can get its address."""

    class Fresh:
        pass

    holder: list[Any] = [Fresh(), [Fresh()], 1]
    refs = [weakref.ref(holder[0]), weakref.ref(holder[1][0])]
    iterator = pydag.dag_iter(holder)
    next(iterator)
    holder.clear()
    gc.collect()
    assert all(ref() is not None for ref in refs)
    assert len(list(iterator)) == 2
    gc.collect()
    assert [ref() for ref in refs] == [None, None]


def test_an_iterator_in_a_cycle_is_collected() -> None:
    """An iterator that is reached from what it iterates over is garbage like anything else."""

    class Fresh:
        pass

    tree: list[Any] = [1, Fresh(), []]
    ref = weakref.ref(tree[1])
    iterator = pydag.dag_iter(tree, lambda x, tree=tree: x is tree[2])  # type: ignore[misc]  # mypy wants no default
    tree[2].append(iterator)
    next(iterator)
    del tree, iterator
    gc.collect()
    assert ref() is None


@thorough
@given(DAGS, strategies.options)
def test_in_place_maps_call_once_per_distinct_leaf(dag: Any, options: Options) -> None:
    """The function sees the rows of the reference; the input comes back, the very object."""
    leaves, spec = ref.flatten(dag, **agreement.known(options))
    for function, rows in (
        (pydag.dag_map_, [(x, x) for x in leaves]),
        (
            pydag.dag_map_with_path_,
            [(path, x, x) for path, x in zip(ref.paths(spec), leaves, strict=True)],
        ),
    ):
        seen: list[Any] = []
        assert function(lambda *row, s=seen: s.append(row), dag, dag, **options) is dag
        assert difference(seen, rows) == ""


MAPS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "map": (pydag.dag_map, lambda x: [x]),
    "map_with_path": (pydag.dag_map_with_path, lambda path, x: [path, x]),
    "map_with_accessor": (pydag.dag_map_with_accessor, lambda accessor, x: [accessor.path, x]),
}


@pytest.mark.parametrize("name", MAPS)
@thorough
@given(strategies.dags(), strategies.options, st.integers(0, 5))
def test_where_says_which_leaves_are_mapped(
    name: str, dag: Any, options: Options, every: int
) -> None:
    """The function runs for the selected leaves alone; the sharing is that of the tree."""
    function, change = MAPS[name]
    leaves, spec = ref.flatten(dag, **agreement.known(options))
    chosen = {id(x) for i, x in enumerate(leaves) if every and i % every == 0}
    ways = ref.paths(spec) if name != "map" else [()] * len(leaves)
    expected = [
        (
            change(*([] if name == "map" else [path]), x)
            if name != "map_with_accessor"
            else [path, x]
        )
        if id(x) in chosen
        else x
        for path, x in zip(ways, leaves, strict=True)
    ]
    found = function(change, dag, where=lambda x: id(x) in chosen, **options)
    assert difference(found, ref.unflatten(spec, expected)) == ""


@thorough
@given(DAGS, strategies.options, st.booleans())
def test_partitions_are_those_of_the_reference(dag: Any, options: Options, fills: bool) -> None:
    """Each distinct leaf is asked about once; the halves are built of the tree's structure."""
    leaves, spec = ref.flatten(dag, **agreement.known(options))
    filling = object() if fills else None
    asked: list[Any] = []

    def predicate(x: Any) -> bool:
        asked.append(x)
        return isinstance(x, int | sp.Opaque)

    left, right = pydag.dag_partition(predicate, dag, fillvalue=filling, **options)
    assert difference(asked, leaves) == ""
    answers = [isinstance(x, int | sp.Opaque) for x in leaves]
    pairs = list(zip(leaves, answers, strict=True))
    for half, wanted in ((left, True), (right, False)):
        expected = [x if answer is wanted else filling for x, answer in pairs]
        assert difference(half, ref.unflatten(spec, expected)) == ""


def test_a_partition_by_a_prefix_with_two_answers() -> None:
    """A prefix that gives one object two answers is refused with both paths."""
    with pytest.raises(
        pydag.SharingError, match=r"tree\['a'\]\[0\]: True\n.*tree\['b'\]\[0\]: False"
    ):
        pydag.dag_partition({"a": True, "b": False}, {"a": LAYER, "b": LAYER})


@thorough
@given(DAGS, st.sampled_from(["all", "nodes"]))
def test_nones_are_replaced_at_each_occurrence(dag: Any, identity: Any) -> None:
    """None is a leaf, and each occurrence counts by itself, as in the reference."""
    sentinel = sp.Opaque()
    leaves, spec = ref.flatten(
        dag, none_is_leaf=True, identity=identity, registry=sp.REGISTRIES[""]
    )
    expected = ref.unflatten(spec, [sentinel if x is None else x for x in leaves])
    found = pydag.dag_replace_nones(sentinel, dag, identity=identity)
    assert difference(found, sentinel if dag is None else expected) == ""


@thorough
@given(DAGS, strategies.options)
def test_reductions_go_over_the_distinct_leaves(dag: Any, options: Options) -> None:
    """Each is Python's own function on the leaves of the reference."""
    leaves, _ = ref.flatten(dag, **agreement.known(options))
    assert (
        difference(pydag.dag_reduce(lambda so_far, x: [*so_far, x], dag, [], **options), leaves)
        == ""
    )
    if not any(isinstance(x, np.ndarray) for x in leaves):  # which is neither true nor false
        assert pydag.dag_all(dag, **options) is all(leaves)
        assert pydag.dag_any(dag, **options) is any(leaves)
    if leaves:
        for ours, own in ((pydag.dag_max, max), (pydag.dag_min, min)):
            assert ours(dag, key=lambda x: str(type(x)), **options) is own(
                leaves, key=lambda x: str(type(x))
            )
        folded = functools.reduce(lambda x, y: (x, y), leaves)
        assert difference(pydag.dag_reduce(lambda x, y: (x, y), dag, **options), folded) == ""


def test_what_counts_once_in_a_sum() -> None:
    """Objects count once, values at each occurrence, but below a shared node once."""
    n = [1, 2]
    assert pydag.dag_sum([n, n]) == 3
    assert pydag.dag_sum([1, 1]) == 2
    part = sp.IntChild(5)
    assert pydag.dag_sum([part, part]) == 5
    assert pydag.dag_sum([part, part], identity="nodes") == 10
    assert pydag.dag_sum([n, n], 10) == 13


def test_any_and_all_stop_where_the_answer_is_known() -> None:
    """What lies behind is not opened."""
    asked: list[Any] = []
    assert pydag.dag_any([0, 1, [2]], is_leaf=lambda x: asked.append(x) or False)  # type: ignore[func-returns-value]  # meant
    assert asked == [[0, 1, [2]], 0, 1]


@thorough
@given(strategies.dags(), strategies.options)
def test_all_paths_are_those_of_the_reference(dag: Any, options: Options) -> None:
    """Each path of each leaf comes once, in traversal order, through every way."""
    _, spec = ref.flatten(dag, **agreement.known(options))
    found = pydag.dag_paths(dag, all_paths=True, **options)
    assert difference(found, ref.all_paths(spec)) == ""
    first = [paths[0] for paths in found]
    assert difference(first, pydag.dag_paths(dag, **options)) == ""


def test_questions_about_single_objects() -> None:
    """An object is a leaf by its class, by `none_is_leaf`, or by a predicate, asked first."""
    assert pydag.dag_is_leaf(W)
    assert not pydag.dag_is_leaf(())
    assert not pydag.dag_is_leaf(sp.Linear(1, 2))
    assert pydag.dag_is_leaf([], lambda x: True)
    assert [pydag.dag_is_leaf(None, none_is_leaf=flag) for flag in (True, False)] == [True, False]
    assert pydag.dag_is_leaf(sp.Local(1))
    assert not pydag.dag_is_leaf(sp.Local(1), namespace=sp.NAMESPACE)
    numbers = iter([1, 2, [3], 4])
    assert not pydag.all_leaves(numbers)
    assert list(numbers) == [4]


@thorough
@given(strategies.dags(strategies.BUILTIN))
def test_unfolding_commutes_with_maps(dag: Any) -> None:
    """Unfolded, what `dag_map` and `dag_partition` give is what optree's give of the unfolded."""
    leaves, spec = ref.flatten(dag)
    unfolded = ref.unfold(spec, leaves.__getitem__)
    number = {id(x): repr(type(x)) for x in leaves}

    def unfold(tree: Any) -> Any:
        found, structure = ref.flatten(tree)
        return ref.unfold(structure, found.__getitem__)

    def name(x: Any) -> str:
        return number[id(x)]

    assert difference(unfold(pydag.dag_map(name, dag)), optree.tree_map(name, unfolded)) == ""
    assert (
        difference(
            list(map(unfold, pydag.dag_partition(lambda x: isinstance(x, int), dag))),
            list(optree.tree_partition(lambda x: isinstance(x, int), unfolded)),
            same_leaves=False,
        )
        == ""
    )
