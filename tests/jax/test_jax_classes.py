# SPDX-License-Identifier: Apache-2.0
"""Classes of other libraries: how they are opened and built, and that they keep ties."""

from __future__ import annotations

import abc
import dataclasses
import functools
import gc
import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

import equinox
import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax import tree_util
from jax.tree_util import register_dataclass
from operations import python_calls

import pydag
import pydag.jaxinterop as pj
from pydag.registry.tables import ClassTable

eqx: Any = equinox  # some of the classes below are against its types
struct: Any = pytest.importorskip("flax.struct")
T = TypeVar("T")
W = jnp.arange(3.0)


class Linear(eqx.Module):  # type: ignore[misc]  # untyped base
    weight: Any
    eps: Any = 0.5
    name: Any = eqx.field(static=True, default="linear")


class Deeper(Linear):
    """Inherits fields, and adds some; sets them in another order."""

    inner: Any
    size: int = eqx.field(static=True)

    def __init__(self, inner: Any) -> None:
        self.size = 3
        self.inner = inner
        self.name = "deeper"
        self.eps = 0.25
        self.weight = inner


class Converted(eqx.Module):  # type: ignore[misc]  # untyped base
    value: Any = eqx.field(converter=jnp.asarray)


class Abstract(eqx.Module):  # type: ignore[misc]  # untyped base
    weight: eqx.AbstractVar[Any]

    @abc.abstractmethod
    def double(self) -> Any: ...


class Concrete(Abstract):
    weight: Any

    def double(self) -> Any:
        return 2 * self.weight


class Empty(eqx.Module):  # type: ignore[misc]  # untyped base
    pass


class Lazy(eqx.Module):  # type: ignore[misc]  # untyped base
    """Leaves a field to the default that the class has."""

    weight: Any
    bias: Any = 1.5
    name: Any = eqx.field(static=True, default="lazy")

    def __init__(self, weight: Any) -> None:
        self.weight = weight


class Parametrized(eqx.Module, Generic[T]):  # type: ignore[misc]  # untyped base
    weight: Any


@register_dataclass
@dataclasses.dataclass
class Known:
    weight: Any
    bias: Any = dataclasses.field(default_factory=list)
    name: str = dataclasses.field(default="known", metadata={"static": True})


@register_dataclass
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Slotted:
    name: str = dataclasses.field(default="slotted", metadata={"static": True})
    weight: Any


class State(struct.PyTreeNode):  # type: ignore[misc]  # untyped base
    weight: Any
    name: Any = struct.field(pytree_node=False, default="state")


def without_a_name(w: Any) -> Known:
    """An instance that leaves a field to the default of the class."""
    made = Known(w)
    del made.name
    return made


BY_FIELDS: dict[str, Callable[[Any], Any]] = {
    "module": Linear,
    "inheritance": Deeper,
    "converter": Converted,
    "abstract": Concrete,
    "partial": lambda w: eqx.Partial(jnp.add, w, x=w),
    "linear": lambda w: eqx.nn.Linear(2, 2, key=jax.random.key(0)),
    "conv": lambda w: eqx.nn.Conv2d(1, 2, 3, key=jax.random.key(0)),
    "register_dataclass": Known,
    "register_dataclass, a field of the class": without_a_name,
    "slots": lambda w: Slotted(weight=w),
    "flax.struct": State,
}

BY_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "no fields": lambda w: Empty(),
    "a field that isn't set": Lazy,
    "generic": lambda w: Parametrized[int](w),
    "bound method": lambda w: Concrete(w).double,
    "wrapped function": lambda w: eqx.filter_jit(jnp.negative),
}


def same(one: Any, other: Any) -> bool:
    """Whether two instances have equal attributes."""
    if isinstance(one, jax.Array):
        return one is other
    if type(one) is Slotted:
        return same([one.weight, one.name], [other.weight, other.name])
    if hasattr(one, "__dict__") and type(one) is type(other) and dataclasses.is_dataclass(one):
        ours, theirs = vars(one), vars(other)
        return ours.keys() == theirs.keys() and all(same(ours[k], theirs[k]) for k in ours)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) or one is other


@pytest.mark.parametrize("name", [*BY_FIELDS, *BY_FUNCTIONS])
def test_it_is_opened_and_built_as_its_library_does(name: str) -> None:
    """The same leaves in the same order, the same paths, and an object that is like JAX's."""
    make = (BY_FIELDS | BY_FUNCTIONS)[name]
    tree = make(W)
    theirs, treedef = jax.tree.flatten(tree)
    ours, spec = pydag.dag_flatten(tree, identity="nodes")
    assert len(ours) == len(theirs)
    assert all(map(lambda a, b: a is b, ours, theirs))
    texts = [jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(tree)]
    accessors = pydag.dag_accessors(tree, identity="nodes")
    assert [accessor.codify("") for accessor in accessors] == texts
    built = pydag.dag_unflatten(spec, ours)
    assert type(built) is type(tree)
    assert same(built, jax.tree.unflatten(treedef, theirs))
    assert pydag.dag_structure(built, identity="nodes") == spec
    assert hash(spec) == hash(pydag.dag_structure(make(W), identity="nodes"))


@pytest.mark.parametrize("name", BY_FIELDS)
def test_no_call_for_a_node(name: str) -> None:
    """A tree of 200 costs as many calls as a tree of one, in and out."""
    one, many = [BY_FIELDS[name](W)], [BY_FIELDS[name](W) for _ in range(200)]
    gc.collect()
    for tree in (one, many, one, many):
        pydag.dag_flatten(tree)
    for work in (pydag.dag_flatten, pydag.dag_leaves, pydag.dag_copy):
        assert python_calls(functools.partial(work, many)) == python_calls(
            functools.partial(work, one)
        )
    leaves, spec = pydag.dag_flatten(many)
    names = python_calls(lambda: pydag.dag_unflatten(spec, leaves))
    assert [called for called in names if "<lambda>" not in called] == []


class Checked(eqx.Module):  # type: ignore[misc]  # untyped base
    weight: Any
    calls = 0

    def __check_init__(self) -> None:
        type(self).calls += 1


def test_check_init_and_converters_run_when_one_is_made_and_not_when_rebuilt() -> None:
    """Text may stand for an array then, as in equinox."""
    checked, converted = Checked(W), Converted(1.0)
    assert isinstance(converted.value, jax.Array)
    assert Checked.calls == 1
    assert pydag.dag_map(lambda x: "x", checked).weight == "x"
    assert pydag.dag_map(lambda x: "x", converted).value == "x"
    assert Checked.calls == 1


def test_methods_of_modules_are_modules() -> None:
    """A method goes in as equinox's bound method; its module's arrays are traced."""
    concrete = Concrete(W)
    out = pj.jit(lambda f, module: (f(), f.__self__ is module))(concrete.double, concrete)
    assert out[0].tolist() == [0.0, 2.0, 4.0]
    assert out[1]


def test_a_field_that_isnt_set_stays_so() -> None:
    """The class's default is no leaf; a module that has the field is structured otherwise."""
    lazy = Lazy(W)
    assert pydag.dag_leaves(lazy)[0] is W
    built = pydag.dag_map(lambda x: 2 * x, lazy)
    assert "bias" not in vars(built)
    assert built.bias == 1.5
    whole = eqx.tree_at(lambda m: m.weight, lazy, W)
    object.__setattr__(whole, "bias", 2.5)
    object.__setattr__(whole, "name", "whole")
    both = [lazy, whole, lazy]
    out = pj.jit(lambda both: both)(both)
    assert [module.bias for module in out] == [1.5, 2.5, 1.5]
    assert out[0] is out[2]
    with pytest.raises(ValueError, match="Lazy"):
        pydag.dag_map(lambda a, b: a, lazy, whole)


# --- classes with code of their own ---
def with_code(**code: Any) -> Any:
    """A dataclass of JAX's with methods of its own, which set another attribute."""
    cls = type("Own", (), {"__annotations__": {"weight": Any}, **code})
    return register_dataclass(dataclasses.dataclass(cls))


def new(cls: Any, weight: Any) -> Any:
    self = object.__new__(cls)
    vars(self)["also"] = True
    return self


def own_functions() -> Any:
    """A class that its own functions open and build."""
    cls: Any = dataclasses.make_dataclass("Own", ["weight", ("also", bool, False)])
    jax.tree_util.register_pytree_node(
        cls, lambda own: ((own.weight,), None), lambda _, children: cls(children[0], True)
    )
    return cls


def put(own: Any, **attributes: Any) -> None:
    vars(own).update(attributes, also=True)


OWN: dict[str, Callable[[], Any]] = {
    "init": lambda: with_code(__init__=lambda own, weight: put(own, weight=weight)),
    "post_init": lambda: with_code(__post_init__=put),
    "new": lambda: with_code(__new__=new),
    "setattr": lambda: with_code(__setattr__=lambda own, name, value: put(own, **{name: value})),
    "functions": own_functions,
}


@pytest.mark.parametrize("name", OWN)
def test_a_class_with_code_of_its_own(name: str) -> None:
    """The class's code runs, as in JAX."""
    tree = OWN[name]()(W)
    vars(tree).pop("also", None)
    leaves, spec = pydag.dag_flatten(tree)
    assert len(leaves) == 1
    built = pydag.dag_unflatten(spec, leaves)
    assert vars(built)["also"] is True
    assert built.weight is W


def test_a_dataclass_of_chex() -> None:
    """A dataclass is opened by its attributes, sorted by name, as chex opens it."""
    chex: Any = pytest.importorskip("chex")

    plain = chex.dataclass(type("Plain", (), {"__annotations__": {"weight": Any, "bias": Any}}))
    tree = plain(weight=W, bias=0.5)
    leaves, spec = pydag.dag_flatten([tree, tree])
    assert leaves[0] == 0.5
    assert leaves[1] is W
    assert jax.tree.leaves(tree)[0] == 0.5
    many = [plain(weight=W, bias=0.5) for _ in range(50)]
    pydag.dag_leaves([tree]), pydag.dag_leaves(many)
    assert python_calls(lambda: pydag.dag_leaves(many)) == python_calls(
        lambda: pydag.dag_leaves([tree])
    )
    one, two = pydag.dag_unflatten(spec, leaves)
    assert one is two
    assert one.weight is W
    assert list(vars(one)) == ["weight", "bias"]
    assert pj.grad(lambda p: jnp.sum(p.weight) * p.bias)(tree).bias == 3.0


def test_in_place() -> None:
    """Equinox's modules and JAX's dataclasses are not written to: others may rely on it."""
    for tree in (Linear(W), State(W), Known(W)):
        with pytest.raises(TypeError, match="another library"):
            pydag.dag_update(tree, pydag.dag_map(lambda x: np.asarray(x) + 1, tree))


class Cached(eqx.Module):  # type: ignore[misc]  # untyped base
    weight: Any
    name: Any = eqx.field(static=True, default="cached")

    @functools.cached_property
    def total(self) -> Any:
        return self.weight.sum()


def test_what_a_module_has_cached_is_no_field() -> None:
    """A cached value changes no structure, is in no copy, and makes no further trace."""
    traced = []

    @pj.jit
    def loss(module: Any) -> Any:
        traced.append(1)
        return module.total * 2

    module = Cached(jnp.arange(3.0))
    spec = pydag.dag_structure(module)
    assert float(loss(module)) == 6.0
    assert float(module.total) == 3.0
    assert "total" in vars(module)
    assert pydag.dag_structure(module) == spec
    assert float(loss(module)) == 6.0
    assert len(traced) == 1
    assert python_calls(functools.partial(pydag.dag_structure, module)) == []
    doubled = pydag.dag_map(lambda x: 2 * x, module)
    assert "total" not in vars(doubled)
    assert float(doubled.total) == 6.0


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
    first, second = pj.jit(lambda pair: pydag.dag_map(lambda x: x * 2, pair))([node, node])
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
    assert pj.grad(lambda p: p.w**2)(Params(3.0, "q")) == Params(6.0, "q")


def test_a_class_with_attribute_keys() -> None:
    """`register_pytree_with_keys` may have attributes as keys."""

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
        gradient = pj.grad(lambda node: node.x**2, wrt=f"*{name}")(node)
        assert float(gradient.x) == 2.0


def test_a_class_registered_after_it_was_seen() -> None:
    """An instance is a leaf first and a node then."""

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
    assert pydag.register_pydag_node.get(namespace="some namespace")[Anywhere].type is Anywhere


def test_partial() -> None:
    """`jax.tree_util.Partial`, JAX's own callable node, goes in and comes out callable."""
    w = jnp.ones(2)
    new: Any = tree_util.Partial
    out, again = pj.jit(lambda p, w: (new(jnp.add, w), p(w)))(new(jnp.add, w), w)
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
    """Keys of another kind may come later; those that can't be told apart give numbers."""
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
    """No instance costs a call, in or out, also in a tree that is seen for the first time."""
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


X = jnp.array([1.0, 2.0])


class Module(pj.Module):
    """A module of pydag's."""

    def __init__(self, a: Any, b: Any, n: int = 3) -> None:
        self.a, self.b, self.n = a, b, n


@pydag.register_module
class Registered:
    """Registered as a module."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b, self.n = a, b, 3


@pydag.register_fields
class Record:
    """A record."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


@pj.register
@pydag.register_fields
class Seen:
    """A record that JAX sees as a Dag."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


class Equinox(eqx.Module):  # type: ignore[misc]  # untyped base
    """Of equinox."""

    a: Any
    b: Any


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class JaxData:
    """A dataclass of JAX's."""

    a: Any
    b: Any


@flax.struct.dataclass
class FlaxData:
    """Of flax.struct."""

    a: Any
    b: Any


OF_CHEX: list[Any] = []


if importlib.util.find_spec("chex") is not None:
    chex: Any = importlib.import_module("chex")

    @chex.dataclass
    class ChexData:
        """Of chex."""

        a: Any
        b: Any

    made: Any = ChexData
    OF_CHEX.append(lambda a, b: made(a=a, b=b))


@jax.tree_util.register_pytree_node_class
class ByHand:
    """Registered with JAX by functions of its own."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b

    def tree_flatten(self) -> Any:
        """Both."""
        return (self.a, self.b), None

    @classmethod
    def tree_unflatten(cls, _: Any, children: Any) -> Any:
        """Built by the constructor."""
        return cls(*children)


class Nnx(nnx.Module):
    """Of NNX."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a = nnx.Param(a)
        self.b = self.a if b is a else nnx.Param(b)


CLASSES: tuple[Callable[..., Any], ...] = (
    Module, Registered, Record, Seen, Equinox, JaxData, FlaxData,
    ByHand, Nnx, *OF_CHEX,
)  # fmt: skip


@pytest.mark.parametrize("make", CLASSES)
def test_every_class_keeps_its_ties(make: Any) -> None:
    """Inside and out, in `jit`, in gradients and mapped; the class is the user's."""
    model = make(X, X)
    seen = []

    def loss(m: Any) -> Any:
        seen.append(type(m) is type(model) and m.a is m.b)
        return jnp.sum(m.a[...] * m.b[...])

    out = pj.jit(lambda m: (m, loss(m))[0])(model)
    gradient = pj.grad(loss)(model)
    mapped = pj.tree.map(lambda x: x * 3, model)
    assert seen == [True, True]
    for found, values in ((out, [1.0, 2.0]), (gradient, [2.0, 4.0]), (mapped, [3.0, 6.0])):
        assert type(found) is type(model)
        assert found.a is found.b
        assert found.a[...].tolist() == values


@pytest.mark.parametrize("cls", [Module, Registered, Seen])
def test_modules_are_one_node_to_jax(cls: Any) -> None:
    """A module's children are the distinct arrays: plain `jax.tree.map` and `jax.jit` keep ties."""
    model = cls(X, X)
    assert len(jax.tree.leaves(model)) == 1
    for found in (jax.tree.map(lambda x: x + 0, model), jax.jit(lambda m: m)(model)):
        assert found.a is found.b
        assert found.a.tolist() == [1.0, 2.0]


def test_in_nnx_identity_is_the_variables() -> None:
    """A Variable or a module at two places is a tie; one array in two Variables is none."""
    variable, shared = nnx.Param(X), Nnx(X, X + 1)

    class Two(nnx.Module):
        def __init__(self, a: Any, b: Any) -> None:
            self.a, self.b = a, b

    f = pj.jit(lambda m: (m, m.a is m.b)[0])
    assert (lambda m: m.a is m.b)(f(Two(variable, variable)))
    assert (lambda m: m.a is m.b)(f(Two(shared, shared)))
    apart = Two(nnx.Param(X), nnx.Param(X))
    gradient = pj.grad(lambda m: (m.a[...] * m.b[...] * 3).sum())(apart)
    assert gradient.a is not gradient.b
    assert gradient.a[...].tolist() == [3.0, 6.0]


# --- users' objects hold users' leaves ---
def test_fields_that_are_left_out() -> None:
    """An error is raised at registration, or with the path where an attribute would be lost."""

    @dataclasses.dataclass
    class Data:
        a: Any
        b: Any = 0

    with pytest.raises((TypeError, ValueError), match="b"):
        pydag.register_fields(Data, ["a"])

    class Plain:
        def __init__(self, a: Any) -> None:
            self.a = a

    pydag.register_fields(Plain, ["a"])
    plain: Any = Plain(X)
    pj.jit(lambda m: m)(plain)
    plain.more = X
    with pytest.raises((TypeError, ValueError), match=r"more(.|\n)*args\[0\]\[0\]"):
        pj.jit(lambda m: m)([plain])


# --- pj.tree ---


# --- derived leaves ---


# --- several processes ---
def test_assert_same_everywhere_on_one_process() -> None:
    """One process agrees with itself, whatever the order of attributes."""
    model = Module(X, X)
    pj.assert_same_everywhere({"m": model, "n": 1})
