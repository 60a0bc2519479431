# SPDX-License-Identifier: Apache-2.0
"""Classes that only JAX knows are nodes here, with readable paths."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import tree_util

import pydag
from pydag import jaxinterop


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


def test_a_dataclass_without_keys() -> None:
    """One that JAX opens by a function which names no children: they are numbered."""

    @dataclasses.dataclass
    class Pair:
        left: Any
        right: Any = None

    tree_util.register_pytree_node(
        Pair, lambda p: ((p.right, p.left), None), lambda _, c: Pair(c[1], c[0])
    )
    accessors, leaves, _ = pydag.dag_flatten_with_accessor([Pair(1.0, 2.0)])
    assert leaves == [2.0, 1.0]
    assert accessors[1].codify("x") == "x[0][<flat index 1>]"


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


def test_a_dataclass_with_text_for_keys() -> None:
    """Keys are shown as keys, whatever the class is."""

    @dataclasses.dataclass(eq=False)
    class Table:
        content: dict[str, Any]

        def __getitem__(self, key: str) -> Any:
            return self.content[key]

    tree_util.register_pytree_with_keys(
        Table,
        lambda t: ([(tree_util.DictKey(k), t[k]) for k in t.content], tuple(t.content)),
        lambda keys, children: Table(dict(zip(keys, children, strict=True))),
    )
    assert_node(lambda w: Table({"name": w}), ("name",), "['name']")
    loop = Table({})
    loop.content["name"] = loop
    with pytest.raises(pydag.CycleError, match=r"tree\[0\] is the Table at tree\n"):
        pydag.dag_leaves(loop)


def test_a_dataclass_that_is_a_sequence() -> None:
    """A dataclass is opened as it was registered: by items, or by nothing that has a name."""

    @dataclasses.dataclass(eq=False)
    class Items:
        content: tuple[Any, ...]

        def __getitem__(self, index: int) -> Any:
            return self.content[index]

    @dataclasses.dataclass(eq=False)
    class Bag(Items):
        pass

    tree_util.register_pytree_with_keys(
        Items,
        lambda t: ([(tree_util.SequenceKey(i), x) for i, x in enumerate(t.content)], None),
        lambda _, children: Items(tuple(children)),
    )
    assert_node(lambda w: Items((w,)), (0,), "[0]")
    tree_util.register_pytree_node(Bag, lambda t: (t.content, None), lambda _, c: Bag(tuple(c)))
    [(path, _)] = jax.tree.leaves_with_path(jaxinterop.Dag(Bag((1.0,))))
    assert tree_util.keystr(path) == ".tree[<flat index 0>]"
    loop = Items(())
    loop.content = (loop,)
    with pytest.raises(pydag.CycleError, match=r"tree\[0\]"):
        pydag.dag_leaves(loop)


def test_a_class_with_keys_that_differ() -> None:
    """The keys of each instance are its own."""

    class Table(dict):  # type: ignore[type-arg]  # any keys
        pass

    tree_util.register_pytree_with_keys(
        Table,
        lambda t: ([(tree_util.DictKey(k), t[k]) for k in t], tuple(t)),
        lambda keys, children: Table(zip(keys, children, strict=True)),
    )
    assert_node(lambda w: Table(a=w), ("a",), "['a']")
    assert pydag.dag_paths([Table(a=1.0), Table(b=1.0)]) == [(0, "a"), (1, "b")]


def test_a_class_without_keys() -> None:
    """Its children are numbered."""

    class Box:
        def __init__(self, *content: Any) -> None:
            self.content = content

    tree_util.register_pytree_node(Box, lambda b: (b.content, None), lambda _, c: Box(*c))
    assert pydag.dag_paths(Box(1.0, 2.0)) == [(0,), (1,)]


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


def test_a_pattern_for_another_instance_selects_nothing() -> None:
    """A pattern of one instance's path matches no path of an instance with another name."""
    node = attribute("kernel")
    assert pydag.dag_mask(node, "*kernel").x is True
    assert pydag.dag_mask([attribute("scale"), node], "*kernel")[0].x is False
    with pytest.raises(ValueError, match=r"no path matches the pattern '\*kernel'"):
        pydag.dag_mask(attribute("scale"), "*kernel")
    with pytest.raises(ValueError, match=r"no path matches the pattern '\*kernel'"):
        jaxinterop.grad(lambda node: node.x**2, wrt="*kernel")(attribute("scale"))


def test_one_instance_has_names_and_another_has_none() -> None:
    """What one instance's keys are says nothing of another's, whichever came first."""
    number = tree_util.FlattenedIndexKey(0)
    assert pydag.dag_paths([Named(number, 1.0), attribute("a")]) == [(0, 0), (1, "a")]
    assert pydag.dag_paths([attribute("a"), Named(number, 1.0)]) == [(0, "a"), (1, 0)]


def test_a_key_in_one_instance_and_an_attribute_in_another() -> None:
    """An accessor never takes a key for an attribute: it raises where it can't tell."""
    nodes = [attribute("a"), Named(tree_util.DictKey("a"), 1.0)]
    assert [a.codify("x") for a in pydag.dag_accessors(nodes)] == ["x[0].a", "x[1][<flat index 0>]"]


@tree_util.register_pytree_with_keys_class
@dataclasses.dataclass
class Group:
    """A dataclass whose children are the items of its dict."""

    members: dict[str, Any]

    def tree_flatten_with_keys(self) -> Any:
        names = tuple(sorted(self.members))
        return [(tree_util.GetAttrKey(n), self.members[n]) for n in names], names

    def tree_flatten(self) -> Any:
        names = tuple(sorted(self.members))
        return [self.members[n] for n in names], names

    @classmethod
    def tree_unflatten(cls, names: Any, children: Any) -> Group:
        return cls(dict(zip(names, children, strict=True)))


def test_a_dataclass_whose_names_depend_on_the_instance(tmp_path: Any) -> None:
    """Paths, patterns and names in files are each instance's own, as JAX has them."""
    numpy_files = pytest.importorskip("safetensors.numpy")
    groups = [
        Group({"kernel": jnp.ones(1), "bias": jnp.zeros(1)}),
        Group({"scale": jnp.ones(2), "mean": jnp.zeros(2)}),
    ]
    assert pydag.dag_paths(groups) == [(0, "bias"), (0, "kernel"), (1, "mean"), (1, "scale")]
    marked = [group.members for group in pydag.dag_mask(groups, "**scale")]
    assert marked == [{"bias": False, "kernel": False}, {"mean": False, "scale": True}]
    jaxinterop.save(tmp_path / "groups", groups)
    names = sorted(numpy_files.load_file(tmp_path / "groups"))
    assert names == ["0.bias", "0.kernel", "1.mean", "1.scale"]


def test_a_dataclass_with_code_of_its_own_has_the_names_of_its_fields() -> None:
    """JAX names the children of `register_dataclass` by the class: no instance is asked."""

    @tree_util.register_dataclass
    @dataclasses.dataclass
    class Checked:
        x: Any
        y: Any

        def __post_init__(self) -> None:
            self.is_checked = True

    jax_names = [keys for keys, _ in tree_util.tree_flatten_with_path(Checked(1.0, 2.0))[0]]
    assert jax_names == [(tree_util.GetAttrKey("x"),), (tree_util.GetAttrKey("y"),)]
    assert pydag.dag_paths(Checked(1.0, 2.0)) == [("x",), ("y",)]
    assert [a.codify("c") for a in pydag.dag_accessors(Checked(1.0, 2.0))] == ["c.x", "c.y"]


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


def test_an_error_in_the_function_for_keys_is_raised() -> None:
    """With the place; and the next walk, in which there is none, has the names."""

    @tree_util.register_pytree_with_keys_class
    class Failing(Named):
        def tree_flatten_with_keys(self) -> Any:
            if self.x is None:
                raise ZeroDivisionError("no keys")
            return super().tree_flatten_with_keys()

    key = tree_util.GetAttrKey("a")
    assert pydag.dag_paths([Failing(key, 1.0)]) == [(0, "a")]
    with pytest.raises(ZeroDivisionError, match="no keys"):
        pydag.dag_paths([Failing(key, 1.0), Failing(key, None)])
    assert pydag.dag_leaves([Failing(key, 1.0), Failing(key, 2.0)]) == [1.0, 2.0]
    assert pydag.dag_paths([Failing(key, 1.0)]) == [(0, "a")]


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
