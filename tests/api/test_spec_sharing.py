# SPDX-License-Identifier: Apache-2.0
"""Operations on specs with sharing: the examples of the rules, the two laws, and the reference."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import optree
import pytest
import reference as ref
import reference_specs as rules
import specimens as sp
import strategies
from agreement import known
from hypothesis import given
from hypothesis import strategies as st
from reference_kinds import Shape
from strategies import thorough

import pydag

W, V = sp.Opaque(), sp.Opaque()
N = [W]


def spec_of(tree: Any, **options: Any) -> pydag.PyDagSpec:
    """With the classes of the specimens."""
    return pydag.dag_structure(tree, **{"namespace": sp.NAMESPACE, **options})


@pytest.mark.parametrize(
    ("first", "second", "paths"),
    [
        ([W, W], [[1], [2, 3]], ("tree[0]", "tree[1]")),
        ([W, W], [[1], 2], ("tree[0]", "tree[1]")),
        ({"a": N, "b": N}, {"a": [[1]], "b": [2]}, ("tree['a'][0]", "tree['b'][0]")),
        ({"a": N, "b": [0, N]}, {"a": [[1]], "b": 2}, ("tree['a'][0]", "tree['b'][1][0]")),
        ([W, W], [[N, N], [[1], [2]]], ("tree[0]", "tree[1]")),
        ([W, W], [{"a": 1}, OrderedDict(a=1)], ("tree[0]", "tree[1]")),
    ],
)
def test_broadcast_conflict(first: Any, second: Any, paths: tuple[str, str]) -> None:
    """One leaf can't become two different structures: both paths are named, and both sides."""
    with pytest.raises(pydag.SharingError) as info:
        spec_of(first).broadcast_to_common_suffix(spec_of(second))
    assert f"{paths[0]} and {paths[1]} are one object" in str(info.value)
    assert "other structure:  they are two: " in str(info.value)


def test_to_treespec_unfolds() -> None:
    """Every path is written out; a class that optree doesn't know is named with its path."""
    tree: Any = {"b": N, "a": [N, (W, None)], "c": OrderedDict(z=N, a=1)}
    assert spec_of(tree).to_treespec() == optree.tree_structure(tree)
    unknown = r"optree doesn't know the class .*Linear.*\n  at tree\[0\]"
    with pytest.raises(ValueError, match=unknown):
        spec_of([sp.Linear(1, 2)]).to_treespec()
    doubled: Any = W
    for _ in range(60):
        doubled = [doubled, doubled]
    with pytest.raises(ValueError, match="too large for a PyTreeSpec"):
        spec_of(doubled).to_treespec()


def test_to_treespec_of_derefed_trees() -> None:
    """optree's own functions are asked about classes that pydag opens by their fields."""
    tree = pydag.deref([N, N, {"k": W}])
    assert pydag.dag_structure(tree).to_treespec() == optree.tree_structure(tree)


def test_to_treespec_of_a_class_that_optree_opens_otherwise() -> None:
    """A structure that optree would not find is refused, and no wrong one made."""
    functions: list[Any] = [lambda x: (x.children, None), lambda _, c: sp.Twofold(*c)]
    cls: Any = sp.Twofold
    optree.register_pytree_node(cls, *functions, namespace="twofold")
    pydag.register_pydag_node(sp.Twofold, functions[0], sp.Twofold, namespace="twofold")
    spec = pydag.dag_structure(sp.Twofold(1), namespace="twofold")
    with pytest.raises(ValueError, match=r"optree opens the class .*Twofold.* by other functions"):
        spec.to_treespec()


# --- the reference ---

# Without Fresh, which wraps its children in a list of its own, whatever stands there.
SHAPES = strategies.BUILTIN + strategies.CUSTOM + strategies.FIELDS
dags = strategies.dags(SHAPES, max_nodes=6)
pairs = st.tuples(dags, dags, strategies.options)


def both(tree: Any, options: dict[str, Any]) -> tuple[pydag.PyDagSpec, ref.Spec]:
    """The spec, and the reference's."""
    spec = pydag.dag_structure(tree, **options)
    expected = ref.flatten(tree, **known(options))[1]
    assert repr(spec) == ref.text(expected)
    return spec, expected


def text(spec: Any) -> str:
    """Of a spec, or of a reference's, without the namespace, which tells no structures apart."""
    written = ref.text(spec) if isinstance(spec, ref.Spec) else repr(spec)
    return written.replace(f", namespace={sp.NAMESPACE!r})", ")")


@thorough
@given(dags, strategies.options)
def test_parts_agree(tree: Any, options: dict[str, Any]) -> None:
    """Children and the one-level structure agree, for any DAG."""
    spec, expected = both(tree, options)
    found, children = spec.children(), rules.children(expected)
    assert [text(child) for child in found] == [text(child) for child in children]
    assert [spec.child(i) for i in range(-len(found), 0)] == found
    assert [spec.entry(i) for i in range(len(found))] == spec.entries()
    level = rules.one_level(expected)
    assert text(spec.one_level()) == text(level) if level else spec.one_level() is None
    assert spec.is_one_level() == rules.is_one_level(expected)


@thorough
@given(pairs)
def test_compose_agrees(drawn: tuple[Any, Any, dict[str, Any]]) -> None:
    """`compose` follows the structure law, for any two DAGs."""
    a, b, options = drawn
    (x, outer), (y, inner) = both(a, options), both(b, options)
    assert text(x.compose(y)) == text(rules.compose(outer, inner))


HEADS: dict[str, tuple[Callable[[pydag.PyDagSpec], bool], Callable[..., Any], Any]] = {
    "list to tuple": (lambda s: s.type is list, pydag.dagspec_tuple, tuple),
    "tuple to list": (lambda s: s.type is tuple, pydag.dagspec_list, list),
    "to tuple": (lambda s: s.type is not type(None), pydag.dagspec_tuple, tuple),
    "dict to list": (lambda s: s.type in (dict, OrderedDict), pydag.dagspec_list, list),
}


@thorough
@given(pairs, st.sampled_from(list(HEADS)))
def test_transform_agrees(drawn: tuple[Any, Any, dict[str, Any]], how: str) -> None:
    """`transform` by the structure law, with nodes of other kinds and structures for leaves."""
    a, b, options = drawn
    (x, before), (y, inner) = both(a, options), both(b, options)
    is_meant, make, cls = HEADS[how]
    given_options = {key: options[key] for key in ("none_is_leaf", "namespace")}

    def f_node(spec: pydag.PyDagSpec) -> pydag.PyDagSpec:
        return make(spec.children(), **given_options) if is_meant(spec) else spec

    def head(shape: Shape) -> Shape:
        is_other = {
            "list to tuple": shape.cls is list,
            "tuple to list": shape.cls is tuple,
            "to tuple": shape.kind != "none",
            "dict to list": shape.cls in (dict, OrderedDict),
        }[how]
        entries = tuple(range(len(shape.entries)))
        return Shape(cls.__name__, cls, entries) if is_other else shape

    assert text(x.transform(f_node, lambda _: y)) == text(rules.transform(before, head, inner))


@thorough
@given(st.lists(st.tuples(dags, st.booleans()), min_size=1, max_size=3), strategies.options)
def test_collections_agree(drawn: list[tuple[Any, bool]], options: dict[str, Any]) -> None:
    """A list of specs, some given twice, is a list of what they stand for, built apart."""
    trees = [tree for tree, twice in drawn for _ in range(1 + twice)]
    specs, expected = zip(*(both(tree, options) for tree in trees), strict=True)
    shape = Shape("list", list, tuple(range(len(trees))))
    made = pydag.dagspec_list(specs, none_is_leaf=options["none_is_leaf"])
    assert text(made) == text(rules.collect(shape, list(expected)))


GROWN: list[Callable[[], Any]] = [lambda: [W], lambda: (W, V), lambda: N, lambda: [N, N]]


@st.composite
def relatives(draw: st.DrawFn, tree: Any, memo: dict[int, Any] | None = None) -> Any:
    """A DAG that looks like another one: parts are grown, cut off, untied or of another kind."""
    memo = {} if memo is None else memo

    def visit(x: Any) -> Any:
        if id(x) in memo and draw(st.integers(0, 5)):
            return memo[id(x)][1]
        what = draw(st.sampled_from(["same"] * 9 + ["cut", "grow"]))
        if what == "cut":
            new: Any = sp.Opaque()
        elif type(x) in (list, tuple):
            new = type(x)([visit(y) for y in x])
        elif type(x) in (dict, OrderedDict):
            items = [(key, visit(y)) for key, y in x.items()]
            new = draw(st.sampled_from([dict, OrderedDict]))(draw(st.permutations(items)))
        elif type(x) is sp.Module:
            new = sp.Module(**{key: visit(y) for key, y in vars(x).items()})
        elif type(x) is sp.Opaque and what == "grow":
            new = draw(st.sampled_from(GROWN))()
        else:
            new = x
        memo[id(x)] = (x, new)
        return new

    return visit(tree)


PLAIN = [
    strategies.several,
    lambda draw, take: tuple(strategies.several(draw, take)),
    lambda draw, take: {k: take() for k in draw(st.lists(st.sampled_from("abc"), max_size=2))},
    lambda draw, take: sp.Module(x=take(), w=take()),
    lambda draw, take: [take(), take()],
]
plain = strategies.dags(PLAIN, max_nodes=5)
related = plain.flatmap(lambda tree: st.tuples(st.just(tree), relatives(tree)))
kin = st.tuples(dags, dags) | related | related.map(lambda pair: pair[::-1])


@thorough
@given(kin, strategies.options)
def test_prefix_agrees(drawn: tuple[Any, Any], options: dict[str, Any]) -> None:
    """The order of specs, for DAGs that mostly look like one another; and what it is good for."""
    a, b = drawn
    (x, first), (y, second) = both(a, options), both(b, options)
    assert (x <= y, x < y) == (rules.is_prefix(first, second), rules.is_prefix(first, second, True))
    assert (y <= x, x > y) == (rules.is_prefix(second, first), rules.is_prefix(second, first, True))
    if x <= y:
        assert len(x.flatten_up_to(y.unflatten([sp.Opaque() for _ in range(len(y))]))) == len(x)


@thorough
@given(kin, strategies.options)
def test_broadcast_agrees(drawn: tuple[Any, Any], options: dict[str, Any]) -> None:
    """The common suffix of DAGs that mostly look like one another, or the same sort of error."""
    a, b = drawn
    (x, first), (y, second) = both(a, options), both(b, options)
    try:
        expected = text(rules.common_suffix(first, second))
    except rules.RefusedError as refused:
        with pytest.raises(ValueError, match=r".") as info:
            x.broadcast_to_common_suffix(y)
        told = "sharing" if isinstance(info.value, pydag.SharingError) else "fit"
        assert told in refused.problems  # noqa: PT017 (it is the reference's)
        return
    merged = x.broadcast_to_common_suffix(y)
    assert text(merged) == expected
    built = merged.unflatten([sp.Opaque() for _ in range(len(merged))])
    assert len(x.flatten_up_to(built)) == len(x)


@thorough
@given(dags, strategies.options)
def test_walk_agrees(tree: Any, options: dict[str, Any]) -> None:
    """`traverse` and `walk` ask the same, in the same order, and give the same."""
    spec, expected = both(tree, options)
    leaves = [f"leaf {i}" for i in range(len(spec))]
    mine: list[Any] = []
    theirs: list[Any] = []

    def f_node(cls: type, data: Any, children: tuple[Any, ...]) -> Any:
        mine.append((cls, data, children))
        return ("node", len(mine))

    def shaped(shape: Shape, children: list[Any]) -> Any:
        theirs.append((shape.cls, rules.node_data(shape), tuple(children)))
        return ("node", len(theirs))

    def leaf_to(log: list[Any]) -> Callable[[Any], Any]:
        return lambda x: ("leaf", x, log.append(x))  # type: ignore[func-returns-value]  # None

    got = spec.walk(leaves, f_node, leaf_to(mine))
    assert got == rules.walk(expected, leaves, shaped, leaf_to(theirs))
    assert mine == theirs
    built, again = spec.traverse(leaves), spec.unflatten(leaves)
    assert text(pydag.dag_structure(built, **options)) == text(
        pydag.dag_structure(again, **options)
    )


@thorough
@given(pairs)
def test_unfolding_law(drawn: tuple[Any, Any, dict[str, Any]]) -> None:
    """Unfolded, the results are what optree gives for the unfolded structures."""
    a, b, options = drawn
    x, y = pydag.dag_structure(a, **options), pydag.dag_structure(b, **options)
    try:
        first, second = x.to_treespec(), y.to_treespec()
    except ValueError:
        return  # a class that optree doesn't know
    assert x.compose(y).to_treespec() == first.compose(second)
    assert [s.to_treespec() for s in x.children()] == first.children()
    assert x.transform(None, lambda _: y).to_treespec() == first.transform(None, lambda _: second)
    if x <= y:
        assert first <= second
    try:
        merged = x.broadcast_to_common_suffix(y)
    except ValueError:
        return
    assert merged.to_treespec() == first.broadcast_to_common_suffix(second)
