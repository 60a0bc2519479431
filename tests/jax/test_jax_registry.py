# SPDX-License-Identifier: Apache-2.0
"""Classes that only JAX knows are nodes here, with readable paths."""

from __future__ import annotations

import dataclasses
import gc
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import tree_util
from operations import python_calls

import pydag
from pydag import jaxinterop
from pydag.registry.class_table import ClassTable


def assert_node(make: Any, path: tuple[Any, ...], text: str) -> None:
    """Asserts that `make(w)` is a node whose leaf `w` is at `path`, and keeps its identity."""
    node = make(jnp.ones(2))
    accessors, leaves, spec = pydag.dag_flatten_with_accessor([node, node])
    assert len(leaves) == 1
    assert pydag.dag_paths(node) == [path]
    assert accessors[0].codify("x") == f"x[0]{text}"
    assert accessors[0]([node]) is leaves[0]
    first, second = pydag.dag_unflatten(spec, leaves)
    assert first is second
    assert type(first) is type(node)
    first, second = jaxinterop.jit(lambda pair: pydag.dag_map(lambda x: x * 2, pair))([node, node])
    assert first is second
    assert pydag.dag_leaves(first)[0].tolist() == [2.0, 2.0]


def test_a_registered_dataclass() -> None:
    """`jax.tree_util.register_dataclass`: data fields are children, meta fields are structure."""

    @tree_util.register_dataclass
    @dataclasses.dataclass
    class Params:
        w: Any
        name: str = dataclasses.field(default="p", metadata={"static": True})

    assert_node(Params, ("w",), ".w")
    assert pydag.dag_structure(Params(1.0)) != pydag.dag_structure(Params(1.0, "q"))
    assert jaxinterop.grad(lambda p: p.w**2)(Params(3.0, "q")) == Params(6.0, "q")


def test_a_class_with_attribute_keys() -> None:
    """`register_pytree_with_keys` with attributes as keys."""

    class Pair:
        def __init__(self, left: Any, right: Any = None) -> None:
            self.left, self.right = left, right

    tree_util.register_pytree_with_keys(
        Pair,
        lambda p: (
            [(tree_util.GetAttrKey("left"), p.left), (tree_util.GetAttrKey("right"), p.right)],
            None,
        ),
        lambda _, children: Pair(*children),
    )
    assert_node(Pair, ("left",), ".left")
    loop = Pair(1.0)
    loop.right = [loop]
    with pytest.raises(pydag.CycleError, match=r"tree\[1\]\[0\] is the Pair at tree\n"):
        pydag.dag_leaves(loop)
    assert "├─ .left: 1.0" in str(pydag.view(Pair(1.0)))


class Text(str):
    """A name of a class that isn't `str`."""


class Named:
    """Its only child has a name of its own, of which aux_data says nothing."""

    def __init__(self, key: Any, x: Any) -> None:
        self.key, self.x = key, x

    def tree_flatten_with_keys(self) -> Any:
        return [(self.key, self.x)], None

    def tree_flatten(self) -> Any:
        return [self.x], None

    @classmethod
    def tree_unflatten(cls, _: None, children: Any) -> Named:
        return cls(tree_util.GetAttrKey("x"), *children)


tree_util.register_pytree_with_keys_class(Named)


def attribute(name: str, x: Any = 1.0) -> Named:
    return Named(tree_util.GetAttrKey(name), x)


def test_names_that_depend_on_the_instance() -> None:
    """Each instance is asked for the names of its children, with other instances or alone."""
    first, second = attribute("kernel"), attribute("scale")
    assert pydag.dag_paths([first, second]) == [(0, "kernel"), (1, "scale")]
    for node, name in ((first, "kernel"), (second, "scale"), (first, "kernel")):
        assert pydag.dag_paths(node) == [(name,)]
        assert pydag.dag_mask(node, f"*{name}").x is True
        gradient = jaxinterop.grad(lambda node: node.x**2, wrt=f"*{name}")(node)
        assert float(gradient.x) == 2.0


def test_a_class_registered_after_it_was_seen() -> None:
    """It is a leaf first and a node then."""

    class Late:
        def __init__(self, content: Any) -> None:
            self.content = content

    late = Late(1.0)
    assert pydag.dag_leaves(late) == [late]
    tree_util.register_pytree_node(Late, lambda x: ((x.content,), None), lambda _, c: Late(*c))
    assert pydag.dag_leaves(late) == [1.0]


def test_pydag_comes_first() -> None:
    """A class that pydag knows too is opened in pydag's way."""

    class Both:
        def __init__(self, a: Any, b: Any) -> None:
            self.a, self.b = a, b

    tree_util.register_pytree_node(Both, lambda x: ((x.a, x.b), None), lambda _, c: Both(*c))
    assert pydag.dag_leaves(Both(1, 2)) == [1, 2]
    pydag.register_fields(Both, ("b",), ("a",))
    assert pydag.dag_leaves(Both(1, 2)) == [2]


def test_in_every_namespace() -> None:
    """JAX has none, so its classes count in all."""

    class Anywhere:
        pass

    tree_util.register_pytree_node(Anywhere, lambda x: ((), None), lambda _, c: Anywhere())
    assert pydag.dag_leaves(Anywhere(), namespace="some namespace") == []


def test_partial() -> None:
    """`jax.tree_util.Partial`, JAX's own callable node, goes in and comes out callable."""
    w = jnp.ones(2)
    new: Any = tree_util.Partial
    out, again = jaxinterop.jit(lambda p, w: (new(jnp.add, w), p(w)))(new(jnp.add, w), w)
    assert out(w).tolist() == again.tolist() == [2.0, 2.0]


def test_a_class_is_found_by_identity() -> None:
    """A metaclass that says equal, or has no hash, makes no class one of JAX's."""

    class Equal(type):
        def __hash__(cls) -> int:
            return 1

        def __eq__(cls, other: object) -> bool:
            return True

    class Unhashable(type):
        __hash__ = None  # type: ignore[assignment]  # meant

    class Known(metaclass=Equal):
        pass

    class Unknown(metaclass=Equal):
        pass

    class Odd(metaclass=Unhashable):
        pass

    tree_util.register_pytree_node(Known, lambda _: ((1, 2), None), lambda *_: Known())
    unknown, odd = Unknown(), Odd()
    assert pydag.dag_leaves([unknown, odd]) == [unknown, odd]
    assert pydag.dag_leaves([Known(), Known()]) == [1, 2, 1, 2]


@pytest.mark.parametrize(
    ("later", "path"),
    [
        (tree_util.GetAttrKey("other"), "other"),
        (tree_util.DictKey("a key"), 0),
        (tree_util.SequenceKey(7), 7),
        (tree_util.FlattenedIndexKey(3), 0),
        (tree_util.GetAttrKey(Text("text")), "text"),
    ],
    ids=["attribute", "dict key", "number", "flattened index", "subclass of str"],
)
def test_names_are_read_from_the_keys_of_each_instance(later: Any, path: Any) -> None:
    """Also if keys of another kind come later; those that can't be told apart give numbers."""
    cls = tree_util.register_pytree_with_keys_class(type("Own", (Named,), {}))
    first = cls(tree_util.GetAttrKey("first"), 1.0)
    assert pydag.dag_paths([first, first.__class__(tree_util.GetAttrKey("second"), 2.0)]) == [
        (0, "first"),
        (1, "second"),
    ]
    assert pydag.dag_paths([first, cls(later, 2.0)]) == [(0, "first"), (1, path)]
    assert pydag.dag_paths([first, cls(tree_util.GetAttrKey("third"), 2.0)])[1] == (1, "third")


def test_names_are_asked_for_where_somebody_wants_paths() -> None:
    """A structure by itself names children by their index; flattening asks for no names."""
    asked: list[int] = []

    @tree_util.register_pytree_with_keys_class
    class Counting(Named):
        def tree_flatten_with_keys(self) -> Any:
            asked.append(1)
            return super().tree_flatten_with_keys()

    tree_util.tree_leaves_with_path(Counting(tree_util.GetAttrKey("a"), 0.0))
    tree = [Counting(tree_util.GetAttrKey("a"), 1.0)]
    pydag.dag_paths(tree)
    asked.clear()
    for _ in range(3):
        leaves, spec = pydag.dag_flatten(tree)
        pydag.dag_map(lambda x: x, pydag.dag_unflatten(spec, leaves))
    assert asked == []
    assert spec.paths() == [(0, 0)]
    assert pydag.dag_flatten_with_path(tree)[0] == [(0, "a")]
    assert pydag.dag_mask(tree, "[0].a")[0].x is True
    assert list(pydag.dag_map_with_path(lambda path, x: path, tree)[0].x) == [0, "a"]


def new_class() -> Any:
    class Mode:
        __slots__ = ("name",)

        def __init__(self, name: str) -> None:
            self.name = name

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Mode) and self.name == other.name

        def __hash__(self) -> int:
            return hash(self.name)

    return jax.tree_util.register_static(Mode)


def test_no_python_call_for_an_instance() -> None:
    """Neither to take apart nor to build, also where a tree is seen for the first time."""
    mode = new_class()
    pydag.dag_copy([{"mode": mode("known"), "x": 1.0}])  # a class is looked up once
    for size in (3, 30):
        tree = [{"mode": mode(str(i)), "x": 1.0} for i in range(size)]
        assert python_calls(partial(pydag.dag_copy, tree)) == []
        leaves, spec = pydag.dag_flatten(tree)
        assert python_calls(partial(pydag.dag_flatten, tree)) == []
        assert python_calls(partial(spec.unflatten, leaves)) == []


def test_as_jax_has_it() -> None:
    """The leaves, the structure, and what is built again: the very instances."""
    mode = new_class()
    one, other = mode("a"), mode("b")
    tree = {"m": one, "x": 1.0, "again": [one, other]}
    for _ in range(4):
        leaves, spec = pydag.dag_flatten(tree)
        assert leaves == jax.tree.leaves(tree) == [1.0]
        built = pydag.dag_unflatten(spec, [2.0])
        assert built["m"] is built["again"][0] is one
        assert built["again"][1] is other
        assert spec.num_shared == 1
    assert pydag.dag_paths(tree) == [("x",)]
    assert pydag.dag_map(lambda x: x + 1, tree)["x"] == 2.0


def test_classes_that_are_used_by_finalizers() -> None:
    """What was found out about a class in its last moment isn't taken for the next class there."""
    table: ClassTable[str] = ClassTable(lambda x: type(x).__name__)

    class Holder:
        def __init__(self, held: Any) -> None:
            self.held, self.me = held, self

        def __del__(self) -> None:
            table.of(self.held)

    for i in range(100):
        cls: Any = type(f"Before{i}", (), {})
        cls.holder = Holder(cls())
        del cls
        gc.collect()
        after = [type(f"After{i}{k}", (), {}) for k in range(3)]
        assert [table.of(made()) for made in after] == [made.__name__ for made in after]
        del after
