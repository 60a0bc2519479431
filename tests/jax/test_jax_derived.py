# SPDX-License-Identifier: Apache-2.0
"""`Derived`: how derived leaves are resolved, saved, shown and explained."""

from __future__ import annotations

import copy
import functools
import json
import pickle
import re
import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file

import pydag
import pydag.jaxinterop as pj
from pydag.files.save import STRUCTURE

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
    """An object at many places, also within others, is computed once; its one value is shared."""
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
    """The numbers aren't traced, so that they may be a shape, and not trained, as a module's."""
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
    """The error is the function's own, with a note that says which derived leaf it was."""
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
    """Functions of modules, methods and partials are found by value."""
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
    """Copies and pickles keep the tie, the function and the structure."""
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
    for _ in range(4):
        lower = pj.Derived(jnp.negative, lower)
    assert repr(lower) == "Derived(negative, negative(negative(negative(...))))"


def test_wrappers_of_paramax_are_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where paramax is imported, `resolved` unwraps its wrappers, too."""

    class Wrapper:
        def unwrap(self) -> str:
            return "unwrapped"

    paramax = types.SimpleNamespace(AbstractUnwrappable=Wrapper)
    monkeypatch.setitem(sys.modules, "paramax", cast(Any, paramax))
    assert pj.resolved([Wrapper(), W]) == ["unwrapped", W]


def test_resolve_arguments_of_a_generator() -> None:
    """A generator would run when nothing is resolved any more, so it is a TypeError with a cure."""

    def items(model: Any) -> Any:
        yield model

    with pytest.raises(TypeError, match=r"Write model = pj\.resolved\(model\)"):
        pj.resolve_arguments(items)


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
    """The object may be changed, and returned; a returned copy is the caller's object, too."""

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
    """The module's public methods see values; private ones, properties, class methods don't."""
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
    """That leaf is resolved as well."""
    model = {"out": pj.Derived(lambda w: pj.Derived(jnp.transpose, w), W)}
    assert pj.resolved(model)["out"].tolist() == W.T.tolist()


def scaled(x: Any, by: float = 2.0) -> Any:
    return by * x


class Maker:
    """Has functions."""

    @staticmethod
    def static(x: Any) -> Any:
        return x


class Model(pj.Module):
    """A derived leaf, and what it is computed from."""

    def __init__(self, f: Any = jnp.transpose, **kwargs: Any) -> None:
        self.embed = W
        self.out = pj.Derived(f, self.embed, **kwargs)


FUNCTIONS: list[Any] = [
    jnp.transpose, jnp.exp, jnp.add, jnp.linalg.inv, jax.nn.relu, jax.nn.softplus, jax.nn.softmax,
    jax.lax.stop_gradient, np.exp, np.transpose, functools.partial(jnp.sum, axis=0),
    functools.partial(jnp.clip, max=functools.partial(jnp.clip, 1.0).args[0]),
]  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS)
def test_array_functions_of_jax_and_numpy_come_back(path: Path, f: Any) -> None:
    """Sources are written once, the function by its name; ties, structure and `f` come back."""
    model = Model(f)
    pj.save(path, model)
    assert list(load_file(path)) == ["embed"]
    for again in (pj.load(path), pj.load(path, model), pydag.files.load(path)):
        assert type(again.out) is pj.Derived
        assert again.out.sources[0] is again.embed
        assert pydag.dag_structure(again) == pydag.dag_structure(model)


def test_keyword_arguments_are_written(path: Path) -> None:
    """Numbers, text and tuples may be such arguments."""
    pj.save(path, Model(jnp.transpose, axes=(1, 0)))
    assert pj.load(path).out.kwargs == {"axes": (1, 0)}


def test_functions_of_ones_own_are_named_by_the_reader(path: Path) -> None:
    """A load that wasn't given one says which function it is, where, and what to do."""
    pj.save(path, {"model": [Model(scaled, by=3.0)]})
    for load in (pj.load, pydag.files.load):
        with pytest.raises(ValueError, match=r"at tree\['model'\]\[0\]\.out") as caught:
            load(path)
        assert f"{__name__}:scaled" in str(caught.value)
        assert "functions=[scaled]" in str(caught.value)
        assert "like=" in str(caught.value)
        with pytest.raises(ValueError, match="scaled"):
            load(path, functions=[Maker.static])
        for functions in (scaled, [scaled, Maker.static]):
            again = load(path, functions=functions)["model"][0]
            assert again.out.f is scaled
    assert pj.resolved(pj.load(path, functions=scaled))["model"][0].out[0, 1] == 3.0


def test_partials_of_ones_own_functions(path: Path) -> None:
    """The function in it is what is named."""
    pj.save(path, Model(functools.partial(scaled, by=3.0)))
    with pytest.raises(ValueError, match="functions="):
        pj.load(path)
    assert pj.load(path, functions=scaled).out.f.keywords == {"by": 3.0}


def test_like_has_functions_of_its_own(path: Path) -> None:
    """Nothing has to be named; another function than the file's warns, and the code's counts."""
    pj.save(path, Model(scaled))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pj.load(path, Model(scaled)).out.f is scaled
    with pytest.warns(UserWarning, match=rf"tree\.out\.f: '{__name__}:scaled' in the file"):
        again = pj.load(path, Model(jnp.flip))
    assert again.out.f is jnp.flip
    assert again.out.sources[0] is again.embed


def test_a_lambda_is_refused_with_path_and_cure(path: Path) -> None:
    """Nothing is written. Without structure it is saved, and `like` has the function."""
    model = {"a": [Model(lambda x: x.T)]}
    with pytest.raises(TypeError, match=r"at tree\['a'\]\[0\]\.out") as caught:
        pj.save(path, model)
    assert "lambda" in str(caught.value)
    assert "define it in a module" in str(caught.value)
    assert not path.exists()
    pj.save(path, model, structure=False)
    assert pj.load(path, model)["a"][0].out.f is model["a"][0].out.f


@pytest.mark.parametrize(
    "name",
    [
        *("os:system", "builtins:eval", "numpy:load", "numpy:memmap", "numpy:savetxt"),
        *("numpy:frompyfunc", "jax.numpy:vectorize", "jax.numpy:load", "jax:pure_callback"),
        *("jax.numpy:linalg", "numpy:lib.format.read_array", "jax.numpy:", ":transpose", ""),
        *("jax.numpy:transpose.__call__", "pydag:clear_caches", "no_such_module:f"),
    ],
)
def test_no_other_function_is_found_for_a_file(path: Path, name: str) -> None:
    """A file that names anything else is refused, and nothing is imported or run for it."""
    pj.save(path, Model())
    pj.load(path)  # which imports what any file needs
    text = pydag.dag_structure(Model()).to_json()
    bad = text.replace("jax.numpy:transpose", name)
    assert bad != text
    with pytest.raises(ValueError, match="function"):
        pydag.PyDagSpec.from_json(bad)
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + size])
    header["__metadata__"][STRUCTURE] = header["__metadata__"][STRUCTURE].replace(
        "jax.numpy:transpose", name
    )
    new = json.dumps(header).encode()
    path.write_bytes(len(new).to_bytes(8, "little") + new + raw[8 + size :])
    before = set(sys.modules)
    for load in (pj.load, pydag.files.load):
        with pytest.raises(ValueError, match="function"):
            load(path)
    assert set(sys.modules) - before <= {"pydag.registry.function_names"}


def test_a_view_shows_a_call() -> None:
    """A derived leaf is one row, with its sources; where one is a container, it has rows."""
    model: Any = {
        "embed": W,
        "out": pj.Derived(jnp.transpose, W, axes=(1, 0)),
        "nested": pj.Derived(jnp.exp, pj.Derived(jnp.log, jnp.ones(2)), 3),
        "tree": pj.Derived(scaled, {"a": W}),
        "partial": pj.Derived(functools.partial(scaled, by=3), W),
    }
    shown = str(pydag.view(model)).splitlines()
    assert shown[:-1] == [
        "dict",
        "├─ ['embed']: &0 f32[4,3]",
        "├─ ['nested']: exp(log(f32[2]), 3)",
        "├─ ['out']: transpose(*0, axes=(1, 0))",
        "├─ ['partial']: partial(scaled, by=3)(*0)",
        "└─ ['tree']: scaled(…)",
        "   └─ .sources: tuple",
        "      └─ [0]: dict",
        "         └─ ['a']: *0",
    ]
    assert " 3 leaves, " in shown[-1]
    assert "transpose(*0, axes=(1, 0))" in pydag.view(model)._repr_html_()
    assert "transpose(*0" in pydag.view(model).dot()


def test_a_difference_is_explained_by_the_function() -> None:
    """The errors about another function, and a tie that is cut, have the paths."""
    first = pydag.dag_structure(Model())
    other = pydag.explain(first, pydag.dag_structure(Model(jnp.flip)))
    assert "tree.out" in other
    assert "transpose" in other
    assert "flip" in other
    model = Model()
    model.embed = W + 1
    cut = pydag.explain(first, pydag.dag_structure(model))
    assert cut.startswith("tree.embed and tree.out.sources[0]")
    assert ".out: transpose(*0)" in str(cut.side_by_side())
