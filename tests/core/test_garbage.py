# SPDX-License-Identifier: Apache-2.0
"""Cycles through the core's objects are collected; references are counted right."""

import ctypes
import gc
import pickle
import re
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from operations import run_apart

import pydag


class Tagged:
    """A node whose aux_data is its tag."""

    def __init__(self, tag: Any, *children: Any) -> None:
        self.tag, self.children = tag, children


pydag.register_pydag_node(Tagged, lambda t: (t.children, t.tag), lambda tag, c: Tagged(tag, *c))


class Holder:
    """Can hold anything, be a key, and be referred to weakly."""

    content: Any = None


def is_collected(make: Callable[[], Any]) -> bool:
    """Whether the object that `make` returns is gone after one collection."""
    gc.collect()
    reference = weakref.ref(make())
    gc.collect()
    return reference() is None


def test_spec_in_its_own_aux_data() -> None:
    """A cycle spec → aux_data → spec is collected."""

    def make() -> Holder:
        tag = Holder()
        tag.content = pydag.dag_structure([Tagged(tag, 1)])
        return tag

    assert is_collected(make)


def test_spec_in_its_own_key() -> None:
    """A cycle spec → keys → key → spec is collected, for every kind of mapping."""

    def make(cls: Any) -> Holder:
        key = Holder()
        key.content = pydag.dag_structure([cls({key: 1})])
        return key

    for cls in (dict, OrderedDict, lambda items: defaultdict(None, items)):
        assert is_collected(lambda cls=cls: make(cls))  # type: ignore[misc]  # a default argument


def test_spec_in_its_own_meta_field() -> None:
    """A cycle spec → values of meta fields → spec is collected."""

    @pydag.register_fields(meta_fields=("m",))
    class Layer:
        m: Any

    def make() -> Holder:
        layer = Layer()
        layer.m = Holder()
        layer.m.content = pydag.dag_structure(layer)
        return layer.m  # type: ignore[no-any-return]  # it is

    assert is_collected(make)


@pytest.mark.classes_die
@pytest.mark.parametrize("fields", [True, False])
def test_registration_of_an_unregistered_class(fields: bool) -> None:
    """A cycle class → specs → registration → class is collected, with one spec and with several."""

    def make() -> type:
        class Node:
            specs: Any

        def flatten(_: Node) -> Any:
            return ([1], [2]), None

        def unflatten(_: Any, children: Any) -> Node:
            return Node()

        if fields:
            pydag.register_fields(Node)
        else:
            pydag.register_pydag_node(Node, flatten, unflatten)
        node = Node()
        Node.specs = [pydag.dag_structure(tree) for tree in (node, [node, node], {"a": node})]
        pydag.dag_copy([node, node])
        pydag.unregister_pydag_node(Node)
        return Node

    assert is_collected(make)


def test_reported_references_are_owned_ones() -> None:
    """The collector is shown each reference of a spec as often as the spec owns it."""
    tag = Holder()
    before = len(gc.get_referrers(tag))
    spec = pydag.dag_structure([Tagged(tag, 1), Tagged(tag, 2), Tagged(tag)])
    assert [x is tag for x in gc.get_referents(spec)].count(True) == 3
    assert len(gc.get_referrers(tag)) == before + 1


def test_collector_while_a_spec_is_half_made() -> None:
    """The collector may see a spec that has no structure yet."""
    specs = [pydag.PyDagSpec.__new__(pydag.PyDagSpec) for _ in range(10)]
    assert gc.get_referents(specs[0]) in ([], [pydag.PyDagSpec])
    gc.collect()
    del specs
    gc.collect()


# `from_json` makes a spec, and asks none.
METHODS = [n for n in dir(pydag.PyDagSpec) if n[0] != "_" and n != "from_json"]


def clear(spec: pydag.PyDagSpec) -> None:
    """What the collector does to garbage."""
    get_slot = ctypes.pythonapi.PyType_GetSlot
    get_slot.restype, get_slot.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_int)
    tp_clear = 51  # of CPython's stable ABI
    address = get_slot(pydag.PyDagSpec, tp_clear)
    assert ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object)(address)(spec) == 0


def test_spec_that_the_cache_knows_is_not_cleared() -> None:
    """Code that runs while garbage is being destroyed may get it from the cache: it stays whole."""
    tree = {"a": [1, (2, None)]}
    spec = pydag.dag_structure(tree)
    clear(spec)
    assert pydag.dag_structure(tree) is spec
    assert spec.unflatten([1, 2]) == tree


def test_garbage_whose_spec_the_cache_knows() -> None:
    """A cycle through such a spec is collected; one that is being destroyed is not handed out."""
    tree = [[1], {"a": 2}]
    found: list[pydag.PyDagSpec] = []
    holder: Any = Holder()
    holder.me, holder.spec = holder, pydag.dag_structure(tree)
    dying = weakref.ref(holder.spec, lambda _: found.append(pydag.dag_structure(tree)))
    del holder
    gc.collect()
    assert dying() is None
    [spec] = found
    assert spec.unflatten([1, 2]) == tree
    assert pydag.dag_structure(tree) is spec


@pytest.mark.parametrize("name", [*METHODS, "unrestored"])
def test_cleared_spec_is_inert(name: str) -> None:
    """A spec that the collector has cleared, or nobody has restored, answers with an exception."""
    # The cache doesn't know a spec that was unpickled.
    spec = pickle.loads(pickle.dumps(pydag.dag_structure({"a": [1, (2, None)]})))
    if name == "unrestored":
        spec = pydag.PyDagSpec.__new__(pydag.PyDagSpec)
        name = "num_leaves"
    clear(spec)
    for use in (
        lambda: (lambda x: x([1]) if callable(x) else x)(getattr(spec, name)),
        lambda: (lambda x: x() if callable(x) else x)(getattr(spec, name)),
        lambda: (repr(spec), len(spec), spec.__getstate__()),
        lambda: spec == pydag.dag_structure([1]),
        lambda: hash(spec),
    ):
        try:
            use()
        except (TypeError, ValueError) as error:
            # It may not raise.
            assert re.search("PyDagSpec|positional argument", str(error))  # noqa: PT017  # as above
    gc.collect()


def test_end_of_the_process_is_quiet() -> None:
    """Specs, caches and cycles that are alive when the interpreter ends make no noise."""
    source = """
import gc, pydag
@pydag.register_fields
class Node:
    pass
node = Node(); node.x = [1]; node.spec = None
Node.spec = pydag.dag_structure({"a": node, "b": [node]})
key = Node(); key.spec = pydag.dag_structure({key: 1})
kept = [pydag.dag_structure([node] * n) for n in range(10)]
gc.disable()
"""
    assert run_apart(source) == ""
    assert run_apart(source, "-X", "dev", "-W", "error") == ""


def test_long_chain_of_specs_is_freed() -> None:
    """Specs within the aux_data of specs, 300,000 deep, are freed without a deep C stack."""
    source = """
import gc, pydag
class Tagged:
    def __init__(self, tag): self.tag = tag
pydag.register_pydag_node(Tagged, lambda t: ((), t.tag), lambda tag, _: Tagged(tag))
for _ in range(2):
    spec = pydag.dag_structure(1)
    for _ in range(300_000):
        spec = pydag.dag_structure(Tagged(spec))
    del spec
    gc.collect()
print("freed")
"""
    assert run_apart(source) == "freed\n"
