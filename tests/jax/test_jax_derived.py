# SPDX-License-Identifier: Apache-2.0
"""`pydag.jaxinterop.Derived`, and how derived leaves are resolved."""

from __future__ import annotations

import copy
import functools
import pickle
import re
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pydag
from pydag import jaxinterop as pj

W = jnp.arange(12.0).reshape(4, 3)
ANY: Any = W
X = jnp.arange(8.0).reshape(2, 4)


def tied() -> dict[str, Any]:
    """An embedding, and a head that is its transpose."""
    return {"embed": W, "out": pj.Derived(jnp.transpose, W)}


def loss(model: Any, x: Any = X) -> Any:
    model = pj.resolved(model)
    return jnp.sum(jnp.tanh(x @ model["embed"]) @ model["out"])


def plain_loss(w: Any, x: Any = X) -> Any:
    return jnp.sum(jnp.tanh(x @ w) @ w.T)


def test_the_sources_are_the_leaves() -> None:
    """A derived leaf adds no leaf: what it is computed from is counted once, by its first path."""
    model = tied()
    assert pydag.dag_leaves(model) == [W]
    assert pydag.dag_paths(model) == [("embed",)]
    out = pj.Derived(jnp.add, {"a": W}, jnp.ones(3))
    assert [a.codify("") for a in pydag.dag_accessors({"out": out})] == [
        "['out'].sources[0]['a']",
        "['out'].sources[1]",
    ]
    assert (out.f, out.kwargs, len(out.sources)) == (jnp.add, {}, 2)


def test_resolved_has_values_in_their_place() -> None:
    """What leads to no derived leaf is the same object; all else is new, and the argument stays."""
    model: Any = {"tied": tied(), "other": [jnp.ones(2)]}
    plain = pj.resolved(model)
    assert plain["tied"]["out"].tolist() == W.T.tolist()
    assert plain["tied"]["embed"] is W
    assert plain["other"] is model["other"]
    assert type(model["tied"]["out"]) is pj.Derived
    assert pj.resolved(plain) is plain


def test_each_object_is_computed_once() -> None:
    """However often it stands there, also within others; its one value is shared."""
    calls: list[str] = []

    def note(name: str, x: Any) -> Any:
        calls.append(name)
        return 2 * x

    inner = pj.Derived(functools.partial(note, "inner"), W)
    outer = pj.Derived(functools.partial(note, "outer"), inner)
    model: Any = {"a": inner, "b": [outer, inner], "c": outer}
    plain = pj.resolved(model)
    assert calls == ["inner", "outer"]
    assert plain["a"] is plain["b"][1]
    assert plain["b"][0] is plain["c"]
    assert plain["c"].tolist() == (4 * W).tolist()


def test_numbers_among_the_sources_are_configuration() -> None:
    """As those of a module: not traced, so that they may be a shape, and not trained."""
    model = {"flat": pj.Derived(jnp.reshape, W, (3, 4)), "twice": pj.Derived(jnp.multiply, W, 2.0)}
    plain = pj.jit(pj.resolved)(model)
    assert plain["flat"].shape == (3, 4)
    gradient = pj.jit(pj.grad(lambda m: pj.resolved(m)["twice"].sum() + m["flat"].sources[0].sum()))
    found = gradient(model)["twice"]
    assert found.sources[0].tolist() == (3 * jnp.ones((4, 3))).tolist()
    assert found.sources[1] == 2.0


MISUSES: list[tuple[str, Callable[[Any], Any]]] = [
    ("+", lambda d: d + 1),
    ("@", lambda d: d @ X),
    ("an array was made of", lambda d: np.ones(3) / d),
    ("-", lambda d: -d),
    ("**", lambda d: d**2),
    ("<", lambda d: d < 0),
    ("==", lambda d: d == 0),
    ("[]", lambda d: d[0]),
    ("iteration", list),
    ("float", float),
    ("bool", bool),
    ("an array was made of", jnp.asarray),
    ("an array was made of", np.asarray),
    (".shape", lambda d: d.shape),
    (".dtype", lambda d: d.dtype),
    (".T", lambda d: d.T),
    (".sum", lambda d: d.sum()),
]


@pytest.mark.parametrize(("what", "use"), MISUSES)
def test_one_that_was_left_in_place(what: str, use: Callable[[Any], Any]) -> None:
    """Used as an array, it is a TypeError that says what to write, in traced functions, too."""
    for run in (use, pj.jit(use)):
        with pytest.raises(TypeError, match=r"pj\.resolved\(model\)") as caught:
            run(pj.Derived(jnp.transpose, W))
        assert what in str(caught.value)
        assert "transpose(f32[4,3])" in str(caught.value)


def test_it_does_not_look_like_an_array() -> None:
    """`hasattr` finds nothing of an array, and JAX's own functions refuse it in their own words."""
    derived: Any = pj.Derived(jnp.transpose, W)
    for name in ("shape", "dtype", "ndim", "T", "__array__", "__jax_array__", "astype"):
        assert not hasattr(derived, name)
    with pytest.raises(TypeError):
        jnp.dot(W, derived)
    assert derived == derived
    assert derived not in [None, "text", pj.Derived(jnp.transpose, W)]
    assert {derived: 1}[derived] == 1


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: pj.Derived(ANY, jnp.transpose), "takes a function first"),
        (lambda: pj.Derived(lambda: W.T), "has no sources"),
        (
            lambda: pj.Derived(functools.partial(jnp.add, W), W),
            r"partial\(add, f32\[4,3\]\), is no value",
        ),
        (lambda: pj.Derived(Holder(W).scaled, W), r"Holder\.scaled, is no value"),
        (lambda: pj.Derived(jnp.where, W, x=W), "x= of a derived leaf is configuration"),
        (lambda: pj.Derived(jnp.sum, W, axis=[0]), "axis= of a derived leaf is configuration"),
        (lambda: type("Sub", (pj.Derived,), {}), "has no subclasses"),
    ],
)
def test_what_can_be_no_derived_leaf(make: Callable[[], Any], text: str) -> None:
    """Arguments in another order, nothing to compute from, arrays that would be constants."""
    with pytest.raises(TypeError, match=text):
        make()


class Holder:
    """A class of nobody's."""

    def __init__(self, w: Any) -> None:
        self.w = w

    def scaled(self, x: Any) -> Any:
        return self.w * x


def test_an_error_of_the_function_names_the_leaf() -> None:
    """It is the function's own error, with a note that says which derived leaf it was."""
    with pytest.raises(TypeError) as caught:
        pj.resolved({"out": pj.Derived(jnp.reshape, W, (5, 5))})
    assert "Derived(reshape, f32[4,3], (5, 5))" in "".join(caught.value.__notes__)


@pytest.mark.parametrize("jit", [lambda f: f, pj.jit], ids=["eager", "jit"])
def test_derivatives_go_to_the_sources(jit: Any) -> None:
    """The gradient has the structure of the model, and the sum of all uses of the one weight."""
    model = tied()
    gradient = jit(pj.grad(loss))(model)
    assert type(gradient["out"]) is pj.Derived
    assert gradient["out"].sources[0] is gradient["embed"]
    np.testing.assert_allclose(gradient["embed"], jax.grad(plain_loss)(W), rtol=1e-6)
    assert pydag.dag_structure(gradient) == pydag.dag_structure(model)
    np.testing.assert_allclose(jit(pj.value_and_grad(loss))(model)[0], plain_loss(W), rtol=1e-6)


def test_vmap_scan_and_checkpoint() -> None:
    """A model with derived leaves is mapped, carried, scanned over and computed again."""
    weights = jnp.stack([W, 2 * W])
    models = {"embed": weights, "out": pj.Derived(jnp.transpose, weights)}
    expected = [float(plain_loss(w)) for w in weights]
    np.testing.assert_allclose(pj.vmap(loss)(models), expected, rtol=1e-6)
    last, losses = pj.scan(lambda c, m: (c, loss(m)), tied(), models)
    np.testing.assert_allclose(losses, expected, rtol=1e-6)
    assert last["out"].sources[0] is last["embed"]
    found = pj.grad(lambda m: pj.checkpoint(loss)(m))(tied())["embed"]
    np.testing.assert_allclose(found, jax.grad(plain_loss)(W), rtol=1e-6)


def test_a_model_that_is_built_anew_is_not_compiled_anew() -> None:
    """With functions of modules, methods and partials."""
    count: list[int] = []

    def f(model: Any) -> Any:
        count.append(1)
        return pj.resolved(model)["out"].sum()

    makers: list[Callable[[], Any]] = [
        lambda: jnp.transpose,
        lambda: functools.partial(jnp.sum, axis=0),
        lambda: Layer.scale,
    ]
    for make in makers:
        count.clear()
        compiled = pj.jit(f)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(6):
                compiled({"embed": W, "out": pj.Derived(make(), W)})
        assert len(count) == 1


class Layer:
    """Has a method that is no function of a module."""

    @staticmethod
    def scale(x: Any) -> Any:
        return 3 * x


def test_copies_and_pickles() -> None:
    """They keep the tie, the function and the structure."""
    model = tied()
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), pydag.dag_copy(model)):
        assert other["out"].sources[0] is other["embed"]
        assert pydag.dag_structure(other) == pydag.dag_structure(model)
    one = pj.Derived(functools.partial(jnp.sum, axis=0), W)
    again = pickle.loads(pickle.dumps(one))
    assert pydag.dag_structure(again) == pydag.dag_structure(one)
    assert copy.copy(one).sources[0] is W


def test_refs_are_read() -> None:
    """A source that is a ref gives its content at that time; writes to it count."""
    ref = jax.new_ref(W)
    model: Any = {"embed": ref, "out": pj.Derived(jnp.transpose, ref)}

    def step(model: Any) -> Any:
        first = pj.resolved(model)["out"][0, 1]
        model["embed"][...] = 10 + model["embed"][...]
        return first, pj.resolved(model)["out"][0, 1]

    assert [float(x) for x in pj.jit(step)(model)] == [3.0, 13.0]
    assert pj.resolved(model)["out"].tolist() == (10 + W).T.tolist()


def test_derive_from_has_the_value() -> None:
    """The inverse gives the source; a number becomes an array, which can be trained."""
    scale = pj.derive_from(jnp.exp, np.log, 0.5)
    assert isinstance(scale.sources[0], jax.Array)
    assert float(pj.resolved(scale)) == pytest.approx(0.5)
    lower = pj.derive_from(jnp.tril, lambda x: x, W, k=-1)
    assert pj.resolved(lower).tolist() == jnp.tril(W, -1).tolist()


def test_resolve_arguments_of_a_function() -> None:
    """Positional and keyword arguments are resolved together: what they share is computed once."""
    calls: list[Any] = []

    def note(x: Any) -> Any:
        calls.append(x)
        return 2 * x

    derived = pj.Derived(note, W)

    @pj.resolve_arguments
    def f(a: Any, *, b: Any) -> Any:
        """What it does."""
        return a is b["c"], a[0, 1]

    assert f(derived, b={"c": derived}) == (True, 2.0)
    assert len(calls) == 1
    assert (f.__name__, f.__doc__) == ("f", "What it does.")


CHANGES: dict[str, Callable[[Any], Any]] = {
    "args[0]['count']": lambda m: m.update(count=1),
    "args[0]['new']": lambda m: m.update(new=1),
    "args[0]['old']": lambda m: m.pop("old"),
    "args[0]['below']['embed']": lambda m: m["below"].update(embed=X),
    "args[0]['items'][1]": lambda m: m["items"].append(W),
}


@pytest.mark.parametrize("path", CHANGES)
def test_what_a_function_changes_in_a_copy_is_an_error(path: str) -> None:
    """Items and attributes of objects that lead to a derived leaf; it names the path."""
    below = tied()
    model = tied() | {"count": 0, "old": 1, "items": [below["out"]], "below": below}
    with pytest.raises(TypeError, match=re.escape(f"{path} was changed in a resolved copy")):
        pj.resolve_arguments(CHANGES[path])(model)


def test_what_holds_no_derived_leaf_is_the_callers() -> None:
    """It may be changed, and returned; a copy that is returned is the caller's object, too."""

    @pj.resolve_arguments
    def f(model: Any, more: Any) -> Any:
        model["log"].append(model["out"].shape)
        return {"model": model, "below": [model["below"]]}, more

    model, more = tied() | {"log": [], "below": tied()}, [W]
    found = f(model, more)
    assert found[0]["model"] is model
    assert found[0]["below"][0] is model["below"]
    assert found[1] is more
    assert model["log"] == [(3, 4)]
    assert type(model["out"]) is pj.Derived


class Tied(pj.Module, resolve=True):
    """A head that is the embedding transposed, a counter, and methods of all kinds."""

    def __init__(self) -> None:
        self.embed = W
        self.out = pj.Derived(jnp.transpose, self.embed)
        self.calls = jnp.zeros((), int)

    def count(self) -> None:
        self.calls = self.calls + 1

    def __call__(self, x: Any) -> Any:
        return self.head(jnp.tanh(x @ self.embed))

    def head(self, h: Any) -> Any:
        """The logits."""
        return h @ self.out

    def itself(self) -> Any:
        return self

    def _private(self) -> Any:
        return self.out

    @property
    def shown(self) -> Any:
        return self.out

    @staticmethod
    def alone(x: Any) -> Any:
        return x

    @classmethod
    def made(cls) -> Any:
        return cls


def test_a_module_that_resolves() -> None:
    """Its public methods see values; private ones, properties and class methods are as ever."""
    model = Tied()
    np.testing.assert_allclose(model(X), jnp.tanh(X @ W) @ W.T)
    assert model.head(W[:, :3]).shape == (4, 4)
    assert (Tied.head.__name__, Tied.head.__doc__) == ("head", "The logits.")
    assert model.itself() is model
    assert model._private() is model.shown is model.out
    assert (model.alone(1), model.made()) == (1, Tied)


@pytest.mark.parametrize("call", [lambda m: m.count(), pj.jit(Tied.count, update_argnums=0)])
def test_a_method_that_changes_a_resolved_module(call: Any) -> None:
    """An error, eagerly and traced: the change would be lost."""
    model = Tied()
    with pytest.raises(TypeError, match=r"self\.calls was changed in a resolved copy"):
        call(model)
    assert model.calls == 0


def test_modules_that_resolve_are_inherited_from() -> None:
    """A subclass resolves its own methods and those of mixins, unless it says False."""

    class Mixin:
        def mixed(self: Any) -> Any:
            return self.out.shape

    class Below(Mixin, Tied):
        def more(self) -> Any:
            return self.out.shape

        def head(self, h: Any) -> Any:
            return 2 * super().head(h)

    class Not(Below, resolve=False):
        def again(self) -> Any:
            return self.out

    below = Below()
    assert below.more() == below.mixed() == (3, 4)
    np.testing.assert_allclose(below(X), 2 * jnp.tanh(X @ W) @ W.T)
    assert type(Not().again()) is pj.Derived
    assert Not().more() == (3, 4)


def test_a_function_may_give_a_derived_leaf() -> None:
    """It is resolved as well."""
    model = {"out": pj.Derived(lambda w: pj.Derived(jnp.transpose, w), W)}
    assert pj.resolved(model)["out"].tolist() == W.T.tolist()
