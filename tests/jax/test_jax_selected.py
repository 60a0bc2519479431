# SPDX-License-Identifier: Apache-2.0
"""One vocabulary says which leaves are static, and by which leaves one differentiates."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from operations import python_calls
from registering import Linear

import pydag
import pydag.jaxinterop as pj
from pydag import SharingError
from pydag.jaxinterop import Dag


@pydag.register_fields
class Layer:
    def __init__(self, width: Any = 2) -> None:
        self.w, self.width, self.rate = jnp.ones(2), width, 0.5


def kinds(layer: Layer) -> str:
    """Which of the numbers are static."""
    names = ("width", "rate")
    return ",".join(n for n in names if not isinstance(getattr(layer, n), jax.core.Tracer))


SELECTIONS: dict[str, tuple[Any, str]] = {
    "predicate": (lambda leaf: leaf == 2 if isinstance(leaf, int) else False, "width"),
    "class": (int, "width"),
    "classes": ((int, float), "width,rate"),
    "pattern": ("width", "width"),
    "pattern with a dot": (".width", "width"),
    "pattern with a star": ("*r*t*", "rate"),
    "list": (["rate", int], "width,rate"),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_each_way_to_say_it(name: str) -> None:
    """The selection holds at each call, whatever was compiled before."""
    where, expected = SELECTIONS[name]
    f = pj.jit(kinds, static=where)
    assert [f(Layer()), f(Layer()), f(Layer())] == [expected] * 3
    assert pj.make_jaxpr(lambda layer: layer.w, static=where)(Layer()) is not None


# Calls of one structure, one after another, and which of their numbers `n` are static.
BY_VALUE: dict[str, tuple[Any, list[Any], list[bool]]] = {
    "large": (lambda v: v == "a" or (isinstance(v, int) and v > 5), [1, 7, 1, 9, 7, 2, 8],
        [False, True, False, True, True, False, True]),
    "in a list": (["['s']", lambda v: isinstance(v, float) and v < 0], [1.5, -1.5, 2.5, -2.5],
        [False, True, False, True]),
    "flags": (lambda v: v is True or v == "a", [False, True, False], [False, True, False]),
    "NumPy": (lambda v: isinstance(v, str) or v == np.float32(2), [np.float32(x) for x in
        (1, 2, 3, 2)], [False, True, False, True]),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_VALUE)
def test_a_predicate_is_asked_of_the_values_at_each_call(name: str) -> None:
    """A number that was data in one call may be static in the next, also where the core calls."""
    where, numbers, expected = BY_VALUE[name]
    traced = jax.core.Tracer
    f = pj.jit(lambda d: ("data" if isinstance(d["n"], traced) else "static", d["n"]), static=where)
    for _ in range(3):
        found = [f({"n": number, "s": "a"}) for number in numbers]
        assert [kind == "static" for kind, _ in found] == expected
        assert [number for _, number in found] == numbers


def test_a_class_is_decided_by_the_class_alone() -> None:
    """Other numbers of the same structure are data, and the core makes the calls."""
    f = pj.jit(lambda d: d["n"] + 1, static=str)
    assert float(f({"n": 1.5, "s": "a"})) == 2.5
    calls = python_calls(lambda: [f({"n": n + 0.25, "s": "a"}) for n in range(5)])
    assert "CompiledFunction.run" not in calls


def scanned(f: Callable[[Any], Any], **how: Any) -> Any:
    return lambda t: pj.scan(lambda c, _: (f(c), (c, None))[1], t, length=1, **how)[0]


def looped(f: Callable[[Any], Any], **how: Any) -> Any:
    return lambda t: pj.fori_loop(0, 1, lambda _, c: (f(c), c)[1], t, **how)


def whiled(f: Callable[[Any], Any], **how: Any) -> Any:
    return lambda t: pj.while_loop(lambda c: c.w[0] < 0, lambda c: (f(c), c)[1], t, **how)


WRAPPERS: dict[str, Callable[..., Any]] = {
    "jit": pj.jit,
    "vmap": lambda f, **o: pj.vmap(f, None, axis_size=2, **o),
    "checkpoint": pj.checkpoint,
    "grad": pj.grad,
    "value_and_grad": pj.value_and_grad,
    "jacfwd": pj.jacfwd,
    "jacrev": pj.jacrev,
    "hessian": pj.hessian,
    "scan": scanned,
    "fori_loop": looped,
    "while_loop": whiled,
    "make_jaxpr": pj.make_jaxpr,
    "keep_sharing": pj.keep_sharing(jax.named_call, static="width"),
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_every_wrapper_has_it(name: str) -> None:
    """A static number is the number inside."""
    seen = []

    def f(layer: Layer) -> Any:
        seen.append(type(layer.width))
        return jnp.sum(layer.w) * layer.width

    options = {} if name == "keep_sharing" else {"static": "width"}
    WRAPPERS[name](f, **options)(Layer())
    assert set(seen) == {int}


def test_a_gradient_has_none_for_what_is_static() -> None:
    """One argument or several may have derivatives; keyword arguments are looked at, too."""

    def f(layer: Layer, other: Any, *, scale: Any) -> Any:
        assert (layer.width, other["width"], scale["width"]) == (2, 3, 4)
        return jnp.sum(layer.w) * layer.rate + other["x"] * scale["x"]

    given: dict[str, Any] = {"scale": {"width": 4, "x": 2.0}}
    one = pj.grad(f, static="*width*")(Layer(), {"width": 3, "x": 1.0}, **given)
    assert one.width is None
    assert (one.w.tolist(), float(one.rate)) == ([0.5, 0.5], 2.0)
    two = pj.grad(f, (1, 0), static="*width*")(Layer(), {"width": 3, "x": 1.0}, **given)
    assert two[0]["width"] is None
    assert float(two[0]["x"]) == 2.0
    assert two[1].width is None


def test_an_object_that_holds_arrays_may_be_a_constant() -> None:
    """`static=cls`, as the error about it says; the object itself comes in."""

    class Table:
        def __init__(self) -> None:
            self.values = jnp.arange(3.0)

    table = Table()
    with pytest.raises(TypeError, match="static=Table"):
        pj.jit(lambda tree: tree["table"].values)({"table": table})
    f = pj.jit(lambda tree: (tree["table"].values * tree["x"], tree["table"]), static=Table)
    values, out = f({"table": table, "x": 2.0})
    assert values.tolist() == [0.0, 2.0, 4.0]
    assert out is table


def test_a_selection_that_selects_nothing() -> None:
    """The error lists the nearest paths that exist."""
    with pytest.raises(ValueError, match="no path matches the pattern 'widht'") as caught:
        pj.jit(kinds, static="widht")(Layer())  # codespell:ignore
    assert "width" in str(caught.value)
    nothing: list[Any] = [lambda leaf: False, str, (bytes, str), [str]]
    for where in nothing:
        with pytest.raises(ValueError, match="selects none of 3 leaves"):
            pj.jit(kinds, static=where)(Layer())
    for wrap in (pj.grad, pj.vmap, pj.checkpoint, scanned, looped):
        with pytest.raises(ValueError, match="no path matches"):
            wrap(lambda layer: 0.0, static="widht")(Layer())  # codespell:ignore
    with pytest.raises(ValueError, match="no path matches"):
        Dag(Layer(), static="widht")  # codespell:ignore
    wrong: list[Any] = [3, {"a": 1}]
    for where in wrong:
        with pytest.raises(TypeError, match="which leaves"):
            pj.jit(kinds, static=where)(Layer())


def test_an_array_that_is_selected() -> None:
    """An array can't be part of a key; the error says which one it is."""
    with pytest.raises(TypeError, match=r"args\[0\]\.w is an array and selected by static="):
        pj.jit(kinds, static="w")(Layer())


class Held(pj.Module):
    """A module that holds more than arrays."""

    def __init__(self) -> None:
        self.w, self.b = jnp.ones((2, 2)), jnp.ones(2)
        self.act, self.name, self.width, self.steps = jnp.tanh, "held", 3, jnp.int32(0)


def is_matrix(leaf: Any) -> bool:
    return leaf.ndim > 1  # type: ignore[no-any-return]  # of Any


def summed(model: Any) -> Any:
    return model.w.sum() + model.b.sum()


def test_one_predicate_for_all(tmp_path: Any) -> None:
    """A predicate gets arrays and data: no function, text or configuration of the model."""
    model = Held()
    gradient = pj.grad(summed, wrt=is_matrix)(model)
    assert (gradient.w.tolist(), gradient.b) == ([[1.0, 1.0], [1.0, 1.0]], None)
    state = pj.optimizer(optax.adam(0.1), wrt=is_matrix).init(model)
    assert list(state[0].mu) == ["w"]
    mask = pydag.dag_mask(model, is_matrix)
    assert [mask.w, mask.b, mask.act, mask.name, mask.width] == [True, *[False] * 4]
    assert pj.mask(model, is_matrix)({"w": 1, "b": 2}) == {"w": True, "b": False}
    inner = pydag.dag_mask(Dag(model), is_matrix).tree
    assert (inner.w, inner.b) == (True, False)
    pj.save(tmp_path / "m", model, structure=False)
    like = Held()
    loaded = pj.load(tmp_path / "m", like, only=is_matrix)
    assert loaded.b is like.b
    assert loaded.w is not like.w


def test_a_predicate_of_static() -> None:
    """This predicate gets every leaf that could be static, and no array."""
    asked: list[Any] = []

    def is_text(leaf: Any) -> bool:
        asked.append(leaf)
        return isinstance(leaf, str)

    pj.jit(summed, static=is_text)(Held())
    assert set(asked) == {jnp.tanh, "held", 3}


@pytest.mark.parametrize(
    ("call", "path"),
    [
        (lambda f: pj.grad(summed, wrt=f)(Held()), "args[0].b"),
        (lambda f: pj.jit(pj.grad(summed, wrt=f))(Held()), "args[0].b"),
        (lambda f: pj.grad(lambda x, m: m["w"], 1, wrt=[f])(0, {"w": 1.0}), "args[1]['w']"),
        (lambda f: pj.optimizer(optax.sgd(0.1), wrt=f).init(Held()), "params.b"),
        (lambda f: pj.mask(Held(), f), "tree.b"),
        (lambda f: pj.jit(summed, static=f)(Held()), "args[0].act"),
    ],
)
def test_an_error_of_a_predicate_names_the_leaf(call: Any, path: str) -> None:
    """A note names the leaf."""
    with pytest.raises(AttributeError) as caught:
        call(lambda leaf: leaf.missing)
    assert caught.value.__notes__[0] == f"raised while selecting {path}"


@pytest.mark.parametrize(
    "selection", ["*.weight", "w", is_matrix, jnp.ndim, jax.Array, functools.partial(is_matrix)]
)
def test_a_mask_without_a_model(selection: Any) -> None:
    """Such a mask would be one answer for every leaf."""
    with pytest.raises(TypeError, match=r"pj\.mask\(model, where\)"):
        pj.mask(selection)
    with pytest.raises(TypeError, match=r"pj\.mask\(model, where\)"):
        pj.mask(selection, Held())


def test_a_mask_of_flags_as_arrays() -> None:
    """In a mask that was mapped from a module, its arrays are flags; its numbers select nothing."""
    held = Held()
    mask = jax.tree.map(lambda x: np.array(x.ndim > 0), held)
    assert pydag.dag_mask(held, mask).w is True
    with pytest.raises(TypeError, match="a prefix of booleans, or a list of such, got 1"):
        pydag.dag_mask([1, 2], [np.array(True), 1])


def model() -> dict[str, Any]:
    """Two layers with one weight; a counter, a flag, a key, and what JAX can't trace."""
    w = jnp.float32(3.0)
    return {
        "body": Linear(w, jnp.float32(1.0)),
        "head": Linear(w, jnp.float32(2.0)),
        "steps": jnp.int32(4),
        "flag": True,
        "key": jax.random.key(0),
        "name": "net",
        "function": jnp.sin,
    }


def loss(model: Any) -> Any:
    """By the weight 11 + 6, the biases 5 and 1."""
    assert model["body"].weight is model["head"].weight
    body, head = model["body"], model["head"]
    return 5 * body.bias + 11 * body.weight + head.weight**2 + head.bias


def numbers(gradient: Any) -> list[Any]:
    """The weight at both places, and the biases."""
    body, head = gradient["body"], gradient["head"]
    assert body.weight is head.weight
    found = [body.weight, body.bias, head.bias]
    return [None if x is None else float(x) for x in found]


def test_what_has_no_derivative_is_passed_through() -> None:
    """Integers, flags and keys need no `wrt`: the gradient has None there, as for text."""
    gradient = pj.grad(loss)(model())
    assert numbers(gradient) == [17.0, 5.0, 1.0]
    others = ("steps", "flag", "key", "name", "function")
    assert [gradient[name] for name in others] == [None] * 5


@pytest.mark.parametrize(
    ("wrt", "expected"),
    [
        ("*.weight", [17.0, None, None]),
        ("['head'].weight", [17.0, None, None]),
        ("['head'].*", [17.0, None, 1.0]),
        ("*.bias", [None, 5.0, 1.0]),
        (["['body'].bias", "*head*weight"], [17.0, 5.0, None]),
        (Linear, [17.0, 5.0, 1.0]),
        ((Linear, str), [17.0, 5.0, 1.0]),
        (lambda leaf: leaf.shape == (), [17.0, 5.0, 1.0]),  # asked of no text, no function
        (True, [17.0, 5.0, 1.0]),
        (jax.Array, [17.0, 5.0, 1.0]),
    ],
)
def test_the_vocabulary(wrt: Any, expected: list[float | None]) -> None:
    """A selection is a pattern of any path, a class, a predicate, a boolean, or a list of such."""
    for gradient in (
        pj.grad(loss, wrt=wrt)(model()),
        pj.value_and_grad(loss, wrt=wrt)(model())[1],
        pj.jacrev(loss, wrt=wrt)(model()),
        pj.jacfwd(loss, wrt=wrt)(model()),
        pj.jit(pj.grad(loss, wrt=wrt))(model()),
    ):
        assert numbers(gradient) == expected


def test_a_prefix_of_booleans() -> None:
    """The prefix has the argument's form; two answers for one object are an error with both."""
    given = dict.fromkeys(model(), False)
    gradient = pj.grad(loss, wrt={**given, "body": Linear(False, True)})
    with pytest.raises(ValueError, match="prefix of booleans doesn't fit"):
        pj.grad(loss, wrt={"body": True})(model())
    with pytest.raises(SharingError, match="two answers") as caught:
        pj.grad(loss, wrt={**given, "body": Linear(True, True)})(model())
    for path in ("tree['body'].weight: True", "tree['head']"):
        assert path in str(caught.value)
    assert numbers(gradient(model())) == [None, 5.0, None]


def two(one: Any, other: Any, *, scale: Any = 1.0) -> Any:
    return (2 * one["a"] + 3 * other["a"] + 5 * other["b"]) * scale


def test_several_arguments() -> None:
    """Each of them is a root of its own for patterns; a prefix is one of the tuple."""
    args = {"a": jnp.float32(1.0), "b": jnp.float32(2.0)}, {"a": 3.0, "b": 4.0}
    for wrt in ("['a']", ({"a": True, "b": False}, {"a": True, "b": False})):
        one, other = pj.grad(two, (0, 1), wrt=wrt)(*args)
        assert (one, other) == ({"a": 2.0, "b": None}, {"a": 3.0, "b": None})
    other, one = pj.grad(two, (1, 0), wrt=({"a": False, "b": True}, True))(*args)
    assert (one, other) == ({"a": 2.0, "b": 0.0}, {"a": None, "b": 5.0})
    shared = {"a": (w := jnp.float32(1.0)), "b": w}
    one, other = pj.grad(two, (0, 1), wrt="['b']")(shared, shared)
    assert one["a"] is one["b"] is other["a"] is other["b"]
    assert float(one["a"]) == 10.0
    object_at_both = Linear(w, 2.0)
    gradient = pj.grad(lambda one, other: one.weight * other.bias, (0, 1), wrt="bias")
    first, second = gradient(object_at_both, object_at_both)
    assert (first.weight, float(first.bias), first is second) == (None, 1.0, True)


def test_nothing_to_differentiate() -> None:
    """Without leaves that is all right; else it is an error that says what there is."""
    assert pj.grad(lambda p: 1.0, wrt="nothing")({}) == {}
    with pytest.raises(TypeError, match=r"nothing to differentiate by: args\[0\] holds no array"):
        pj.grad(lambda p: 1.0)({"a": "text"})
    with pytest.raises(
        TypeError, match=r"derivative \(but args\[0\]\['steps'\]\) in args\[0\]: .*bias: f32\[\]"
    ):
        pj.grad(loss, wrt="*steps*")(model())
    with pytest.raises(TypeError, match=r"derivative in args\[0\]"):
        pj.grad(loss, wrt=np.ndarray)(model())
    with pytest.raises(TypeError, match="real- or complex-valued inputs"):
        pj.grad(loss)({"steps": jnp.int32(4), "flag": True})
    with pytest.raises(TypeError, match="which leaves: expected"):
        pj.grad(loss, wrt=1.5)(model())


def test_allow_int() -> None:
    """With `allow_int=True` integers count, and keys don't."""
    gradient = pj.grad(loss, allow_int=True)(model())
    assert gradient["steps"].dtype == gradient["flag"].dtype == jax.dtypes.float0
    assert gradient["key"] is None
    gradient = pj.grad(loss, allow_int=True, wrt=["*steps*", "*.bias"])(model())
    assert gradient["steps"].dtype == jax.dtypes.float0
    assert (gradient["flag"], gradient["body"].weight) == (None, None)


@pj.register
@pydag.register_module
class Net:
    """A tied weight, and what has no derivative."""

    def __init__(self) -> None:
        self.w = self.v = jnp.ones(2)
        self.heads, self.rate, self.name, self.act = 4, 0.5, "net", jnp.tanh
        self.scale = 1 / np.sqrt(4.0)


OTHERS = ("heads", "rate", "name", "act", "scale")


def net_loss(net: Any) -> Any:
    return jnp.sum(net.w * net.v) * net.heads


def others(tree: Any) -> list[Any]:
    return [getattr(tree, name) for name in OTHERS]


@pytest.mark.parametrize("make", [optax.sgd, optax.adam, optax.adamw])
def test_updates(make: Any) -> None:
    """An update has the configuration of the model; whoever adds updates doubles no number."""
    net = Net()
    ours = pj.optimizer(make(0.125))
    gradient = pj.grad(net_loss)(net)
    updates, _ = ours.update(gradient, ours.init(net), net)
    assert others(updates) == others(net)
    added = pj.tree.map(jnp.add, net, updates)
    assert others(added) == others(net)
    assert added.w.tolist() == pj.apply_updates(net, updates).w.tolist()
    assert optax.apply_updates(net, updates).w.tolist() == added.w.tolist()
    if make is not optax.adamw:  # which needs the model
        updates, _ = ours.update(gradient, ours.init(net))
        assert updates.w is updates.v
