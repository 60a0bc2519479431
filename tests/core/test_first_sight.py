# SPDX-License-Identifier: Apache-2.0
"""Classes that a walk meets for the first time."""

import gc
import weakref
from collections import namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple

import optree
import pytest
from operations import run_apart

import pydag


class Base(NamedTuple):
    a: Any
    b: Any = 2


new_namedtuple: Any = namedtuple  # for classes that a checker must not see
new_typed: Any = NamedTuple
# Each makes an instance of a new class, and mostly one of which it is hard to say what it is.
MAKERS: list[Callable[[], Any]] = [
    lambda: type("Leaf", (), {})(),
    lambda: new_namedtuple("cls", "a b")(1, 2),
    lambda: new_typed("Typed", [("a", int)])(1),
    lambda: type("Derived", (Base,), {})(1, 2),
    lambda: type("Derived", (Base,), {"_fields": "ab"})(1, 2),
    lambda: type("Like", (tuple,), {"_fields": ("a",), "_make": 5, "_asdict": None})((1,)),
    lambda: type("Plain", (tuple,), {})((1, 2)),
    lambda: type("Meta", (type,), {})("Leaf", (), {})(),
]


@pytest.mark.parametrize("make", MAKERS)
def test_at_first_sight_and_later(make: Callable[[], Any]) -> None:
    """A new class is what optree says, in a tree of a new structure and of a known one."""
    pydag.dag_flatten([1.5, 2.5])
    spec = pydag.dag_structure([1.5, 2.5])
    for _ in range(3):
        tree: Any = [make(), 2.5]
        leaves: list[Any] = optree.tree_leaves(tree)
        assert all(a is b for a, b in zip(pydag.dag_leaves(tree), leaves, strict=True))
        assert repr(pydag.dag_structure(tree)) == repr(optree.tree_structure(tree)).replace(
            "PyTreeSpec", "PyDagSpec"
        )
    assert spec == pydag.dag_structure([1, 2])


@pytest.mark.parametrize("options", [{}, {"namespace": "first sight"}], ids=repr)
@pytest.mark.parametrize("library", ["pydag", "optree"])
def test_registered_at_second_sight(library: str, options: dict[str, Any]) -> None:
    """A class may be registered after it was a leaf: here, or with optree."""

    def parts(x: Any) -> Any:
        return (x.a,), None

    cls = type("Node", (), {"a": 1.5})
    tree = [cls(), cls()]
    assert pydag.dag_leaves(tree, namespace="first sight") == tree
    if library == "pydag":
        pydag.register_pydag_node(cls, parts, lambda _, children: None, **options)
    else:
        named: dict[str, Any] = options or {"namespace": "first sight"}
        optree.register_pytree_node(cls, parts, lambda _, children: [], **named)
    assert pydag.dag_leaves(tree, namespace="first sight") == [1.5, 1.5]


@pytest.mark.classes_die
def test_classes_that_come_and_go_are_not_kept() -> None:
    """No class outlives its last instance because a walk has met it."""
    for make in MAKERS:
        tree: Any = [make(), make()]
        classes = [weakref.ref(type(x)) for x in tree]
        pydag.dag_map(lambda x: x, tree)
        del tree
        gc.collect()
        assert [ref() for ref in classes] == [None, None]


def test_registry_key_whose_comparison_is_code() -> None:
    """A key in another library's registry that empties the tree as it is compared is harmless."""
    source = """
import gc
import pydag
class Meta(type):
    def __hash__(self): return wanted
    def __eq__(self, other):
        emptied.append(other)
        tree.clear()
        gc.collect()
        return False
wanted, emptied, tree = 5, [], []
Leaf = type("Leaf", (), {})
wanted = hash(Leaf)
Odd = Meta("Odd", (), {})
pydag._core.watch_registry({Odd: None})
tree[:] = [[object(), Leaf()], [object(), Leaf()]] * 5
print(len(pydag.dag_leaves(tree)), Leaf in emptied, tree)
"""
    assert run_apart(source) == "4 True []\n"
