# SPDX-License-Identifier: Apache-2.0
"""Prefixes, and trees with a common structure: against optree, the reference, and the laws."""

import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import optree
import pytest
import reference as ref
import reference_broadcast as rules
import reference_specs
import specimens as sp
import strategies
from agreement import known
from hypothesis import given
from hypothesis import strategies as st
from libraries import Side, agree, kin, options, outcome, plain
from strategies import thorough

import pydag

W, V, X, Y, LR = (sp.Opaque() for _ in range(5))
N = [X, Y]
NAMES = [
    *("tree_broadcast_prefix", "broadcast_prefix", "tree_broadcast_common", "broadcast_common"),
    *("tree_broadcast_map", "tree_broadcast_map_with_path", "tree_broadcast_map_with_accessor"),
    "prefix_errors",
]
Options = dict[str, Any]


def text(tree: Any, **given_options: Any) -> str:
    """The structure of a tree."""
    spec = pydag.dag_structure(tree, **{"namespace": sp.NAMESPACE, **given_options})
    return repr(spec).removeprefix("PyDagSpec(").partition(", namespace=")[0].removesuffix(")")


# --- prefixes ---


CONFLICTS: list[tuple[Any, Any, str, str, str]] = [
    ({"a": 1, "b": 2}, {"a": N, "b": N}, "tree['a'][0]", "tree['b'][0]", "1 and 2"),
    ({"a": 1, "b": True}, {"a": W, "b": W}, "tree['a']", "tree['b']", "1 and True"),
    ({"a": [1, 2], "b": 1}, {"a": N, "b": N}, "tree['a'][1]", "tree['b'][1]", "2 and 1"),
    ([1, [[2]]], [N, [[N]]], "tree[0][0]", "tree[1][0][0][0]", "1 and 2"),
    (
        *([{"k": 1}, OrderedDict(k=1)], [(one := {"k": N}), one]),
        *("tree[0]", "tree[1]", "two kinds of nodes"),
    ),
    ([1, OrderedDict(k=1)], [one, one], "tree[0]", "tree[1]", "two kinds of nodes"),
]


@pytest.mark.parametrize(("prefix", "full", "first", "other", "said"), CONFLICTS)
@pytest.mark.parametrize("name", ["dag_broadcast_prefix", "broadcast_prefix"])
def test_prefix_conflict(
    name: str, prefix: Any, full: Any, first: str, other: str, said: str
) -> None:
    """One object can't get two answers: both paths are named, and both answers."""
    with pytest.raises(pydag.SharingError) as info:
        getattr(pydag, name)(prefix, full)
    assert str(info.value).startswith("the prefix gives one object two answers\n")
    assert f"{first} and {other} are one object" in str(info.value)
    assert f"it has {said} there" in str(info.value)


# --- common structures ---


@pytest.mark.parametrize("name", ["dag_broadcast_map", "broadcast_common"])
def test_two_answers(name: str) -> None:
    """One leaf of the first tree can't go with two of another one, as in `dag_map`."""
    function = getattr(pydag, name)
    first_argument = [lambda *leaves: leaves] if "map" in name else []
    with pytest.raises(pydag.SharingError, match=r"tree\[0\] and tree\[1\] are one object") as info:
        function(*first_argument, [W, W], [1, 2])
    message = str(info.value)
    with pytest.raises(pydag.SharingError) as info:
        pydag.dag_map(lambda x, y: x, [W, W], [1, 2])
    assert message.splitlines()[:3] == str(info.value).splitlines()[:3]
    with pytest.raises(pydag.SharingError, match="are one object"):
        function(*first_argument, [W, W], [[1], [2, 3]])


def test_map_runs_once_per_leaf_of_the_first_tree() -> None:
    """The first tree decides what is shared; inside one of its leaves the next one does."""
    calls: list[Any] = []

    def f(*leaves: Any) -> Any:
        calls.append(leaves)
        return sp.Opaque()

    made = pydag.dag_broadcast_map(f, [W, V], [N, N])
    assert calls == [(W, X), (W, Y), (V, X), (V, Y)]
    assert text(made) == "[[*, *], [*, *]]"
    calls.clear()
    made = pydag.dag_broadcast_map(f, [W, W], [N, N], 7)
    assert calls == [(W, X, 7), (W, Y, 7)]
    assert text(made) == "[&0 [*, *], *0]"
    calls.clear()
    made = pydag.dag_broadcast_map(f, [W, V], [[N, N], [N]])
    assert len(calls) == 4
    assert text(made) == "[[&0 [*, *], *0], [[*, *]]]"
    calls.clear()
    assert text(pydag.dag_broadcast_map(f, [N, N], 3)) == "[&0 [*, *], *0]"


# --- what doesn't fit ---


class Held:
    def __init__(self, *parts: Any, aux: Any = None) -> None:
        self.parts, self.aux = parts, aux


pydag.register_pydag_node(Held, lambda h: (h.parts, h.aux), lambda aux, c: Held(*c, aux=aux))


@pytest.mark.parametrize(("prefix", "full", "first", "other", "said"), CONFLICTS)
def test_prefix_errors_of_conflicts(
    prefix: Any, full: Any, first: str, other: str, said: str
) -> None:
    """Each object with two answers makes a `SharingError`, with the name that is given."""
    errors = [make("p") for make in pydag.prefix_errors(prefix, full)]
    assert all(isinstance(error, pydag.SharingError) for error in errors)
    both = f"p{first.removeprefix('tree')} and p{other.removeprefix('tree')} are one object"
    assert any(both in str(error) and f"it has {said} there" in str(error) for error in errors)


def test_prefix_errors_of_metadata() -> None:
    """Where only the data of a node differs, the error shows both."""
    (make,) = pydag.prefix_errors([Held(1, aux="a")], [Held(2, aux="b")])
    text = r"pytree metadata[\s\S]*p\[0\][\s\S]*with metadata\n    'a'[\s\S]*metadata\n    'b'"
    assert re.search(text, str(make("p")))


# --- against optree, without sharing ---


def logged(log: list[Any], keeps: Any) -> Callable[[Any], bool]:
    """A predicate that keeps nodes of one class whole, and says what it was asked."""

    def is_leaf(x: Any) -> bool:
        log.append(plain(x))
        return type(x) is keeps

    return is_leaf


def without_values(found: Any) -> Any:
    """An error without what it shows of the tree, which is shown otherwise here."""
    if type(found) is tuple and found[0] is ValueError:
        line = re.sub(r"^(Expected .*?, got ).*", r"\1", found[1])
        return found[0], re.sub(r"; \w+: .*", "", line)
    return found


@thorough
@given(kin, options, st.sampled_from([None, tuple, list, dict, int]))
def test_functions_agree(drawn: tuple[Any, Any], same: Options, keeps: Any) -> None:
    """Results, errors and their first lines, and what predicates and functions are called with."""
    a, b = drawn

    def work(side: Side, name: str) -> Any:
        log: list[Any] = []

        def f(*leaves: Any) -> int:
            log.append(plain(leaves))
            return len(log)

        chosen = same | ({} if keeps is None else {"is_leaf": logged(log, keeps)})
        calls = (f,) if "map" in name else ()
        found = outcome(lambda: side.tree(name.removeprefix("tree_"))(*calls, a, b, **chosen))
        if "prefix" in name and type(found) is tuple and found[0] is ValueError and has_several:
            found = ValueError  # here about the first one that doesn't fit, there the last
        # The full tree is taken apart in its own order, not in that of the prefix.
        return without_values(found), sorted(map(repr, log)) if "prefix" in name else log

    has_several = len(optree.prefix_errors(a, b, **same)) > 1
    for name in NAMES[:-1]:
        agree(lambda side, n=name: work(side, n))  # type: ignore[misc]  # n is bound


@thorough
@given(kin, options, st.sampled_from([None, tuple, dict, int]))
def test_prefix_errors_agree(drawn: tuple[Any, Any], same: Options, keeps: Any) -> None:
    """The errors are as many, with the same types and first two lines, and ask about the same."""
    a, b = drawn

    def work(side: Side) -> Any:
        log: list[Any] = []
        chosen = same | ({} if keeps is None else {"is_leaf": logged(log, keeps)})
        errors = [make("p") for make in side.tree("prefix_errors")(a, b, **chosen)]
        return [[(type(e).__name__, str(e).splitlines()[:2]) for e in errors], log]

    agree(work)


@pytest.mark.parametrize(
    ("prefix", "full"),
    [
        ([1, {"a": 2}], [[5, 6], {"b": 7}]),
        ({"a": 1}, {"a": [1], "b": 2}),
        ({"a": 1}, OrderedDict(b=1)),
        ([1, 2], [1, 2, 3]),
        ((1,), [1]),
    ],
    ids=["keys", "more keys", "another mapping", "numbers", "types"],
)
def test_texts_of_prefix_errors(prefix: Any, full: Any) -> None:
    """What is said of two nodes that don't fit is what optree says."""
    found = [str(make("axes")) for make in pydag.prefix_errors(prefix, full)]
    assert found == [str(make("axes")) for make in optree.prefix_errors(prefix, full)]
    assert len(found) == 1


@pytest.mark.parametrize("name", ["", "_with_path", "_with_accessor"])
def test_a_map_of_one_tree(name: str) -> None:
    """A broadcast map of one tree is the map of it."""
    function = getattr(pydag, f"dag_broadcast_map{name}")
    shared = [1]
    found = function(lambda *given: given[-1] + 1, [shared, shared])
    assert found == [[2], [2]]
    assert found[0] is found[1]


@thorough
@given(kin, kin, options)
def test_three_trees_agree(first: Any, second: Any, same: Options) -> None:
    """Three trees that may or may not have a common structure."""
    trees = (*first, second[0])
    agree(lambda side: side.tree("broadcast_map")(lambda *x: list(x), *trees, **same))


# --- against the reference, and by the laws ---

SHAPES = strategies.BUILTIN + strategies.CUSTOM + strategies.FIELDS
dags = strategies.dags(SHAPES, max_nodes=6)


def cut(tree: Any, draw: st.DrawFn, answers: Any) -> Any:
    """A prefix of a tree: answers in the place of parts, mostly the same ones for shared parts."""
    memo: dict[int, Any] = {}

    def visit(x: Any) -> Any:
        if id(x) in memo and draw(st.integers(0, 3)):
            return memo[id(x)][1]
        if type(x) is tuple or not draw(st.integers(0, 3)):
            new = draw(answers)
        elif type(x) is list:
            new = [visit(y) for y in x]
        elif type(x) in (dict, OrderedDict):
            new = draw(st.sampled_from([dict, OrderedDict]))({k: visit(y) for k, y in x.items()})
        elif type(x) is sp.Module:
            new = sp.Module(**{k: visit(y) for k, y in vars(x).items()})
        else:
            new = draw(answers)
        memo[id(x)] = x, new
        return new

    return visit(tree)


@st.composite
def with_prefixes(draw: st.DrawFn, trees: st.SearchStrategy[Any] = dags) -> Any:
    """A DAG, and what is mostly a prefix of it."""
    tree = draw(trees)
    return cut(tree, draw, st.sampled_from([LR, LR, LR, 1, 1, (1, (2,)), W])), tree


builtin = with_prefixes(strategies.dags(strategies.BUILTIN, max_nodes=6))


def both(tree: Any, given_options: Options) -> tuple[pydag.PyDagSpec, ref.Spec]:
    """The spec, and the reference's."""
    expected = ref.flatten(tree, **known(given_options))[1]
    return pydag.dag_structure(tree, **given_options), expected


@thorough
@given(with_prefixes(), strategies.options)
def test_prefix_agrees_with_the_reference(drawn: tuple[Any, Any], given_options: Options) -> None:
    """Any DAG and what is mostly a prefix of it: the result, its leaves, or the sort of error."""
    prefix, full = drawn
    (_, p), (_, f) = both(prefix, given_options), both(full, given_options)
    errors = pydag.prefix_errors(prefix, full, **given_options)
    try:
        tokens, values = rules.broadcast_prefix(p, f)
    except ValueError as refused:
        with pytest.raises(ValueError, match=r".") as info:
            pydag.dag_broadcast_prefix(prefix, full, **given_options)
        is_sharing = isinstance(refused, ref.SharingError)
        assert isinstance(info.value, pydag.SharingError) == is_sharing
        assert any(isinstance(make("p"), pydag.SharingError) for make in errors) >= is_sharing
        assert errors
        return
    assert errors == []
    found = pydag.broadcast_prefix(prefix, full, **given_options)
    assert [(type(x), id(x)) for x in found] == [(type(x), id(x)) for x in values]
    made = pydag.dag_broadcast_prefix(prefix, full, **given_options)
    spec = ref.flatten(tokens, **known(given_options | {"identity": "all"}))[1]
    expected = ref.unflatten(spec, values)
    assert text(made, **given_options) == text(expected, **given_options)


@thorough
@given(with_prefixes() | st.tuples(dags, dags), strategies.options)
def test_common_agrees_with_the_reference(drawn: tuple[Any, Any], given_options: Options) -> None:
    """The lists, and the structure that is mapped over, of any two DAGs."""
    for first, second in (drawn, drawn[::-1]):
        (x, a), (y, b) = both(first, given_options), both(second, given_options)
        try:
            common = reference_specs.common_suffix(a, b)
            expected = [rules.answers_of_leaves(a, common), rules.answers_of_leaves(b, common)]
        except ValueError:
            with pytest.raises(ValueError, match=r"."):
                pydag.broadcast_common(first, second, **given_options)
            continue
        found = pydag.broadcast_common(first, second, **given_options)
        assert [list(map(id, each)) for each in found] == [list(map(id, each)) for each in expected]
        made = pydag.dag_broadcast_map(lambda *_: sp.Opaque(), first, second, **given_options)
        assert text(made, **given_options) == repr(x.broadcast_to_common_suffix(y)).removeprefix(
            "PyDagSpec("
        ).partition(", namespace=")[0].removesuffix(")")


def unfolded(tree: Any) -> Any:
    """Every path written out, with the same leaves."""
    return optree.tree_map(lambda x: x, tree)


def described(tree: Any) -> Any:
    """What tells a tree of optree's from another one: structure and leaves."""
    leaves, spec = optree.tree_flatten(tree)
    return list(map(id, leaves)), spec


@thorough
@given(builtin)
def test_unfolding_law(drawn: tuple[Any, Any]) -> None:
    """Unfolded, the results are what optree gives for the unfolded trees, where there are any."""
    prefix, full = drawn
    for name, trees in (("broadcast_prefix", (prefix, full)), ("broadcast_common", (full, prefix))):
        try:
            made = getattr(pydag, f"dag_{name}")(*trees)
        except pydag.SharingError:
            continue
        except ValueError:
            with pytest.raises(ValueError, match=r"."):
                getattr(optree, f"tree_{name}")(*map(unfolded, trees))
            continue
        expected = getattr(optree, f"tree_{name}")(*map(unfolded, trees))
        assert described(made) == described(expected)


class Unopened:
    """A node that must not be opened."""


def refuse(*_: Any) -> Any:
    raise AssertionError("opened")


pydag.register_pydag_node(Unopened, refuse, refuse)
