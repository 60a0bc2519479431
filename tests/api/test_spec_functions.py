# SPDX-License-Identifier: Apache-2.0
"""Specs against optree, where nothing is shared: results, callbacks, errors, their first lines."""

import itertools
import os
import re
import sys
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import optree
import pytest
import specimens as sp
from hypothesis import given
from hypothesis import strategies as st
from libraries import (
    ONE,
    OTHER,
    Global,
    InOne,
    InOther,
    Side,
    Twice,
    agree,
    kin,
    options,
    outcome,
    plain,
    renamed,
    trees,
)
from strategies import thorough

import pydag
from pydag import dagspec

INDICES = [0, 1, -1, -2, 5, True, 1.5, "0", None, 10**30, 1j, float("nan")]


@thorough
@given(trees, options)
def test_parts(tree: Any, given_options: dict[str, Any]) -> None:
    """Entries, children, paths, the one-level structure and the counts."""

    def work(side: Side) -> Any:
        spec = side.structure(tree, **given_options)
        return [
            *(side.paths(spec), side.accessors(spec), side.entries(spec), side.children(spec)),
            *(side.one_level(spec), side.is_leaf(spec), side.is_leaf(spec, strict=False)),
            *(side.is_strict_leaf(spec), side.is_one_level(spec), len(spec), spec.num_nodes),
            *(spec.is_leaf(), spec.is_leaf(strict=False), spec.is_one_level(), spec.num_children),
            *(spec.children(), spec.one_level(), spec.type, spec.kind, spec.none_is_leaf),
            [child.unflatten([object] * len(child)) for child in spec.children()],
        ]

    agree(work)
    for index in range(-4, 5):
        agree(lambda side, i=index: side.child(side.structure(tree, **given_options), i))  # type: ignore[misc]  # i is bound
        agree(lambda side, i=index: side.entry(side.structure(tree, **given_options), i))  # type: ignore[misc]  # i is bound


@thorough
@given(trees, options, st.booleans())
def test_to_treespec(tree: Any, given_options: dict[str, Any], ordered: bool) -> None:
    """The `PyTreeSpec` of a tree is the very one that optree makes, the order of keys included."""
    namespace = given_options["namespace"] or ONE
    with optree.dict_insertion_ordered(ordered, namespace=namespace):
        made = pydag.dag_structure(tree, **given_options).to_treespec()
        expected: Any = optree.tree_structure(tree, **given_options)
    assert made == expected
    assert (hash(made), repr(made)) == (hash(expected), repr(expected))
    assert plain(made.unflatten(range(len(made)))) == plain(expected.unflatten(range(len(made))))


@thorough
@given(kin, st.tuples(options, options), st.booleans())
def test_pairs(drawn: tuple[Any, Any], both: tuple[Any, Any], same_options: bool) -> None:
    """Comparisons, composition, the common suffix, whatever the two specs are."""
    a, b = drawn

    def specs(side: Side) -> tuple[Any, Any]:
        return side.structure(a, **both[0]), side.structure(b, **both[not same_options])

    def compare(side: Side) -> Any:
        x, y = specs(side)
        return [
            *(x == y, x <= y, x < y, x >= y, x > y, x.is_prefix(y), x.is_prefix(y, strict=True)),
            *(x.is_suffix(y), x.is_suffix(y, strict=True), side.is_prefix(x, y, strict=False)),
            *(side.is_prefix(x, y), side.is_suffix(x, y), side.is_suffix(x, y, strict=True)),
        ]

    def combine(side: Side, method: str) -> Any:
        x, y = specs(side)
        made = getattr(x, method)(y)
        return [made, made.namespace, made.unflatten(range(len(made)))]

    agree(compare)
    for method in ("compose", "broadcast_to_common_suffix"):
        agree(lambda side, m=method: combine(side, m))  # type: ignore[misc]  # m is bound


def to_list(side: Side, spec: Any, **same: Any) -> Any:
    """Another kind of node."""
    return side.list(spec.children(), **same)


NODES: dict[str, Callable[..., Any]] = {
    "none": lambda side, spec, **same: spec,
    "list": to_list,
    "dict": lambda side, spec, **same: side.dict(
        zip(spec.entries(), spec.children(), strict=True), **same
    ),
    "tuple for list": lambda side, spec, **same: (
        side.tuple(spec.children(), **same) if spec.type is list else spec
    ),
    "number": lambda side, spec, **same: 5,
    "leaf": lambda side, spec, **same: side.leaf(**same),
    "more": lambda side, spec, **same: side.list([*spec.children(), side.leaf(**same)], **same),
    "deeper": lambda side, spec, **same: side.list(
        [side.list([child], **same) for child in spec.children()], **same
    ),
    "none_is_leaf": lambda side, spec, **same: side.list(
        [side.leaf(none_is_leaf=True)] * spec.num_children, none_is_leaf=True
    ),
    "in one": lambda side, spec, **same: side.structure(
        InOne(*[0] * spec.num_children), namespace=ONE, none_is_leaf=same["none_is_leaf"]
    ),
    "in other": lambda side, spec, **same: side.structure(
        InOther(*[0] * spec.num_children), namespace=OTHER, none_is_leaf=same["none_is_leaf"]
    ),
    "twice": lambda side, spec, **same: side.structure(
        Twice(*[0] * spec.num_children), none_is_leaf=same["none_is_leaf"]
    ),
    "raises": lambda side, spec, **same: 1 // 0,
}
LEAVES: dict[str, Callable[..., Any]] = {
    **{name: NODES[name] for name in ("none", "number", "none_is_leaf", "raises")},
    "tree": lambda side, spec, **same: side.structure((1, [2, None]), **same),
    "in one": lambda side, spec, **same: side.structure(InOne(1, 2), **same | {"namespace": ONE}),
    "twice": lambda side, spec, **same: side.structure(Twice(1), **same | {"namespace": ""}),
}


@thorough
@given(
    trees,
    options,
    st.sampled_from(list(NODES)),
    st.sampled_from(list(LEAVES)),
    st.sampled_from([0, 0, 1, 2]),
)
def test_transform(tree: Any, same: Any, node: str, leaf: str, start: int) -> None:
    """`transform` asks the same about the same, in the same order, and takes the same answers."""

    def work(side: Side) -> Any:
        log: list[Any] = []
        asked = itertools.count()

        def f_node(spec: Any) -> Any:
            log.append(plain(spec))
            return NODES[node](side, spec, **same) if next(asked) >= start else spec

        def f_leaf(spec: Any) -> Any:
            log.append(plain(spec))
            return LEAVES[leaf](side, spec, **same) if next(asked) >= start else spec

        spec = side.structure(tree, **same)
        made = outcome(lambda: side.transform(spec, f_node, f_leaf))
        return [
            *(made, log, outcome(lambda: spec.transform(f_leaf=f_leaf))),
            *(outcome(lambda: side.transform(spec, f_node)), spec.transform(), log),
        ]

    agree(work)


@thorough
@given(
    trees, options, st.integers(-1, 1), st.integers(0, 12), st.sampled_from(["node", "leaf", "-"])
)
def test_traverse_and_walk(tree: Any, same: Any, more: int, last: int, fails: str) -> None:
    """`traverse` and `walk` fetch leaves, call and build at the same moments, errors included."""

    def work(side: Side, method: str) -> Any:
        log: list[Any] = []
        spec = side.structure(tree, **same)

        def leaves() -> Iterator[int]:
            for i in range(len(spec) + more):
                log.append(("fetched", i))
                yield i
            log.append("no more")

        def call(kind: str) -> Callable[..., Any]:
            calls = itertools.count()

            def function(*arguments: Any) -> Any:
                log.append((kind, plain(list(arguments))))
                if fails == kind and next(calls) == last:
                    raise KeyError(kind)
                return kind, plain(arguments[0])

            return function

        walk = getattr(spec, method)
        given_functions = {"f_node": call("node"), "f_leaf": call("leaf")}
        return [
            *(outcome(lambda: walk(leaves(), **given_functions)), log),
            *(outcome(lambda: walk(leaves(), None, call("leaf"))), log),
            *(outcome(lambda: walk(list(range(len(spec))))), outcome(lambda: walk(leaves()))),
        ]

    agree(lambda side: work(side, "traverse"))
    agree(lambda side: work(side, "walk"))


def keyed(specs: list[Any]) -> list[Any]:
    """Pairs, out of order."""
    return list(zip("cab"[: len(specs)], specs, strict=True))


MAKE: dict[str, Callable[..., Any]] = {
    "tuple": lambda side, specs, **same: side.tuple(iter(specs), **same),
    "list": lambda side, specs, **same: side.list(specs, **same),
    "deque": lambda side, specs, **same: side.deque(specs, 2, **same),
    "dict": lambda side, specs, **same: side.dict(keyed(specs), **same),
    "dict by name": lambda side, specs, **same: side.dict(
        {"z": specs[0]}, **dict(keyed(specs)), **same
    ),
    "ordereddict": lambda side, specs, **same: side.ordereddict(keyed(specs), **same),
    "defaultdict": lambda side, specs, **same: side.defaultdict(int, keyed(specs), **same),
    "namedtuple": lambda side, specs, **same: side.namedtuple(
        sp.Point(specs[0], specs[-1]), **same
    ),
    "no namedtuple": lambda side, specs, **same: side.namedtuple(tuple(specs), **same),
    "structseq": lambda side, specs, **same: side.structseq(
        os.terminal_size((specs[0], specs[-1])), **same
    ),
    "no structseq": lambda side, specs, **same: side.structseq(list(specs), **same),
    "Global": lambda side, specs, **same: side.from_collection(Global(*specs), **same),
    "InOne": lambda side, specs, **same: side.from_collection(InOne(*specs), **same),
    "Twice": lambda side, specs, **same: side.from_collection(Twice(*specs), **same),
    "None": lambda side, specs, **same: side.from_collection(None, **same),
    "with a number": lambda side, specs, **same: side.list([*specs, 5], **same),
    "nested": lambda side, specs, **same: side.from_collection({"b": specs, "a": 1}, **same),
}


@thorough
@given(
    st.lists(st.tuples(trees, options), min_size=1, max_size=3),
    options,
    st.sampled_from(list(MAKE)),
    st.booleans(),
)
def test_constructors(drawn: list[Any], same: Any, how: str, same_options: bool) -> None:
    """Specs made of specs, that go together or don't."""

    def work(side: Side) -> Any:
        specs = [side.structure(t, **same if same_options else own) for t, own in drawn]
        made = MAKE[how](side, specs, **same)
        return [made, made.namespace, made.unflatten(range(len(made)))]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agree(work)


OTHERS: list[Callable[[Side], Any]] = [
    lambda side: side.leaf(),
    lambda side: side.leaf(none_is_leaf=True, namespace=ONE),
    lambda side: side.none(),
    lambda side: side.none(none_is_leaf=True),
    lambda side: side.none(namespace=ONE),
    lambda side: [side.tuple(), side.list(), side.dict(), side.ordereddict(), side.deque()],
    lambda side: [side.defaultdict(), side.defaultdict(int), side.deque(maxlen=3)],
    lambda side: [getattr(side, name)(namespace=ONE).namespace for name in ("tuple", "leaf")],
    lambda side: side.list(5),
    lambda side: side.dict(5),
    lambda side: side.dict([1]),
    lambda side: side.dict({"a": 1}),
    lambda side: side.defaultdict(5),
    lambda side: side.deque([side.leaf()], -1),
    lambda side: side.deque([side.leaf()], "x"),
    lambda side: side.structseq(time.gmtime(0)),
    lambda side: side.namedtuple(sp.Point),
    lambda side: side.from_collection(side.structure([1])),
    lambda side: type(side.leaf())(),
    lambda side: type(side.leaf())(1),
    *(lambda side, i=i: side.child(side.structure([1, [2]]), i) for i in INDICES),
    *(lambda side, i=i: side.entry(side.structure({"a": 1}), i) for i in INDICES),
    lambda side: side.structure([1, [2]]).child(sp.Opaque()),
    lambda side: side.leaf().compose(1),
    lambda side: side.leaf().broadcast_to_common_suffix(None),
    lambda side: side.leaf().is_prefix(1),
    lambda side: side.leaf().is_suffix(side.leaf(), strict="x"),
    lambda side: side.leaf().is_prefix(side.leaf(), strict=1),
    lambda side: side.structure([1]).is_leaf(strict=None),
    lambda side: side.leaf().is_leaf(strict="x"),
    lambda side: side.leaf().is_prefix(side.leaf(), True),
    lambda side: side.leaf().child(index=0),
    lambda side: side.leaf().unflatten(leaves=[1]),
    lambda side: side.leaf().flatten_up_to(tree=1),
    lambda side: side.leaf().transform(5),
    lambda side: side.leaf().transform(None, 5),
    lambda side: side.structure([1, 2]).transform(
        lambda spec: side.list([side.list([side.leaf(), side.leaf()])])
    ),
    lambda side: side.is_prefix(
        side.structure(OrderedDict(b=2, a=1)), side.structure(OrderedDict(a=[1], b=[2]))
    ),
    lambda side: side.leaf().traverse(5),
    lambda side: side.leaf().traverse([1], 5),
    lambda side: side.leaf().walk([1], None, 5),
    lambda side: side.leaf().walk(leaves=[1]),
    *(
        lambda side, name=name: getattr(side, name)(5)
        for name in ("paths", "accessors", "entries", "children", "one_level", "transform")
    ),
    *(
        lambda side, name=name: getattr(side, name)(5, 0)
        for name in ("child", "entry", "is_prefix", "is_suffix")
    ),
    lambda side: side.is_leaf(5),
    lambda side: side.is_strict_leaf(5),
    lambda side: side.is_prefix(side.leaf(), 5),
    lambda side: side.leaf().children().append(1) or side.leaf().children(),
]


@pytest.mark.parametrize("work", OTHERS, ids=itertools.count())
def test_other_calls(work: Callable[[Side], Any]) -> None:
    """Odd arguments are taken or refused as optree takes or refuses them."""
    agree(work)


def test_namespaces_of_leaves_and_of_none() -> None:
    """A root without children has no namespace, so equal specs are equal, and hash alike."""
    for made, found in (
        (pydag.dagspec_leaf(namespace=ONE), pydag.dag_structure(1)),
        (pydag.dagspec_none(namespace=ONE), pydag.dag_structure(None)),
        (pydag.dagspec_tuple(namespace=ONE), pydag.dag_structure(())),
    ):
        assert (made, hash(made), made.namespace) == (found, hash(found), "")


def test_unregistered_and_registered_again() -> None:
    """What is registered again with the same functions is what it was; otherwise it isn't."""

    class Comes(sp.Box):
        """Registered for a while."""

    functions: list[Any] = [lambda obj: (obj.children, None), lambda _, c: Comes(*c)]
    pydag.register_pydag_node(Comes, *functions)
    spec, elsewhere = pydag.dag_structure(Comes(1)), pydag.dag_structure(InOne(1), namespace=ONE)
    pydag.unregister_pydag_node(Comes)
    message = "PyDagSpecs cannot be merged: custom PyTree type .*Comes.* no longer resolves"
    with pytest.raises(ValueError, match=message):
        spec.compose(elsewhere)
    assert spec.compose(pydag.dag_structure([1])) is not None
    pydag.register_pydag_node(Comes, *functions)
    assert spec.compose(elsewhere).namespace == ONE
    pydag.unregister_pydag_node(Comes)


def test_names_without_prefix() -> None:
    """`pydag.dagspec` has the names of `optree.treespec`."""
    import optree.treespec

    assert set(dagspec.__all__) == set(optree.treespec.__all__)
    for name in dagspec.__all__:
        assert getattr(dagspec, name) is getattr(pydag, f"dagspec_{name}")


@pytest.mark.skipif(sys.version_info >= (3, 15), reason="it has one")
def test_frozendict_is_refused() -> None:
    """There is no `frozendict` before Python 3.15: the function raises."""
    with pytest.raises(RuntimeError, match=r"requires Python 3.15\+ with `frozendict` support"):
        pydag.dagspec_frozendict({"a": pydag.dagspec_leaf()})


class Holder:
    def __init__(self, *parts: Any, aux: Any = None) -> None:
        self.parts, self.aux = parts, aux


pydag.register_pydag_node(Holder, lambda h: (h.parts, h.aux), lambda aux, c: Holder(*c, aux=aux))


def test_a_class_that_was_registered_anew() -> None:
    """Where both sides name one class, the error and `explain` say how its registrations differ."""

    class Moved:
        pass

    def register() -> pydag.PyDagSpec:
        pydag.register_pydag_node(Moved, lambda x: ((), None), lambda _, c: Moved())
        return pydag.dag_structure({"k": Moved()})

    tree = {"k": Moved()}
    text = f"Custom node type mismatch; expected type: {Moved}, got type: {Moved}; the class "
    first = register()
    pydag.unregister_pydag_node(Moved)
    with pytest.raises(ValueError, match=f"^{re.escape(text)}is not registered any more; value: "):
        first.flatten_up_to(tree)
    second = register()
    anew = re.escape(f"{text}was registered anew between the two")
    with pytest.raises(ValueError, match=f"^{anew}; value: "):
        first.flatten_up_to(tree)
    with pytest.raises(ValueError, match=rf"^{anew}\.\n  at tree\['k'\]$"):
        first.broadcast_to_common_suffix(second)
    assert pydag.explain(first, second).endswith(
        " as registered in namespace '', by another registration"
    )


def test_a_class_that_was_defined_again() -> None:
    """If two classes have one name, the error and `explain` say that it was defined again."""

    def define() -> Any:
        class Net:
            pass

        pydag.register_fields(Net)
        return Net()

    hint = "Net was defined again after one of the two objects was made: make that anew, or set "
    specs = [pydag.dag_structure({"k": define()}) for _ in range(2)]
    with pytest.raises(ValueError, match=rf"; {hint}obj\.__class__ = Net; value: "):
        specs[0].flatten_up_to({"k": define()})
    assert f"; {hint}obj.__class__ = Net" in pydag.explain(*specs)


@pytest.mark.parametrize("options", [{}, {"none_is_leaf": True}])
@pytest.mark.parametrize("thing", [5, None, pydag.dagspec_leaf()])
def test_warning_about_leaves(thing: Any, options: Any) -> None:
    """What is no node is a leaf, and whoever called is warned; an error, where warnings are."""

    def told(make: Callable[..., Any]) -> list[Any]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert plain(make(thing, **options)) == plain(optree.tree_structure(thing, **options))
        return [(w.category, renamed(str(w.message)), w.filename, w.lineno) for w in caught]

    assert told(pydag.dagspec_from_collection) == told(optree.treespec_from_collection)
    if thing is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match="is called on a leaf"):
                pydag.dagspec_from_collection(thing, **options)


def test_order_of_keys_is_kept() -> None:
    """A dict is rebuilt in the order in which it was filled, whatever became of its spec."""
    tree = {"b": InOne(1), "a": 2}

    def work(side: Side) -> Any:
        spec, other = side.structure(tree, namespace=ONE), side.structure({"y": 0, "x": 0})
        made = [spec.compose(other), other.compose(spec), other.transform(None, lambda _: spec)]
        made += [side.leaf().broadcast_to_common_suffix(spec), side.dict(k=other, a=spec)]
        made += [side.one_level(spec), side.dict([("b", other), ("a", spec)]), *other.children()]
        return [each.unflatten(range(len(each))) for each in made]

    agree(work)
