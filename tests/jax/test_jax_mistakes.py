# SPDX-License-Identifier: Apache-2.0
"""Mistakes that people make: the error names the place, and a cure that works."""

import collections
import functools
import re
import threading
import types
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import optree
import pytest

import pydag
import pydag.jaxinterop as pj

X = jnp.arange(2.0)
Partial: Any = jax.tree_util.Partial


class Pair(tuple[Any]):
    """A subclass of tuple, which JAX doesn't open."""


class NamedPair(NamedTuple):
    """The same as a named tuple."""

    x: Any


@pydag.register_fields
class Net:
    """A model, which can be hashed."""

    def __init__(self) -> None:
        self.w = X

    def value(self) -> Any:
        """Its array."""
        return self.w


class Parameter:
    """An array's wrapper that says how to make an array of it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __jax_array__(self) -> Any:
        return self.value


NET = Net()

CURED: dict[str, tuple[Any, str, Any, Any]] = {  # what, the cure's text, what cures, how it is read
    "a tuple": (Pair((X,)), r"Make Pair a NamedTuple", NamedPair(X), lambda p: p[0]),
    "a partial": (
        functools.partial(jnp.add, X), "tree_util.Partial in the place", Partial(jnp.add, X),
        lambda p: p(0.0),
    ),
    "a partial of an object": (
        functools.partial(max, NET), "tree_util.Partial in the place", Partial(max, NET),
        lambda p: p.args[0].w,
    ),
    "a method": (
        NET.value, r"tree_util.Partial\(function, object\)", Partial(Net.value, NET), lambda p: p(),
    ),
    "a slice": (
        slice(NET), "start, stop and step as a tuple", (None, NET, None), lambda p: p[1].w,
    ),
    "a method of a list": ([X].append, "Pass the list, and call", [X], lambda p: p[0]),
    "a frozenset": (frozenset([NET]), "a list, a tuple or a dict", [NET], lambda p: p[0].w),
    "a set": ({1, 2}, r"Pass a frozenset\.", frozenset({1, 2}), lambda p: X * len(p) / 2),
    "a set of objects": ({NET}, r"Pass a list\.", [NET], lambda p: p[0].w),
    "bytes": (bytearray(b"ab"), r"Pass bytes\.", b"ab", lambda p: X * len(p) / 2),
    "a view": ({"a": X}.values(), r"list\(", [X], lambda p: p[0]),
    "a mapping": (types.MappingProxyType({"a": X}), r"dict\(", {"a": X}, lambda p: p["a"]),
    "an iterator": (iter([X]), r"list\(", [X], lambda p: p[0]),
    "memory": (memoryview(b"ab"), r"bytes\(", b"ab", lambda p: X * len(p) / 2),
    "objects": (np.array([X, None], object), r"tolist", [X, None], lambda p: p[0]),
    "an array by a method": (Parameter(X), r"jnp\.asarray", jnp.asarray(X), lambda p: p),
}  # fmt: skip


@pytest.mark.parametrize("what", CURED)
def test_following_the_cure(what: str) -> None:
    """The error names it, and what it says is then taken, in `jit` and by `grad`."""
    refused, text, cured, read = CURED[what]
    with pytest.raises(TypeError, match=r"^args\[0\]\['held'\]") as caught:
        pj.jit(lambda t: read(t["held"]))({"held": refused})
    assert re.search(text, str(caught.value))
    assert str(caught.value).count("Partial") <= 1
    assert pj.jit(lambda t: read(t["held"]))({"held": cured}).tolist() == [0.0, 1.0]

    def loss(t: Any) -> Any:
        return (t["w"] * read(t["held"])).sum()

    assert pj.grad(loss)({"held": cured, "w": jnp.ones(2)})["w"].tolist() == [0.0, 1.0]


class Unregistered:
    """An object that holds an array."""

    def __init__(self) -> None:
        self.w = X

    def value(self) -> Any:
        """Its array."""
        return self.w


@pytest.mark.parametrize(
    ("make", "wrap"),
    [
        (lambda obj: functools.partial(max, obj), lambda obj: Partial(max, obj)),
        (lambda obj: obj.value, lambda obj: Partial(type(obj).value, obj)),
        (lambda obj: Pair((obj,)), lambda obj: NamedPair(obj)),
        (lambda obj: obj, lambda obj: obj),
    ],
)
def test_two_cures_at_once(make: Any, wrap: Any) -> None:
    """Where an object in a partial isn't registered, either, the error says both."""

    class Late(Unregistered):
        pass

    with pytest.raises(TypeError, match=r"register_fields\(Late\)"):
        pj.jit(lambda t: 1.0)(make(Late()))
    pydag.register_fields(Late)
    assert jax.tree.leaves(pj.Dag(wrap(Late())))[0].tolist() == [0.0, 1.0]


def test_registering_a_subclass_of_tuple() -> None:
    """The other cure: it is opened by functions."""

    class Late(tuple[Any]):
        pass

    with pytest.raises(TypeError, match="register_pydag_node"):
        pj.jit(lambda t: t[0])(Late((X,)))
    pydag.register_pydag_node(Late, lambda p: (tuple(p), None), lambda _, parts: Late(parts))
    assert pj.jit(lambda t: t[0] * 2)(Late((X,))).tolist() == [0.0, 2.0]


def test_slices_are_values() -> None:
    """Slices come in as they are on each Python, and equal ones are one."""
    seen: list[Any] = []

    @pj.jit
    def function(t: Any) -> Any:
        seen.append(t["cut"])
        return t["x"][t["cut"]]

    for start in (1, 1, 0):
        function({"x": X, "cut": slice(start, 2)})
    assert seen == [slice(1, 2), slice(0, 2)]


def test_names_don_t_make_a_view() -> None:
    """A class is known by what it is: one with "view" in its name is a class like others."""

    class Overview:
        pass

    with pytest.raises(TypeError, match=r"register_module\(Overview\)"):
        pj.jit(lambda t: 1.0)(Overview())


def test_what_can_t_be_registered() -> None:
    """For a class that can't be changed, registering is no cure; a constant is."""
    lock = threading.Lock()
    with pytest.raises(TypeError, match="lock, a class that is not registered") as caught:
        pj.jit(lambda t: t["x"])({"x": X, "held": lock})
    assert "register_" not in str(caught.value)
    assert pj.jit(lambda t: t["x"], static=type(lock))({"x": X, "held": lock})[1] == 1.0


def test_a_counter_is_opened() -> None:
    """Containers that pydag knows are no leaves."""
    tree = {"x": X, "n": collections.OrderedDict(a=1)}
    assert pj.jit(lambda t: t["n"]["a"] + t["x"])(tree).tolist() == [1.0, 2.0]


class Model(pj.Module):
    """A tied model with a number, which is configuration."""

    def __init__(self) -> None:
        self.embed = self.head = jnp.ones((4, 2))
        self.bias, self.rate = jnp.zeros(4), 0.1

    def __call__(self, x: Any) -> Any:
        return self.embed[x] @ self.head.T + self.bias


class Plain:
    """Holds an array, and nobody registered it."""

    def __init__(self) -> None:
        self.w = jnp.ones(2)


def loss(model: Any, x: Any) -> Any:
    return jnp.sum(model(x) ** 2)


def names() -> dict[str, Any]:
    """What the mistakes are made with."""
    w, x, model, tx = jnp.ones(2), jnp.arange(3), Model(), optax.adam(1e-3)
    optimizer = pj.optimizer(tx)
    tied = {"a": w, "b": w, "c": jnp.zeros(3)}
    spec, gradient = pydag.dag_structure(tied), pj.grad(loss)(model, x)
    state = optimizer.init(model)
    return {**globals(), **locals(), "jax": jax, "optree": optree}


# What is written by mistake, and a pattern of the text: where it is wrong, and what to write.
MISTAKES = {
    # names
    "pydag.jit": r"pydag has no 'jit'; did you mean 'pydag.jaxinterop.jit'",
    "pydag.tree_map": r"pydag has no 'tree_map'; did you mean 'dag_map'",
    "pj.tree_map": r"did you mean 'pydag.jaxinterop.tree.map'",
    "pj.filter_jit": r"did you mean 'pydag.jaxinterop.jit'",
    "pj.adam(1e-3)": r"no 'adam': that is optax's\n.*optimizer\(optax\.adam\(\.\.\.\)\)",
    "pj.new_ref(w)": r"no 'new_ref': write jax\.new_ref",
    "pj.pmap(loss)": r"no 'pmap': write shard_map, or jit with shardings",
    # keywords
    "pj.jit(loss, static_argnum=1)": r"jit\(\).*'static_argnum'. Did you mean 'static_argnums'",
    "pj.jit(loss, donate=True)": r"jit\(\).*'donate'. Did you mean 'donate_argnums'",
    "pydag.dag_map(abs, tied, wrt='a')": r"dag_map\(\).*'wrt'. Did you mean 'where'",
    "pydag.view(tied, depth='2')": r"depth must be None or an integer, got '2'",
    "class A(pj.Module, frozen=True): pass": r"no class keyword 'frozen'.*dataclass\(frozen=True\)",
    "pj.grad(loss, 'embed')": r"'embed' can't be.*integer\n.*selected by wrt=",
    # functions
    "pj.jit(loss(model, x))": r"can't be called: f32\[\]\n  Pass the function itself",
    "pj.grad(loss, argnums=5)(model, x)": r"argument 5.*called with 2 positional arguments",
    "pj.grad(lambda n: 2.0 * n)(3)": r"args\[0\] is int.*Use allow_int=True",
    "pj.grad(lambda m: (m['a'].sum(), 1))(tied)": r"pair of its value.*has_aux=True",
    "pj.scan(lambda c, _: ({'a': c['a']}, 1), tied, length=3)": r"carry.*missing key.*at carry",
    "pj.vmap(abs, in_axes=2)(w)": r"map args\[0\] over axis 2, and its shape is \(2,\)",
    "pj.vmap(lambda m: 1, in_axes=({'a': 0, 'b': None, 'c': None},))(tied)": (
        r"args\[0\]\['a'\] is mapped over axis 0\n.*\['b'\].*is not mapped\n.*one axis"
    ),
    "pj.jit(lambda m: m, static=\"['a']\")(tied)": r"args\[0\]\['a'\] is an array.*leave arrays",
    "pj.jit(lambda m, a: m, static_argnums=1)(tied, w)": r"args\[1\] is a static.*a hashable value",
    "pj.Derived(jnp.transpose, w) + 1": r"`\+` was used on transpose.*pj.resolved\(model\)",
    "pj.Derived(model.embed, jnp.transpose)": r"takes a function first.*write Derived\(f, source\)",
    "pj.Dag(tied)['a']": r"TypeError: .*not subscriptable\n .* write dag.tree\['a'\]",
    "pj.Derived(jnp.transpose, 'embed')": r"from objects, not from their names: 'embed'\n.*itself",
    "pj.switch(0, abs, w)": r"sequence of functions.*got one function\n  Write: switch\(index",
    # selections
    "pj.grad(loss, wrt='embed', argnums=1)(model, w)": r"'embed'\n  it has one leaf alone",
    "pj.grad(loss, wrt='layers*')(model, x)": r"'layers\*'\n  the nearest that exist: bias, embed",
    "pj.grad(loss, wrt=model.embed)(model, x)": r"got f32\[4,2\]\n  Select a leaf by its path",
    "pj.grad(loss, wrt=('embed', 'bias'))(model, x)": r"got 'embed'\n  Several patterns are a list",
    "pj.grad(loss, wrt={'embed': True})(model, x)": r"prefix of booleans doesn't fit.*at tree",
    "pydag.dag_mask(tied, 'embed')": r"no path matches the pattern 'embed'\n.*exist: \['a'\]",
    "pydag.dag_mask('*', tied)": r"leaves of a prefix must be booleans, got f32\[2\]",
    "optimizer.init('embed')": r"init takes the model, got 'embed'\n.*optimizer\(tx, wrt=",
    "pj.optimizer(tx, wrt='z').init(model)": r"no path matches the pattern 'z'\n.*exist: bias",
    # trees
    "pydag.dag_map(tied, jnp.sin)": r"Swap them: dag_map\(f, tree\)",
    "pj.tree.map(tied, abs)": r"TypeError: .*takes the function first and then the tree.*\n  Swap",
    "pydag.dag_map(jnp.add, tied, {**tied, 'b': w + 1})": r"tree\['a'\] and tree\['b'\].*retie",
    "pydag.dag_unflatten(optree.tree_structure(tied), [1, 2])": r"PyTreeSpec.*\n.*dag_structure\(",
    "pydag.tie(tied, 'a', 'b')": r"got 'a'\n  Write \('a',\) for one entry",
    "pydag.tie(tied, ('a',), ('z',))": r"nothing at the path \('z',\)\n.*children 'a', 'b', 'c'",
    "pydag.tie(tied, ('a',), ('c',))": r"one shape\n.*tree\['a'\]: f32\[2\].*\n.*dag_replace",
    "pydag.dag_replace(tied, w + 0, w)": r"doesn't hold the object.*\n.*the very object, such as",
    "pydag.dag_update({'a': w}, {'a': jnp.ones(3)})": r"tree\['a'\].*\n.*f32\[2\]|f32\[3\]",
    # classes
    "pydag.dag_map(lambda x: 2 * x, [Plain()])": r"register_fields\(Plain\).*mapping tree\[0\]",
    "pydag.register_module(model)": r"Expected a class, got an instance of Model",
    # optimizers
    "pj.optimizer(optax.adam)": r"such as optax.adam\(1e-3\), got <function adam>",
    "optimizer.init(Model)": r"init takes the model, got .*Model",
    "optimizer.update(gradient, optimizer.update(gradient, state, model), model)": (
        r"update\(gradient, state, model\) takes a state .*, got \(.*Write state = opt.init"
    ),
    "optimizer.update(gradient, tx.init(gradient), model)": r"takes a state that init.*state.inner",
    "optimizer.update(gradient, model, state)": r"takes a state that init.*, got .*Model",
    "pj.apply_updates(model, (1.0, gradient))": r"got type.*tuple.*apply_updates\(model, updates\)",
    "s = pj.optimizer(tx); s.update(jax.grad(lambda m: m['a'].sum())(tied), s.init(tied), tied)": (
        r"tree\['a'\] and tree\['b'\] are one object.*Take pydag.jaxinterop's grad"
    ),
    # files
    "pj.save('model.safetensors')": r"there is nothing to save\n  Write: save\(path, tree\)",
    "pj.save('nowhere/m.safetensors', tied)": r"no folder 'nowhere' to write.*\n.*os.makedirs",
    "pj.save(tied, 'm.safetensors')": r"TypeError: .*comes first.*\n  Swap them: save\(path, tree",
    "pydag.files.load(tied, 'm.safetensors')": r"TypeError: .*\n  Swap them: load\(path, like\)",
    "pj.jit(lambda m: pj.save('m.safetensors', m))(tied)": (
        r"TypeError: .*tree\['a'\] is traced.*outside of it"
    ),
    "pj.save('m.safetensors', [w, print])": r"at tree\[1\].*\n.*structure=False",
    "pj.save('m.safetensors', model); pj.load('m.safetensors', Model)": (
        r"got the class Model\n  Make one first, such as Model\("
    ),
    "pj.save('m.safetensors', tied); pj.load('m.safetensors', {'z': w})": (
        r"missing: z\n  surplus: a, c\n  strict=False"
    ),
    "pj.save('m.safetensors', tied); pj.load('m.safetensors', only='z')": (
        r"no path matches the pattern 'z'\n  the nearest that exist: \['a'\]"
    ),
    "Path('m.pt').write_bytes(b'PK\\x03\\x04'); pj.load('m.pt')": r"'m.pt'.*zip file, such as",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_text_names_the_place_and_the_cure(
    mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is an error, or a warning, whose text has both."""
    monkeypatch.chdir(tmp_path)
    text = "nothing was raised"
    try:
        exec(mistake, names())
    except Exception as error:
        named = f"{type(error).__name__}: {error}"
        text = "\n".join([named, *getattr(error, "__notes__", [])])
    assert re.search(MISTAKES[mistake], text, re.DOTALL), text
    assert "is traced" not in text or not list(tmp_path.iterdir())  # nothing is written then


def test_a_name_that_is_asked_for_is_an_attribute_error() -> None:
    """`hasattr` answers, although `from pydag import jit` has an error of its own."""
    assert not hasattr(pydag, "jit")
    assert not hasattr(pj, "tree_map")
