# SPDX-License-Identifier: Apache-2.0
"""The compiled core against `reference.py`, on random DAGs."""

import itertools
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import optree
import pytest
import reference as ref
import specimens as sp
import strategies
from agreement import Options, known, outcome
from hypothesis import given
from hypothesis import strategies as st
from isomorphism import difference
from reference_deref import deref, reref
from strategies import Predicate, thorough

import pydag


def row(*arguments: Any) -> list[Any]:
    """A function to map with, whose results show what it was given."""
    sp.EVENTS.append(("f", *arguments))
    return list(arguments)


# What each function that flattens gives, by name.
ANSWERS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "dag_flatten": lambda out: {"leaves": out[0], "text": repr(out[1])},
    "dag_leaves": lambda out: {"leaves": out},
    "dag_structure": lambda out: {"text": repr(out), "paths": out.paths()},
    "dag_paths": lambda out: {"paths": out},
    "dag_flatten_with_path": lambda out: {"paths": out[0], "leaves": out[1], "text": repr(out[2])},
}


@thorough
@given(
    strategies.dags() | strategies.ladders(),
    strategies.predicates,
    strategies.options,
    st.sampled_from(list(ANSWERS)),
)
def test_flatten(dag: Any, predicate: Predicate, options: Options, name: str) -> None:
    """The same leaves, paths, text, questions and calls, whichever function flattens."""
    (leaves, spec), events, _ = outcome(lambda: ref.flatten(dag, predicate, **known(options)))
    expected = {"leaves": leaves, "paths": ref.paths(spec), "text": ref.text(spec)}
    again, function = predicate.again(), getattr(pydag, name)
    got, calls, error = outcome(lambda: ANSWERS[name](function(dag, again, **options)))
    assert error == ""
    assert difference(calls, events) == ""
    assert difference(again.asked, predicate.asked) == ""
    for what, answer in got.items():
        assert difference(answer, expected[what]) == ""


@thorough
@given(strategies.dags(), strategies.options)
def test_counts_and_shared_objects(dag: Any, options: Options) -> None:
    """The same numbers of leaves, paths and nodes, and the same listing of shared objects."""
    spec, expected = pydag.dag_structure(dag, **options), ref.flatten(dag, **known(options))[1]
    every = ref.all_paths(expected)
    assert spec.num_leaves == len(spec) == len(every)
    assert spec.num_paths == sum(map(len, every))
    slots, index = ref.slots(expected.root), ref.shared(expected.root)
    assert spec.num_nodes == len(slots)
    assert spec.num_shared == len(index)
    assert [(each.index, list(each.paths)) for each in spec.shared] == [
        (number, slots[node]) for node, number in index.items()
    ]


@thorough
@given(strategies.dags() | strategies.ladders(), strategies.predicates, strategies.options)
def test_unflatten(dag: Any, predicate: Predicate, options: Options) -> None:
    """The same object graph by the same calls, and a new one each time."""
    leaves, expected_spec = ref.flatten(dag, predicate, **known(options))
    spec = pydag.dag_structure(dag, predicate.again(), **options)
    expected, events, _ = outcome(lambda: ref.unflatten(expected_spec, leaves))
    for _ in range(2):
        got, calls, error = outcome(lambda: pydag.dag_unflatten(spec, leaves))
        assert error == ""
        assert difference(got, expected) == ""
        assert difference(calls, events) == ""
    # One and the same object twice would not be isomorphic to two.
    assert difference([got, pydag.dag_unflatten(spec, leaves)], [expected, got]) == ""
    for wrong in ([*leaves, 0], leaves[1:] or [1, 2]):
        with pytest.raises(ValueError, match=r"Too (few|many) leaves for PyDagSpec"):
            pydag.dag_unflatten(spec, wrong)


@thorough
@given(strategies.dags(), strategies.options)
def test_specs_compare_with_their_sharing(dag: Any, options: Options) -> None:
    """A rebuilt DAG has an equal spec; an unfolded one only where nothing was shared."""
    leaves, expected = ref.flatten(dag, **known(options))
    spec = pydag.dag_structure(dag, **options)
    rebuilt = pydag.dag_structure(ref.unflatten(expected, leaves), **options)
    assert (spec, hash(spec)) == (rebuilt, hash(rebuilt))
    unfolded = ref.unfold(expected, lambda index: sp.Opaque())
    unshared = ref.flatten(unfolded, **known(options))[1]
    equal = ref.text(expected) == ref.text(unshared)
    assert (spec == pydag.dag_structure(unfolded, **options)) is equal


def shared_alike(spec: ref.Spec) -> Any:
    """A rest with the same sharing, and the attributes of its objects in the reverse order."""
    rest, met = ref.unflatten(spec, [sp.Opaque() for _ in range(spec.num_leaves)]), Predicate(())
    ref.flatten(rest, met, registry=spec.registry)
    for obj in met.asked:
        if isinstance(obj, (sp.Module, sp.Mixed)):
            attributes = list(vars(obj).items())
            vars(obj).clear()
            vars(obj).update(reversed(attributes))
    return rest


ODD = itertools.cycle([1, True, 1.0])
RESTS: dict[str, Callable[[ref.Spec], Any]] = {
    "shared alike": shared_alike,
    "shared more": lambda spec: ref.unflatten(spec, [sp.Opaque()] * spec.num_leaves),
    "a mask without sharing": lambda spec: ref.unfold(spec, lambda index: index % 2 == 0),
    "tuples of values": lambda spec: ref.unfold(spec, lambda index: (index, float("nan"), ())),
    "equal values of several types": lambda spec: ref.unfold(spec, lambda index: next(ODD)),
    "objects without sharing": lambda spec: ref.unfold(spec, lambda index: sp.Opaque()),
    "subtrees without sharing": lambda spec: ref.unfold(spec, lambda index: [index]),
}


@thorough
@given(strategies.dags(), strategies.options)
def test_map(dag: Any, options: Options) -> None:
    """The same calls, results and refusals, with rests that share alike, more or less."""
    spec = ref.flatten(dag, **known(options))[1]
    each = [make(spec) for make in RESTS.values()]
    for rests in ([], *([rest] for rest in each), each[:3]):
        path = len(rests) != 1
        ours = pydag.dag_map_with_path if path else pydag.dag_map
        theirs = partial(ref.map_, path=path, registry=spec.registry)
        expected, events, refusal = outcome(partial(theirs, row, dag, *rests, **options))
        got, calls, error = outcome(partial(ours, row, dag, *rests, **options))
        assert error == refusal
        if not error:
            assert difference(got, expected) == ""
            assert difference(*map(in_order, (calls, events))) == ""
            assert in_any_order(calls) == in_any_order(events)


def in_order(events: list[Any]) -> list[Any]:
    """The calls of the mapped function and of the unflatten functions."""
    return [event for event in events if event[0] != "flatten"]


def in_any_order(events: list[Any]) -> Counter[str]:
    """How often each class was flattened: which rest is opened first is nobody's business."""
    return Counter(type(event[1]).__name__ for event in events if event[0] == "flatten")


@thorough
@given(strategies.dags(), strategies.dags(), strategies.options)
def test_flatten_up_to_anything(dag: Any, other: Any, options: Options) -> None:
    """A tree that doesn't fit is refused with a `ValueError`; of one that fits, the same parts."""
    expected, _, refusal = outcome(
        lambda: ref.flatten_up_to(ref.flatten(dag, **known(options))[1], other)
    )
    got, _, error = outcome(lambda: pydag.dag_structure(dag, **options).flatten_up_to(other))
    assert (error in ("ValueError", "SharingError")) is (refusal != "")
    assert refusal or difference(got, expected) == ""


@thorough
@given(strategies.dags() | strategies.ladders(), strategies.options)
def test_deref_and_reref(dag: Any, options: Options) -> None:
    """The same marks at the same places; optree sees each leaf once; reading back restores all."""
    expected, events, _ = outcome(lambda: deref(dag, **known(options)))
    got, calls, error = outcome(lambda: pydag.deref(dag, **options))
    assert error == ""
    assert difference(got, expected) == ""
    assert difference(calls, events) == ""
    assert difference(pydag.deref(got, **options), got) == ""
    more: list[Any] = []
    expected_more = deref([expected, more, more], **known(options))
    assert difference(pydag.deref([got, more, more], **options), expected_more) == ""
    leaves = optree.tree_leaves(got, none_is_leaf=options["none_is_leaf"])
    assert difference(leaves, ref.flatten(dag, **known(options))[0]) == ""
    read_back, calls, error = outcome(lambda: pydag.reref(got, **options))
    original, events, _ = outcome(lambda: reref(expected, **known(options)))
    assert error == ""
    assert difference(read_back, original) == ""
    assert difference(calls, events) == ""


@thorough
@given(strategies.cycles(), st.sampled_from([*ANSWERS, "dag_map", "deref"]))
def test_cycles(cyclic: Any, name: str) -> None:
    """Every function refuses a cycle."""
    function = getattr(pydag, name)
    arguments = [row, cyclic] if name == "dag_map" else [cyclic]
    with pytest.raises(pydag.CycleError):
        function(*arguments, namespace=sp.NAMESPACE)


@thorough
@given(strategies.dags())
def test_sharing_errors_name_both_paths(dag: Any) -> None:
    """Where the paths of one leaf lead to two objects, the message has both paths."""
    expected = ref.flatten(dag, **known({"namespace": sp.NAMESPACE}))[1]
    rest = ref.unfold(expected, lambda index: sp.Opaque())
    if any(len(paths) > 1 for paths in ref.all_paths(expected)):
        with pytest.raises(pydag.SharingError, match=r"(?s)tree.* tree"):
            pydag.dag_map(row, dag, rest, namespace=sp.NAMESPACE)
