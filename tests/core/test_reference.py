# SPDX-License-Identifier: Apache-2.0
"""The reference by itself: literal answers, and agreement with optree and `copy.deepcopy`."""

import copy
from collections import OrderedDict, defaultdict, deque
from typing import Any

import optree
import pytest
import reference as ref
import specimens as sp
import strategies
from hypothesis import given
from isomorphism import difference
from reference_deref import Alias, Anchor, Node, deref, reref
from reference_kinds import Callbacks
from strategies import thorough

PEER = "reference"  # the namespace in which optree knows the callback classes
for _cls, _registration in sp.GLOBAL.items():
    if isinstance(_registration, Callbacks) and not _registration.foreign:
        sp.register_with_optree(_cls, PEER)

KNOWN_TO_BOTH = strategies.BUILTIN + strategies.CUSTOM + strategies.FRESH
EVERYTHING: dict[str, Any] = {"namespace": sp.NAMESPACE, "registry": sp.REGISTRIES[sp.NAMESPACE]}


def text(tree: Any, **options: Any) -> str:
    """The text of a tree's structure, without the name around it."""
    _, spec = ref.flatten(tree, **EVERYTHING | options)
    return ref.text(spec).removeprefix("PyDagSpec(").removesuffix(")")


W = sp.Opaque()
LAYER = [W, 1]


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ({"b": LAYER, "a": LAYER}, "{'a': &0 [*, *], 'b': *0}"),
        ([W, W], "[&0 *, *0]"),
        ([[LAYER], W, LAYER], "[[&0 [&1 *, *]], *1, *0]"),
        ([(), (), None, None, 1, 1, "a", "a"], "[(), (), None, None, *, *, *, *]"),
        ([(W,)] * 2, "[(&0 *,), (*0,)]"),
        ([sp.Registered(1, 2)] * 2, "[&0 CustomTreeNode(Registered[None], [*, *]), *0]"),
        (sp.Linear(W, W), "Linear(w=&0 *, b=*0, units=3)"),
        (sp.Chosen(x=1, mode="m", y=2), "Chosen(y=*, x=*, mode='m')"),
        (sp.Point(1, [2]), "Point(x=*, y=[*])"),
        (OrderedDict(b=1, a=2), "OrderedDict({'b': *, 'a': *})"),
        (defaultdict(int, b=1, a=2), "defaultdict(<class 'int'>, {'a': *, 'b': *})"),
        (deque([1, 2], 5), "deque([*, *], maxlen=5)"),
        ({None: 1, "a": 2, 3: 4, 2: 5}, "{None: *, 2: *, 3: *, 'a': *}"),
        (
            [sp.Loose(W)] * 2,
            "[CustomTreeNode(Loose[None], [&0 *]), CustomTreeNode(Loose[None], [*0])]",
        ),
    ],
)
def test_text(tree: Any, expected: str) -> None:
    """A spec's text shows each shared object once, marked where it is met first."""
    assert text(tree).removesuffix(", namespace='specimens'") == expected


def test_deref_shows_sharing() -> None:
    """Anchors stand at first places, aliases at the others, a `Node` where JAX could not open."""
    plain = deref([LAYER, LAYER, deque([W])])
    assert isinstance(plain[0], Anchor)
    assert isinstance(plain[1], Alias)
    assert isinstance(plain[2], Node)
    assert (plain[0].index, plain[1].index, plain[2].type) == (0, 0, deque)
    assert (plain[0].value[0].index, plain[0].value[0].value, plain[0].value[1]) == (1, W, 1)
    assert plain[2].children[0].index == 1


@thorough
@given(strategies.trees(KNOWN_TO_BOTH), strategies.predicates)
def test_trees_are_as_in_optree(tree: Any, predicate: strategies.Predicate) -> None:
    """The leaves, paths, questions, calls and texts are optree's where nothing is shared."""
    for none_is_leaf in (False, True):
        asked = predicate.again(), predicate.again()
        sp.EVENTS.clear()
        theirs, their_spec = optree.tree_flatten(
            tree, asked[0], none_is_leaf=none_is_leaf, namespace=PEER
        )
        their_built = their_spec.unflatten(theirs)
        their_events = list(sp.EVENTS)
        sp.EVENTS.clear()
        ours, spec = ref.flatten(
            tree, asked[1], none_is_leaf=none_is_leaf, namespace=PEER, registry=sp.GLOBAL
        )
        built = ref.unflatten(spec, ours, checks_nones=False)
        assert difference(built, their_built) == ""
        assert difference(sp.EVENTS, their_events) == ""
        assert difference(ours, theirs) == ""
        assert difference(asked[1].asked, asked[0].asked) == ""
        assert ref.paths(spec) == their_spec.paths()
        assert ref.text(spec) == str(their_spec).replace("PyTreeSpec", "PyDagSpec", 1)


@thorough
@given(strategies.dags(KNOWN_TO_BOTH))
def test_all_paths_are_those_of_the_unfolded_tree(dag: Any) -> None:
    """Every path of every leaf, and no other, is a path for optree."""
    leaves, spec = ref.flatten(dag, registry=sp.GLOBAL)
    ours = {path: leaf for leaf, ps in zip(leaves, ref.all_paths(spec), strict=True) for path in ps}
    paths, theirs, _ = optree.tree_flatten_with_path(dag, namespace=PEER)
    assert ours.keys() == set(paths)
    assert difference([ours[path] for path in paths], theirs) == ""


@thorough
@given(strategies.dags() | strategies.ladders())
def test_what_is_rebuilt_is_isomorphic(dag: Any) -> None:
    """Flatten and unflatten, deref and reref, keep every identity and every leaf."""
    leaves, spec = ref.flatten(dag, **EVERYTHING)
    assert difference(dag, ref.unflatten(spec, leaves)) == ""
    assert difference(dag, reref(deref(dag, **EVERYTHING), **EVERYTHING)) == ""


@thorough
@given(strategies.dags())
def test_identity_is_kept_as_deepcopy_keeps_it(dag: Any) -> None:
    """Mapping `copy.deepcopy` over the leaves gives what `copy.deepcopy` gives."""
    mapped = ref.map_(copy.deepcopy, dag, **EVERYTHING)
    assert difference(mapped, copy.deepcopy(dag), same_leaves=False) == ""


@thorough
@given(strategies.cycles())
def test_cycles_are_refused(cyclic: Any) -> None:
    """An object below itself is never opened twice."""
    with pytest.raises(ref.CycleError):
        ref.flatten(cyclic, **EVERYTHING)


def test_deref_of_a_derefed_tree() -> None:
    """Old anchors stay, new sharing gets higher indices, and both are read back."""
    other: list[Any] = []
    again = deref([deref([LAYER, LAYER]), other, other])
    assert again[1].index == 1
    assert difference(reref(again), [[LAYER, LAYER], other, other]) == ""
