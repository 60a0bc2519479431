# SPDX-License-Identifier: Apache-2.0
"""`frozendict`, which Python has from 3.15 on: a node that is a value, as a tuple is."""

import builtins
import copy
import gc
import pickle
import weakref
from typing import Any

import optree
import pytest

import pydag

frozendict: Any = getattr(builtins, "frozendict", None)
needs_it = pytest.mark.skipif(frozendict is None, reason="this Python has no frozendict")


@needs_it
def test_children_in_the_order_of_keys() -> None:
    """The children stand in the order of the sorted keys, as those of a dict; paths say the key."""
    tree = frozendict(b=1.5, a=[2.5])
    leaves, spec = pydag.dag_flatten(tree)
    assert leaves == [2.5, 1.5]
    assert repr(spec) == "PyDagSpec(frozendict({'a': [*], 'b': *}))"
    assert spec.type == frozendict
    assert spec.kind == optree.PyTreeKind.FROZENDICT
    assert pydag.dag_paths(tree) == [("a", 0), ("b",)]
    assert pydag.dag_accessors(tree) == optree.tree_accessors(tree)
    assert repr(pydag.dag_structure(frozendict())) == "PyDagSpec(frozendict())"


@needs_it
def test_rebuilt_in_the_order_of_insertion() -> None:
    """What is built has the class, the keys and their order of insertion."""
    tree = frozendict(b=1.5, a=[2.5], c=frozendict())
    for built in (pydag.dag_map(float, tree), pydag.dag_copy(tree)):
        assert type(built) is frozendict
        assert built == tree
        assert list(built) == ["b", "a", "c"]
    wide = frozendict({f"k{i}": i for i in range(100)})
    assert pydag.dag_map(lambda x: x + 1, wide)["k99"] == 100
    assert pydag.dag_map(lambda x: x + 1, wide)["k0"] == 1
    assert list(pydag.dag_map(abs, frozendict({2: 1, "x": 2, (1,): 3}))) == [2, "x", (1,)]


@needs_it
def test_it_has_no_identity() -> None:
    """One that stands at two places is two values; what it holds is shared all the same."""
    w = [0.5]
    one = frozendict(w=w)
    leaves, spec = pydag.dag_flatten([one, one])
    assert len(leaves) == 1
    assert repr(spec) == "PyDagSpec([frozendict({'w': &0 [*]}), frozendict({'w': *0})])"
    assert spec == pydag.dag_structure([one, frozendict(w=w)])
    built = pydag.dag_map(float, [one, one])
    assert built[0]["w"] is built[1]["w"]
    assert pydag.dag_leaves([one, one], is_leaf=lambda x: x is one) == [one, one]


@needs_it
def test_equal_answers_of_a_rest() -> None:
    """Equal frozendicts are one answer for a shared leaf, in whatever order they were filled."""
    w = (0.5,)
    shared = [w]
    spec = pydag.dag_structure([[shared], [shared]], is_leaf=lambda x: x is shared)
    one, other = frozendict(a=1, b=(2,)), frozendict(b=(2,), a=1)
    assert spec.flatten_up_to([[one], [other]]) == [one]
    for differs in (frozendict(a=1, b=(3,)), frozendict(a=1), frozendict(a=True, b=(2,)), {"a": 1}):
        with pytest.raises(pydag.SharingError):
            spec.flatten_up_to([[one], [differs]])


@needs_it
def test_cycles_through_it() -> None:
    """A list that lies within itself through a frozendict is a cycle, and is collected."""

    class Marker:
        pass

    inner: list[Any] = [Marker()]
    inner.append(frozendict(back=inner))
    with pytest.raises(pydag.CycleError, match=r"tree\['a'\]\[1\]\['back'\]"):
        pydag.dag_flatten({"a": inner})
    died = weakref.ref(inner[0])
    del inner
    gc.collect()
    assert died() is None


@needs_it
def test_kept_and_sent() -> None:
    """Pickle, JSON and `copy` keep it, with both orders and with what is shared below it."""
    w = [0.5]
    tree = frozendict(z=w, a=frozendict({1: w, "x": None}))
    spec = pydag.dag_structure(tree)
    for again in (
        *(pickle.loads(pickle.dumps(spec, protocol)) for protocol in range(2, 6)),
        pydag.PyDagSpec.from_json(spec.to_json()),
        copy.deepcopy(spec),
    ):
        assert again == spec
        assert again.is_same_order(spec)
        assert list(again.unflatten([7])) == ["z", "a"]
    assert '["frozendict",2,' in spec.to_json()


@needs_it
def test_marked_for_other_libraries() -> None:
    """`deref` wraps it, since JAX doesn't open it; `reref` gives it back."""
    w = [0.5]
    tree = {"x": w, "y": frozendict(b=1.5, a=w)}
    marked = pydag.deref(tree)
    assert marked["y"].type is frozendict
    assert marked["y"].aux_data == (("b", "a"), ("a", "b"))
    back = pydag.reref(marked)
    assert back["y"]["a"] is back["x"]
    assert list(back["y"]) == ["b", "a"]
    for aux in (None, (("b",), ("a", "b")), (("b", "b"), ("b", "b")), (("b", "a"), ("a", "c"))):
        with pytest.raises(ValueError, match="doesn't fit"):
            pydag.reref([type(marked["y"])(frozendict, aux, (1, 2))])


@needs_it
def test_changed_by_building_anew() -> None:
    """An update, a surgery and a rewrite build another one where something in it changes."""
    w = [0.5]
    frozen = frozendict(w=w, n=1)
    tree = {"f": frozen}
    assert pydag.dag_update(tree, {"f": frozendict(w=[2.5], n=3)}) is tree
    assert tree["f"] == frozendict(w=[2.5], n=3)
    assert tree["f"]["w"] is w
    assert frozen["n"] == 1
    with pytest.raises(TypeError):
        pydag.dag_update(frozendict(a=1), frozendict(a=2))
    replaced = pydag.dag_replace(tree, w, (1,))
    assert replaced["f"] == frozendict(w=(1,), n=3)
    tied = pydag.tie(frozendict(a=[1.5], b=[2.5]), ("a",), ("b",))
    assert tied["a"] is tied["b"]
    assert pydag.dag_rewrite(lambda x: x, tree) is tree
    assert pydag.dag_rewrite(lambda x: 5 if x == 3 else x, tree)["f"]["n"] == 5
