"""Objects of classes that nobody registered: refused where they hold arrays, static where not."""

from __future__ import annotations

import collections
import enum
import functools
import types
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from wrappers import WRAPPERS

import pydag
from pydag import jaxinterop
from pydag.jaxinterop import Dag


class Sub:
    """The registration was forgotten here."""

    def __init__(self, w: Any = None) -> None:
        self.w = jnp.eye(2) if w is None else w

    def __call__(self, x: Any) -> Any:
        return x @ self.w


@pydag.register_fields
class Top:
    """A registered class, with whatever it is given."""

    def __init__(self, sub: Any) -> None:
        self.sub, self.b = sub, jnp.zeros(2)


class Slotted:
    __slots__ = ("__dict__", "w")


class Inherited(Top):
    """A registration of a base class doesn't hold for it."""


class OwnDict(dict[str, Any]):
    pass


class OwnList(list[Any]):
    pass


class OwnTuple(tuple[Any, ...]):
    __slots__ = ()


def slotted(w: Any) -> Any:
    one: Any = Slotted()
    one.w = w
    return one


struct: Any = jax.ShapeDtypeStruct  # these have no types
spec: Any = jax.sharding.PartitionSpec
Partial: Any = jax.tree_util.Partial
W = jnp.ones((2, 2))
HIDING: dict[str, tuple[Callable[[], Any], str]] = {
    "attribute": (lambda: Sub(W), ".w"),
    "NumPy": (lambda: Sub(np.ones((2, 2), np.float32)), ".w"),
    "slot": (lambda: slotted(W), ".w"),
    "subclass": (lambda: Inherited(W), ".sub"),
    "list": (lambda: Sub([0, {"a": (W,)}]), ".w[1]['a'][0]"),
    "deque": (lambda: Sub(collections.deque([W])), ".w[0]"),
    "ordered": (lambda: Sub(collections.OrderedDict(a=W)), ".w['a']"),
    "registered below": (lambda: Sub(Top(W)), ".w.sub"),
    "unregistered below": (lambda: Sub([Sub(Sub(W))]), ".w[0].w.w"),
    "Dag below": (lambda: Sub(Dag([W])), ".w._built[0][0]"),
    "own dict": (lambda: OwnDict(a=W), "['a']"),
    "own list": (lambda: OwnList([W]), "[0]"),
    "own tuple": (lambda: OwnTuple([W]), "[0]"),
    "namespace": (lambda: types.SimpleNamespace(w=W), ".w"),
    "method": (lambda: Sub(W).__call__, ".__self__.w"),
    "method of an array": (lambda: W.sum, ".__self__"),
    "method of a list": (lambda: [W].append, ".__self__[0]"),
    "partial": (lambda: functools.partial(jnp.dot, W), ".args[0]"),
    "partial by name": (lambda: functools.partial(jnp.dot, b=W), ".keywords['b']"),
    "partial of a method": (lambda: functools.partial(Sub(W).__call__), ".func.__self__.w"),
}
every_hiding = pytest.mark.parametrize("name", HIDING)


@every_hiding
def test_an_object_that_holds_an_array(name: str) -> None:
    """`TypeError` that says where the object is, what it is, where the array is, and the cure."""
    make, path = HIDING[name]
    with pytest.raises(TypeError) as caught:
        jaxinterop.jit(lambda tree: 0)({"x": [make()]})
    first, second, third = str(caught.value).splitlines()
    assert first.startswith("args[0]['x'][0] is ")
    assert first.endswith(f", and holds an array: args[0]['x'][0]{path} is f32[2,2]")
    assert (
        second == "  To JAX it would be a constant: not trained, and not noticed when it changes."
    )
    cure = "Partial" if "partial" in name or "method" in name else "pydag.register_"
    assert cure in third


def test_the_class_and_the_cure() -> None:
    """The message names the class and the call that registers it; and what a base class is for."""
    with pytest.raises(TypeError) as caught:
        Dag(Top(Sub()))
    text = str(caught.value)
    name = f"{__name__}.Sub"
    assert text.startswith(f"tree.sub is an object of {name}, a class that is not registered, and")
    assert "Register the class: pydag.register_fields(Sub)." in text
    assert "static_argnums" in text
    assert "base class" not in text
    with pytest.raises(TypeError, match=r"register_fields\(Inherited\)\. A registration of a base"):
        Dag([Inherited(1)])
    with pytest.raises(TypeError, match=r"register_pydag_node\(OwnDict, flatten_func"):
        Dag([OwnDict(a=W)])
    assert len(text) < 2000


@pytest.mark.parametrize("name", WRAPPERS)
def test_in_every_wrapper(name: str) -> None:
    """No wrapper takes one, and none returns one: there it would be a leak."""
    tree = {"w": jnp.ones((2, 2)), "sub": [Sub()]}
    with pytest.raises(TypeError, match=r"\['sub'\]\[0\] is an object of .*\.Sub, a class that is"):
        WRAPPERS[name](lambda t: t)(tree)
    returned = "keep" if name in ("scan", "fori_loop", "while_loop") else ""

    def leaks(t: Any) -> Any:
        return {**t, "sub": [Sub(t["w"])]}

    good = {"w": jnp.ones((2, 2)), "sub": ["text"]} if returned else {"w": jnp.ones((2, 2))}
    with pytest.raises(TypeError, match=r"\['sub'\]\[0\] is an object of .*\.Sub, a class that is"):
        WRAPPERS[name](leaks)(good)


def test_the_other_ways_in() -> None:
    """`Dag`, a registered class, ahead of time and rules."""
    pattern = r"is an object of .*\.Sub, a class that is not registered"
    calls: list[Callable[[], Any]] = [
        lambda: Dag([Sub()]),
        lambda: jaxinterop.jit(lambda t: 0).lower([Sub()]),
        lambda: jaxinterop.eval_shape(lambda t: 0, [Sub()]),
        lambda: jaxinterop.make_jaxpr(lambda t: 0.0)([Sub()]),
        lambda: jaxinterop.scan(lambda c, x: (c, [Sub()]), 1.0, length=2),
        lambda: jaxinterop.scan(lambda c, x: (c, x), 1.0, {"x": jnp.ones(2), "s": Sub()}),
        lambda: jaxinterop.associative_scan(lambda a, b: a, {"x": jnp.ones(2), "s": Sub()}),
        lambda: jaxinterop.jvp(lambda t: t, ([1.0, Sub()],), ([1.0, Sub()],)),
        lambda: jaxinterop.jit(lambda t, more: 0, donate_argnums=0)([1.0], more=[Sub()]),
    ]
    for call in calls:
        with pytest.raises(TypeError, match=pattern):
            call()

    @jaxinterop.register
    @pydag.register_fields
    class Model:
        def __init__(self) -> None:
            self.sub = Sub()

    with pytest.raises(TypeError, match=r"^Model\.sub is an object of"):
        jax.tree.leaves(Model())


def test_registering_is_the_cure() -> None:
    """Once its class is registered, the object is a node: traced, trained and noticed."""

    class Late:
        def __init__(self) -> None:
            self.w = jnp.eye(2)

    f = jaxinterop.jit(lambda tree: tree["sub"].w)
    tree = {"sub": Late()}
    with pytest.raises(TypeError, match="register_fields"):
        f(tree)
    pydag.register_fields(Late)
    assert f(tree)[0, 0] == 1.0
    tree["sub"].w = jnp.eye(2) * 100
    assert f(tree)[0, 0] == 100.0


def test_a_static_argument_is_let_through() -> None:
    """Who names it in `static_argnums` has said that it is a constant."""
    sub = Sub()
    f = jaxinterop.jit(lambda sub, x: sub(x), static_argnums=0)
    assert f(sub, jnp.ones(2)).tolist() == [1.0, 1.0]
    again = jaxinterop.checkpoint(lambda sub, x: sub(x), static_argnums=0)
    assert again(sub, jnp.ones(2)).tolist() == [1.0, 1.0]


def test_partial_of_jax_is_the_cure_for_partials() -> None:
    """`jax.tree_util.Partial` is a node: of a function and its arguments."""
    f = jaxinterop.jit(lambda tree: tree["f"](jnp.ones(2)))
    assert f({"f": Partial(jnp.dot, W)}).tolist() == [2.0, 2.0]
    assert f({"f": Partial(jnp.dot, 2 * W)}).tolist() == [4.0, 4.0]


class Color(enum.Enum):
    RED = np.ones(2)


class Config:
    """Holds no array, but about everything else, itself included."""

    table = W  # of the class: a constant for everybody

    def __init__(self) -> None:
        self.name, self.size, self.rate = "net", 3, 0.5
        self.activation, self.norm = jax.nn.relu, functools.partial(jax.nn.softmax, axis=-1)
        self.closure = lambda x: x @ W
        self.module, self.cls, self.color = jnp, Sub, Color.RED
        self.mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        self.sharding = jax.sharding.NamedSharding(self.mesh, spec())
        self.shape = struct((2, 2), "float32")
        self.scalar, self.dtype, self.text = np.float32(1), jnp.dtype("float32"), np.array(["text"])
        self.parts = [{"self": self}, {1, 2}, (self,)]
        self.compiled = jaxinterop.jit(lambda x: x)
        self.method = self.run

    def run(self) -> str:
        return self.name


def test_an_object_without_arrays_is_static() -> None:
    """Configuration passes, though it refers to itself: functions, classes, modules, a mesh."""
    config = Config()
    f = jaxinterop.jit(lambda tree: (tree["config"].name, tree["w"] * 2))
    for _ in range(2):
        name, w = f({"config": config, "w": W})
        assert (name, float(w[0, 0])) == ("net", 2.0)
    assert Dag([config, config.run, W]).tree[0] is config
    assert jaxinterop.vmap(lambda t: t)([config, W])[0] is config


def test_a_cycle_that_ends_in_an_array() -> None:
    """Objects that refer to each other are each looked at once."""
    a, b = Sub(0), Sub(0)
    a.w, b.w = [b], {"a": a, "b": b, "w": [W]}
    with pytest.raises(TypeError, match=r"tree\.w\[0\]\.w\['w'\]\[0\] is f32\[2,2\]"):
        Dag(a)


def test_depth() -> None:
    """A chain of a hundred thousand objects is walked, and so is a tower of shared lists."""
    chain: Any = Sub(W)
    for _ in range(100_000):
        chain = Sub(chain)
    with pytest.raises(TypeError, match="holds an array") as caught:
        Dag([chain])
    assert len(str(caught.value)) < 2000
    while type(chain.w) is Sub:  # from the top, so that freeing it takes no stack
        chain = chain.w
    tower: Any = [0]
    for _ in range(60):
        tower = [tower, tower]
    assert Dag([Sub(tower)]).tree[0].w is tower


def test_no_code_of_the_class_runs() -> None:
    """Attributes are read from `__dict__` and slots, and classes are told apart by `is`."""
    ran: list[str] = []

    def note(name: str, result: Any = None) -> Callable[..., Any]:
        def method(self: Any, *_: Any) -> Any:
            ran.append(name)
            if result is None:
                raise RuntimeError(name)
            return result

        return method

    meta: Any = type(
        "Meta",
        (type,),
        {
            "__instancecheck__": note("instancecheck"),
            "__subclasscheck__": note("subclasscheck"),
            "__eq__": note("eq"),
            "__hash__": note("hash"),
            "__getattribute__": note("meta getattribute"),
        },
    )

    content = {
        "__slots__": ("__dict__", "__weakref__", "slot"),
        "__getattribute__": note("getattribute"),
        "__class__": property(note("class")),
        **dict.fromkeys(("__repr__", "__str__", "__len__", "__iter__", "__eq__"), note("text")),
        "__hash__": note("hash"),
    }
    hostile: Any = meta("Hostile", (), content)

    # Made outside of the class, whose own code would run.
    plain = object.__new__(hostile)
    object.__setattr__(plain, "config", [1, "text"])
    object.__setattr__(plain, "slot", {"a": 1})
    from pydag.jaxinterop.static.leaves import is_traced
    from pydag.jaxinterop.static.unregistered import hidden_array

    ran.clear()
    assert not is_traced(plain)
    assert hidden_array(plain) is None
    object.__setattr__(plain, "slot", {"a": (W,)})
    found = hidden_array(plain)
    assert found is not None
    assert (found.path, found.array) == (".slot['a'][0]", W)
    assert ran == []


def test_it_is_asked_when_an_object_has_changed() -> None:
    """An array that comes later into an attribute of a known object is found at the next call."""
    config = Sub("text")
    f = jaxinterop.jit(lambda tree: tree["w"])
    for _ in range(3):
        f({"w": W, "config": config})
    config.w = W
    with pytest.raises(TypeError, match="holds an array"):
        f({"w": W, "config": config})
    with pytest.raises(TypeError, match="holds an array"):
        f({"w": W, "config": Sub()})


def test_tracers_count_as_arrays() -> None:
    """An object that holds a tracer is refused inside of a traced function."""

    @jaxinterop.jit
    def f(x: Any) -> Any:
        return jaxinterop.vmap(lambda t: t["x"])({"x": x, "sub": Sub(x)})

    with pytest.raises(TypeError, match=r"args\[0\]\['sub'\]\.w is f32\[2,2\]"):
        f(W)


def test_references_and_keys_are_arrays() -> None:
    """What JAX traces beside numbers counts as well."""
    for array in (jax.random.key(0), jax.new_ref(jnp.ones(2))):
        with pytest.raises(TypeError, match="holds an array"):
            Dag([Sub(array)])


def test_an_object_whose_text_is_endless() -> None:
    """Whether a leaf can be traced is asked of its class: nothing writes the object down."""
    tower: Any = [0]
    for _ in range(60):
        tower = [tower, tower]

    class Endless:
        def __repr__(self) -> str:
            return repr(tower)

    out = jaxinterop.jit(lambda tree: tree)([Endless(), 1.0])
    assert float(out[1]) == 1.0
