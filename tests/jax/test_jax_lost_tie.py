# SPDX-License-Identifier: Apache-2.0
"""`LostTieWarning`, and copies that come apart in silence."""

from __future__ import annotations

import ast
import copy
import dataclasses
import gc
import re
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax_models import Net as TiedNet

import pydag
import pydag.jaxinterop as pj
from pydag.jaxinterop import LostTieWarning
from pydag.jaxinterop.notices import lost_tie


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Net:
    encoder: Any
    decoder: Any
    more: Any = None
    name: str = dataclasses.field(default="net", metadata={"static": True})


def tied(**more: Any) -> Net:
    w = jnp.arange(6.0).reshape(2, 3)
    return Net(w, {"w": w}, **more)


def plain(model: Any) -> Any:
    """What unties: JAX's own map."""
    return jax.tree.map(lambda x: x * 2, model)


def warned(call: Callable[[], Any]) -> list[str]:
    """The warnings about lost ties."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if issubclass(w.category, LostTieWarning)]


def test_the_text() -> None:
    """The text has the function, both places on both sides, the cure, and the function's line."""
    step = pj.jit(plain)
    with pytest.warns(LostTieWarning) as caught:
        step(tied())
    [told] = caught
    text = str(told.message)
    assert text.startswith(f"plain at {__file__}:{plain.__code__.co_firstlineno} returns what")
    assert "given: args[0].encoder and args[0].decoder['w'] are one object" in text
    assert "returned: result.encoder and result.decoder['w'] are two" in text
    for cure in ("pj.tree.map", "pj.tree.copy", "pydag.untie"):
        assert cure in text
    assert (told.filename, told.lineno) == (__file__, plain.__code__.co_firstlineno)


def test_once_for_each_trace() -> None:
    """A call that is cached says nothing; another trace says it again, and so does `lower`."""
    step = pj.jit(lambda model: plain(model))
    assert len(warned(lambda: step(tied()))) == 1
    assert warned(lambda: step(tied())) == []
    other = tied(more=jnp.ones(1))
    assert len(warned(lambda: [step(other), step(other)])) == 1
    assert len(warned(lambda: pj.jit(lambda m: plain(m)).lower(tied()))) == 1


def test_a_part_of_the_result() -> None:
    """The tie may be anywhere in a result, of any argument, by keyword too, also of a gradient."""

    def step(scale: Any, *, model: Any) -> Any:
        return {"loss": scale, "new": [plain(model)]}

    [text] = warned(lambda: pj.jit(step)(1.0, model=tied()))
    assert "kwargs['model'].decoder['w']" in text
    assert "result['new'][0].encoder" in text

    def total(model: Any) -> Any:
        return jnp.sum(model.encoder * model.decoder["w"])

    assert len(warned(lambda: pj.jit(jax.grad(total))(tied()))) == 1
    assert warned(lambda: pj.jit(pj.grad(total))(tied())) == []


@pytest.mark.parametrize(
    "function",
    [
        lambda model: [model.encoder + 1, model.decoder["w"] + 2],  # another structure
        lambda model: Net(jnp.sum(model.encoder), model.decoder),  # another shape
        lambda model: Net(model.encoder.astype(int), model.decoder),  # another type
        lambda model: dataclasses.replace(plain(model), name="other"),  # another constant
        lambda model: plain(pydag.untie(model, ("encoder",))),
    ],
)
def test_nothing_is_said(function: Any) -> None:
    """No warning comes if the tie is kept, the result is something else, or untying is meant."""
    assert warned(lambda: pj.jit(function)(tied())) == []


def test_untying_inside_of_another_compiled_function() -> None:
    """Untying is meant there, also when the inner function was compiled before."""
    inner = pj.jit(lambda model: pydag.untie(model, ("encoder",)))
    assert warned(lambda: inner(tied())) == []
    assert warned(lambda: pj.jit(lambda model: inner(model))(tied())) == []
    assert warned(lambda: [inner(tied()), inner(tied())]) == []


class Policy(pj.Module):
    """A model with two weights, one of which is at two places."""

    def __init__(self) -> None:
        self.embed = self.unembed = jnp.arange(3.0) + 1
        self.bias = jnp.ones(3)
        self.steps = jnp.int32(0)

    def __call__(self) -> Any:
        return jnp.sum(self.embed * self.unembed + self.bias)


def distance(tree: Any) -> Any:
    """Of two policies."""
    first, second = tree.values() if isinstance(tree, dict) else tree
    return first() - jax.lax.stop_gradient(second())


def told(call: Callable[[], Any], category: type[Warning] = pj.SharedSelectionWarning) -> list[str]:
    """The warnings of a class."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if issubclass(w.category, category)]


COPIES: dict[str, Callable[[Any], Any]] = {
    "itself": lambda m: m,
    "dag_copy": pydag.dag_copy,
    "copy": copy.copy,
    "astype": lambda m: pj.tree.map(lambda x: x.astype(x.dtype), m),
    "stop_gradient": lambda m: pj.tree.map(jax.lax.stop_gradient, m),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_selection_that_divides_copies_is_told(name: str) -> None:
    """A derivative and an optimizer warn with both places and the cure."""
    model = Policy()
    tree = {"policy": model, "ref": COPIES[name](model)}

    def distance(tree: Any) -> Any:
        return tree["policy"]() - jax.lax.stop_gradient(tree["ref"]())

    [text] = told(lambda: pj.grad(distance, wrt="['policy']*")(tree))
    assert "wrt selects args[0]['policy'].bias, and with it args[0]['ref'].bias" in text
    assert "pj.tree.copy" in text
    jitted = pj.jit(pj.grad(distance, wrt="['policy']*"))
    assert len(told(lambda: [jitted(tree), jitted(tree)])) == 1
    [text] = told(lambda: pj.optimizer(optax.sgd(1), wrt="['policy']*").init(tree))
    assert "params['policy'].bias" in text
    assert (
        told(lambda: pj.jacrev(distance, wrt=["['ref'].bias"])(tree)) == []
    )  # it is one leaf alone


@pytest.mark.parametrize(
    ("tree", "wrt"),
    [
        ({"policy": Policy(), "ref": Policy()}, "['policy']*"),
        ({"policy": (m := Policy()), "ref": pj.tree.copy(m)}, "['policy']*"),
        ({"policy": m, "ref": m}, "*.bias"),
        ({"policy": m, "ref": m}, None),
        ({"policy": m, "ref": m}, Policy),
        ({"policy": m, "ref": m}, lambda leaf: jnp.ndim(leaf) > 0),
        ({"policy": m, "ref": m}, ["*.bias", "*.embed"]),
        ({"policy": m, "ref": m}, ["['policy'].bias", "['ref'].bias"]),
    ],
    ids=["two", "copied", "both", "all", "class", "predicate", "list", "each"],
)
def test_other_selections_are_not(tree: Any, wrt: Any) -> None:
    """No warning comes for real copies, for selections that take both, or ask of the leaf alone."""
    assert told(lambda: pj.grad(distance, wrt=wrt)(tree)) == []


LOOSE: dict[str, Callable[[], Any]] = {
    "zeros": lambda: Net(z := jnp.zeros(3), z),
    "ones": lambda: Net(z := jnp.ones((2, 2)), {"w": z}),
    "bfloat16": lambda: Net(z := jnp.full(9, 0.5, jnp.bfloat16), [z]),
    "numpy": lambda: Net(z := np.zeros(4, np.float32), z),
    "more than a million": lambda: Net(z := jnp.zeros((1 << 21,)), z),
    "a scalar": lambda: Net(z := jnp.float32(2), z),
    "integers": lambda: Net(z := jnp.arange(3), z),
    "data": lambda: {"q": (z := jnp.arange(3.0)), "k": z},
    "nested data": lambda: {"a": {"q": (z := jnp.arange(3.0)), "r": z + 1}, "b": [z]},
    "two of one array": lambda: {"student": (z := {"w": jnp.arange(3.0)}), "teacher": z},
    "two models of one array": lambda: {"student": (z := Net(jnp.arange(3.0), 1.0)), "teacher": z},
    "two models": lambda: {"a": (z := Net(jnp.arange(3.0), jnp.arange(2.0))), "b": z},
    "a list of one array": lambda: [z := jnp.arange(3.0), z],
    "a tuple": lambda: Net(((z := jnp.arange(3.0)), 1.0), (z, 2.0)),
}

MADE_BY: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "jit": pj.jit,
    "donated": lambda f: lambda tree: pj.jit(f, donate_argnums=0)(pj.tree.copy(tree)),
    "checkpoint": pj.checkpoint,
    "eval_shape": lambda f: lambda tree: pj.eval_shape(f, tree),
    "vmap": lambda f: pj.vmap(f, in_axes=None, axis_size=2),
    "grad": lambda f: pj.grad(lambda tree: (0.0, f(tree)), has_aux=True, allow_int=True),
    "auxiliary": lambda f: lambda t: pj.grad(lambda x, t: (x, f(t)), has_aux=True)(1.0, t),
    "cond": lambda f: lambda tree: pj.cond(True, f, f, tree),
}


@pytest.mark.parametrize("wrapper", MADE_BY)
@pytest.mark.parametrize("name", LOOSE)
def test_what_only_starts_equal(name: str, wrapper: str) -> None:
    """Arrays of one value, data in dicts, items of tuples, copies: they may come apart."""
    f = MADE_BY[wrapper](lambda tree: plain(tree))
    assert warned(lambda: f(LOOSE[name]())) == []


class Block(eqx.Module):
    """A module with two parts."""

    a: Any
    b: Any


LAYER = Block(jnp.arange(3.0), jnp.zeros(2))

TIED: dict[str, Callable[[], Any]] = {
    "two attributes": lambda: Block(w := jnp.arange(3.0), w),
    "a record": lambda: Net(w := jnp.arange(3.0), w),
    "weights of layers": lambda: Block(
        Block(w := jnp.arange(3.0), jnp.zeros(2)), Block(w, jnp.ones(2))
    ),
    "a layer": lambda: Block(LAYER, LAYER),
    "in a list of a module": lambda: Block(LAYER, [LAYER]),
    "in a dict of a module": lambda: Block({"in": (w := jnp.arange(3.0)), "out": w}, 1.0),
    "a module in a dict": lambda: {"model": Block(LAYER, LAYER), "step": 1.0},
    "in two models": lambda: {"policy": Block(LAYER, 1.0), "critic": Block(LAYER, 2.0)},
    "in a list": lambda: [LAYER, LAYER],
}


@pytest.mark.parametrize("wrapper", MADE_BY)
@pytest.mark.parametrize("name", TIED)
def test_ties_that_are_meant(name: str, wrapper: str) -> None:
    """Every wrapper warns once of what a module holds twice, and of layers of several arrays."""
    f = MADE_BY[wrapper](lambda tree: plain(tree))
    assert len(warned(lambda: f(TIED[name]()))) == 1


def test_another_shape_is_no_other_start() -> None:
    """What was found equal when the program was made stays silent when JAX traces it again."""
    step = pj.jit(lambda tree: plain(tree))
    for size in (2, 3, 4):
        assert warned(lambda size=size: step(Net(z := jnp.zeros(size), z))) == []  # type: ignore[misc]  # an untyped base


def test_arrays_are_read_only_where_a_tie_looks_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is fetched from a device for a program that keeps ties."""
    read: list[Any] = []
    monkeypatch.setattr(lost_tie, "has_one_value", read.append)
    kept = pj.jit(lambda m: pj.tree.map(lambda x: x * 2, m))(tied())
    assert kept.encoder is kept.decoder["w"]
    assert read == []
    warned(lambda: pj.jit(lambda m: plain(m))(tied()))
    assert len(read) == 1


def test_nothing_holds_the_arrays_that_were_read() -> None:
    """A program owns no array of the call that made it."""
    step, models = pj.jit(lambda tree: plain(tree)), [tied()]
    gone = weakref.ref(models[0].encoder)
    assert len(warned(lambda: step(models[0]))) == 1
    models.clear()
    gc.collect()
    assert gone() is None


class Layer(pj.Module):
    """Two arrays."""

    def __init__(self) -> None:
        self.w, self.b = jnp.arange(3.0), jnp.arange(2.0)


class Stacked(pj.Module):
    """Layers by name and in a list."""

    def __init__(self) -> None:
        self.fc1, self.fc2 = Layer(), Layer()
        self.layers = [self.fc1, self.fc2]


def total(tree: Any) -> Any:
    return sum(jnp.sum(x) for x in pydag.dag_leaves(tree) if isinstance(x, jax.Array))


@pytest.mark.parametrize("wrt", ["layers*", "fc1*", "layers[0]*", ["fc1*", "fc2*"], "*fc2*"])
@pytest.mark.parametrize("where", [lambda m: m, lambda m: {"m": m}, lambda m: [1.0, (m,)]])
def test_a_selection_within_one_module(wrt: Any, where: Any) -> None:
    """What a module holds under two names is selected by either, without a doubt."""
    tree = where(Stacked())
    prefix = "" if isinstance(tree, Stacked) else "['m']." if isinstance(tree, dict) else "[1][0]."
    own = [prefix + item for item in ([wrt] if isinstance(wrt, str) else wrt)]
    assert told(lambda: pj.grad(total, wrt=own)(tree)) == []
    assert told(lambda: pj.optimizer(optax.sgd(1), wrt=own).init(tree)) == []


@pytest.mark.parametrize(
    ("tree", "wrt", "cure"),
    [
        ({"policy": m, "ref": m}, "['policy']*", ["['policy']*", "['ref']*"]),
        ({"policy": m, "ref": m}, ["['policy']*"], ["['policy']*", "['ref']*"]),
        ([m, m], "[0]*", ["[0]*", "[1]*"]),
        (Net(m, m), "encoder*", ["encoder*", "decoder.*"]),
        ({"a": {"policy": m}, "b": [1.0, m]}, "['a']*", ["['a']*", "['b'][1]*"]),
        ({"a": m, "b": m, "c": m}, "['a']*", ["['a']*", "['b']*", "['c']*"]),
        ({"a": m, "b": {"w": m.bias, "v": m.embed}}, "['a']*", ["['a']*", "['b']*"]),
    ],
)
def test_the_cure_of_a_shared_selection(tree: Any, wrt: Any, cure: list[str]) -> None:
    """The warning names a selection of both; with it there is no warning, and both are selected."""
    [text] = told(lambda: pj.grad(total, wrt=wrt)(tree))
    found = re.search(r"wrt=(\[.*\])\.$", text)
    assert found is not None
    named = ast.literal_eval(found[1])
    assert sorted(named) == sorted(cure)
    assert told(lambda: pj.grad(total, wrt=named)(tree)) == []
    gradient = pj.grad(total, wrt=named)(tree)
    assert len([x for x in pydag.dag_leaves(gradient) if isinstance(x, jax.Array)]) == 2


class Moments(pj.Module):
    """A mean and a variance."""

    def __init__(self, start: Any) -> None:
        self.mean = self.var = start


BODIES: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "scan": lambda f, m: pj.scan(lambda m, _: (f(m), None), m, length=2),
    "fori_loop": lambda f, m: pj.fori_loop(0, 2, lambda _, m: f(m), m),
    "while_loop": lambda f, m: pj.while_loop(lambda m: m.mean.sum() < 0, f, m),
}


@pytest.mark.parametrize("loop", BODIES.values(), ids=BODIES)
def test_what_starts_equal_in_a_carry(loop: Any) -> None:
    """Zeros at two places of a module are silent in a loop; other arrays are a tie."""

    def step(moments: Any) -> Any:
        made = Moments(moments.mean + 1)
        made.var = moments.var * 2
        return made

    loop(step, Moments(jnp.zeros(3)))
    with pytest.warns(pj.LostTieWarning):
        loop(lambda m: step(m), Moments(jnp.arange(3.0)))


X = jnp.array([1.0, 2.0])
Z = jnp.zeros(2)


# --- ties ---
class Triple(Block):
    c: Any


@pytest.mark.parametrize("wrap", ["jit", "checkpoint", "vmap", "eval_shape"])
@pytest.mark.parametrize("part", ["whole", "part"])
def test_every_wrapper_tells_of_a_lost_tie(wrap: str, part: str) -> None:
    """A result, or a part of it, in which what was one object in the argument is two."""
    assert pj.LostTieWarning is pydag.errors.LostTieWarning  # as is that of integrations.torch

    def scaled(tree: Any) -> Any:
        out = jax.tree.map(lambda x: x * 0.5, tree)
        return out if part == "whole" else {"out": [out], "loss": out.a.sum()}

    wrapped: dict[str, Any] = {
        "jit": pj.jit(scaled),
        "checkpoint": pj.checkpoint(scaled),
        "vmap": pj.vmap(scaled),
        "eval_shape": lambda tree: pj.eval_shape(scaled, tree),
    }
    with pytest.warns(pj.LostTieWarning) as told:
        wrapped[wrap](Block(X, X))
    text = str(told[0].message)
    assert len(told) == 1
    assert "args[0].a and args[0].b are one object" in text
    assert "pj.tree.map" in text
    assert "dag_map" not in text


def test_a_layer_that_comes_back_as_two() -> None:
    """pydag warns of an object, too, whose arrays are still one."""
    layer = Block(X, X + 1)
    with pytest.warns(pj.LostTieWarning, match=r"args\[0\]\.a and args\[0\]\.b are one"):
        pj.jit(lambda net: Block(*(Block(p.a, p.b) for p in (net.a, net.b))))(Block(layer, layer))


def test_states_that_start_equal_are_no_tie() -> None:
    """Arrays of one value are one by chance, where their elements can be read."""

    def step(state: Any, x: Any) -> Any:
        return x, {"h": state["h"] + 1, "c": state["c"] * 2}

    _, state = pj.grad(step, 1, has_aux=True)({"h": Z, "c": Z}, 1.0)
    assert state["h"].tolist() == [1.0, 1.0]


def test_a_tie_that_one_of_two_copies_has_lost() -> None:
    """The copies may become two, and each keeps its own ties."""
    both = Triple(X, X, X + 1)
    with pytest.warns(pj.LostTieWarning, match=r"returned: result\['m'\]\.a and .*\['m'\]\.b"):
        pj.jit(lambda d: {"average": d["average"], "m": jax.tree.map(lambda x: x * 2, d["m"])})(
            {"average": both, "m": both}
        )


def test_an_equinox_module_that_jax_mapped() -> None:
    """pydag warns where configuration was mapped, too; `pj.tree.map` leaves configuration."""

    class Scale(eqx.Module):
        scale: jax.Array

    class Model(eqx.Module):
        a: Scale
        b: Scale
        drop: eqx.nn.Dropout

    part = Scale(X)
    model = Model(part, part, eqx.nn.Dropout(0.5))
    with pytest.warns(pj.LostTieWarning, match=r"args\[0\]\.a.* and args\[0\]\.b"):
        pj.jit(lambda m: jax.tree.map(lambda x: 0.9 * x if eqx.is_array(x) else x, m))(model)
    mapped = pj.jit(lambda m: pj.tree.map(lambda x: 0.9 * x, m))(model)
    assert mapped.a is mapped.b
    assert (mapped.drop.p, mapped.drop.inference) == (0.5, False)


KEY = jax.random.key(0)
PAIR = {"w": X, "v": X + 1}
SAME = {"w": X, "again": X}
BOTH = {"w": X, "again": X, "v": X + 1}


@pytest.mark.parametrize(
    ("f", "tree"),
    [
        (lambda s: (s[0] + 1, s[1] * 2), (X, X)),
        (lambda s: tuple(pj.tree.map(lambda x: x * 2, d) for d in s), (SAME, SAME)),
        (lambda d: {n: jax.random.split(k)[0] for n, k in d.items()}, {"a": KEY, "b": KEY}),
        (
            lambda d: {"a": d["a"] + 1, "b": d["b"] - 1},
            {"a": jnp.arange(2), "b": jnp.array([3, 4])},
        ),
        (lambda d: jax.tree.map(lambda x: x * 2, d), {"params": PAIR, "average": PAIR}),
        (
            lambda d: {n: pj.tree.map(lambda x: x * 2, d[n]) for n in d},
            {"m": BOTH, "average": BOTH},
        ),
        (lambda d: jax.tree.map(lambda x: x * 2, pydag.untie(d, ("b",))), {"a": X, "b": X}),
        (lambda m: {"a": m.w.sum(), "b": m.tied.sum()}, TiedNet(X)),
        (lambda m: pj.tree.map(lambda x: x * 2, m), TiedNet(X)),
        (lambda trees: trees[1], [SAME, {"w": X, "again": X + 1}]),
    ],
    ids=[
        "tuple",
        "in tuple",
        "keys",
        "integers",
        "copies",
        "tied copies",
        "untied",
        "other",
        "kept",
        "another",
    ],
)
def test_silent_about_ties(f: Any, tree: Any) -> None:
    """No warning comes where a tie is hardly meant, was untied on purpose, or is kept."""
    pj.jit(f)(tree)
