# SPDX-License-Identifier: Apache-2.0
"""`frozendict`, which Python has from 3.15 on: a node that is a value, as a tuple is."""

import builtins
import copy
import gc
import pickle
import weakref
from collections import OrderedDict
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
def test_insertion_order_where_optree_was_told_so() -> None:
    """`dict_insertion_ordered` counts for it, as it does for a dict."""
    tree = frozendict(b=1.5, a=2.5)
    with pydag.dict_insertion_ordered(True, namespace="ordered"):
        assert pydag.dag_leaves(tree, namespace="ordered") == [1.5, 2.5]
        marked = pydag.deref(tree, namespace="ordered")
        assert list(pydag.reref(marked, namespace="ordered").items()) == [("b", 1.5), ("a", 2.5)]
    assert pydag.dag_leaves(tree, namespace="ordered") == [2.5, 1.5]


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
def test_mappings_match_one_another() -> None:
    """A rest may be any mapping with the same keys; other keys are an error that shows both."""
    tree = frozendict(b=1, a=2)
    for rest in ({"a": 20, "b": 10}, OrderedDict(b=10, a=20), frozendict(b=10, a=20)):
        added = pydag.dag_map(lambda x, y: x + y, tree, rest)
        assert added == frozendict(b=11, a=22)
        assert pydag.dag_map(lambda x, y: x - y, rest, tree) == {"a": 18, "b": 9}
        assert pydag.prefix_errors(tree, rest) == []
    with pytest.raises(ValueError, match=r"dictionary key mismatch.*missing key\(s\): \['b'\]"):
        pydag.dag_structure(tree).flatten_up_to({"a": 1, "c": 2})
    with pytest.raises(ValueError, match="Expected an instance of dict, frozendict, "):
        pydag.dag_structure(tree).flatten_up_to(3)
    assert pydag.dag_structure(tree) != pydag.dag_structure({"a": 2, "b": 1})
    assert pydag.dag_structure(tree).is_prefix(pydag.dag_structure({"a": 2, "b": [1]}))


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
def test_specs_of_it() -> None:
    """`dagspec_frozendict`, `dagspec_from_collection` and `to_treespec` know it, as optree does."""
    leaf = pydag.dagspec_leaf()
    spec = pydag.dagspec_frozendict({"b": leaf}, a=pydag.dagspec_list())
    assert repr(spec) == "PyDagSpec(frozendict({'a': [], 'b': *}))"
    assert spec == pydag.dagspec_from_collection(frozendict(b=leaf, a=pydag.dagspec_list()))
    tree = frozendict(b=1, a=[2])
    assert pydag.dag_structure(tree).to_treespec() == optree.tree_structure(tree)
    assert pydag.dag_structure(tree).entries() == ["a", "b"]


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


@needs_it
def test_equal_ones_become_one() -> None:
    """`dag_intern` makes one of equal frozendicts, and of what holds equal ones as leaves."""
    w = [0.5]
    one, other = pydag.dag_intern([frozendict(a=1, w=w), frozendict(a=1, w=w)])
    assert one is other
    kept = [[frozendict(a=1)], [frozendict(a=1)], [frozendict(a=True)]]
    one, other, third = pydag.dag_intern(kept, is_leaf=lambda x: isinstance(x, frozendict))
    assert one is other
    assert third is not one


@needs_it
def test_transposed_and_broadcast() -> None:
    """The other operations on structures take it as any mapping."""
    tree = frozendict(a=[1, 2], b=[3, 4])
    outer, inner = pydag.dag_structure(frozendict(a=0, b=0)), pydag.dag_structure([0, 0])
    assert pydag.dag_transpose(outer, inner, tree) == [frozendict(a=1, b=3), frozendict(a=2, b=4)]
    assert pydag.dag_broadcast_prefix(frozendict(a=1, b=2), tree) == frozendict(a=[1, 1], b=[2, 2])
    assert pydag.dag_mask(tree, "['a']*") == frozendict(a=[True, True], b=[False, False])
    assert pydag.dag_combine(*pydag.dag_partition(lambda x: x > 2, tree)) == tree
    assert "frozendict" in str(pydag.view(tree))


@needs_it
def test_depth() -> None:
    """Two hundred thousand levels are flattened, built and let go."""
    tree: Any = 0.5
    for _ in range(200_000):
        tree = frozendict(k=tree)
    leaves, spec = pydag.dag_flatten(tree)
    assert leaves == [0.5]
    assert pydag.dag_leaves(spec.unflatten([1.5])) == [1.5]


@needs_it
def test_subclass_is_a_leaf() -> None:
    """An instance of a subclass is a leaf, as one of a subclass of dict is."""
    sub = type("Sub", (frozendict,), {})
    assert repr(pydag.dag_structure([sub(a=1)])) == "PyDagSpec([*])"


@pytest.mark.skipif(frozendict is not None, reason="this Python has it")
def test_structures_from_a_newer_python() -> None:
    """A structure that has one is refused by a Python that has none, with its name."""
    text = (
        '{"pydag":1,"none_is_leaf":false,"namespace":"",'
        '"nodes":[["frozendict",1,0],"*"],"refs":[{"keys":["a"]}]}'
    )
    with pytest.raises(ValueError, match="this Python has no frozendict"):
        pydag.PyDagSpec.from_json(text)
