# SPDX-License-Identifier: Apache-2.0
"""Functions that make masks or labels: what they get, and the paths that they see."""

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest
from jax.tree_util import keystr

import pydag
import pydag.jaxinterop as pj


class Layer(pj.Module):
    def __init__(self) -> None:
        self.w, self.b, self.rate = jnp.ones((2, 2)), jnp.ones(2), 0.5


class Net(pj.Module):
    def __init__(self) -> None:
        layer = Layer()
        self.body, self.head = [layer, layer], Layer()
        self.tied, self.n, self.key = layer.w, jnp.int32(3), jax.random.key(0)


def a_dict() -> dict[str, Any]:
    layer = {"w": jnp.ones((2, 2)), "b": jnp.ones(2)}
    return {"body": [layer, layer], "head": {"w": jnp.ones((2, 2)), "b": layer["b"]}, "n": 3}


def modules_in_a_dict() -> dict[str, Any]:
    layer = Layer()
    return {"body": [layer, layer], "head": Layer()}


MODELS = [Net, a_dict, modules_in_a_dict]


def unfolded_paths(tree: Any, path: str = "") -> set[str]:
    """By hand: the path to each array or number of these models, at each of its places."""
    if isinstance(tree, dict):
        return set().union(*(unfolded_paths(x, f"{path}[{k!r}]") for k, x in tree.items()))
    if isinstance(tree, list):
        return set().union(*(unfolded_paths(x, f"{path}[{i}]") for i, x in enumerate(tree)))
    if isinstance(tree, pj.Module):
        parts = vars(tree).items()
        return set().union(*(unfolded_paths(x, f"{path}.{k}") for k, x in parts if k != "rate"))
    return {path}


def seen_by(function: Callable[[Any], Any], model: Any) -> list[Any]:
    """What a function that makes a mask gets, in `init` and in `update`."""
    got: list[Any] = []

    def mask(model: Any) -> Any:
        got.append(function(model))
        return True

    opt = pj.optimizer(optax.masked(optax.sgd(1.0), mask))
    opt.update(pj.tree.map(jnp.zeros_like, model), opt.init(model), model)
    return got


WAYS: dict[str, Callable[[Any], Any]] = {
    "jax": lambda m: [keystr(path) for path, _ in jax.tree.leaves_with_path(m)],
    "pj.tree": lambda m: [keystr(path) for path, _ in pj.tree.leaves_with_path(m)],
    "pydag": lambda m: [
        text
        for text, leaf in zip(
            (a.codify("") for a in pydag.dag_accessors(m)), pydag.dag_leaves(m), strict=True
        )
        if not text.endswith(".rate")
    ],
}


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("way", WAYS)
def test_a_function_sees_every_place(way: str, make: Callable[[], Any]) -> None:
    """Functions of JAX's, of `pj.tree` and of pydag's see each leaf at each of its paths."""
    for found in seen_by(WAYS[way], make()):
        assert len(found) == len(set(found))
        assert set(found) == unfolded_paths(make())
        assert set(found) >= {keystr(path) for path, _ in pj.tree.leaves_with_path(make())}


@pytest.mark.parametrize("make", MODELS)
def test_a_function_gets_the_model_as_it_is(make: Callable[[], Any]) -> None:
    """It is of the model's own classes, with its configuration and with what isn't trained."""
    model = make()

    def look(got: Any) -> bool:
        assert type(got) is type(model)
        assert pj.tree.structure(pydag.dag_map(lambda x: x, got)) is not None
        head = got.head if isinstance(got, Net) else got["head"]
        assert type(head) is (dict if make is a_dict else Layer)
        if isinstance(head, Layer):
            assert head.rate == 0.5
        if isinstance(got, Net):
            assert int(got.n) == 3
            assert jnp.issubdtype(got.key.dtype, jax.dtypes.prng_key)
        return True

    assert seen_by(look, model) == [True, True]


def decayed(model: Any, mask: Any) -> Any:
    opt = pj.optimizer(optax.add_decayed_weights(1.0, mask=mask))
    return opt.update(pj.tree.map(jnp.zeros_like, model), opt.init(model), model)[0]


def last(path: Any) -> Any:
    return getattr(path[-1], "name", getattr(path[-1], "key", None))


MASKS: dict[str, Callable[[Any], Any]] = {
    "JAX's last key": lambda m: jax.tree.map_with_path(lambda p, _: last(p) != "b", m),
    "JAX's text": lambda m: jax.tree.map_with_path(
        lambda p, _: not keystr(p).endswith((".b", "['b']")), m
    ),
    "pj.tree": lambda m: pj.tree.map_with_path(lambda p, _: last(p) != "b", m),
    "pydag": lambda m: pydag.dag_map_with_path(lambda p, _: p[-1] != "b", m),
    "by shape": lambda m: jax.tree.map(lambda x: jnp.ndim(x) > 1, m),
    "dag_mask": lambda m: pydag.dag_mask(m, ["*.w", "*['w']"]),
}


@pytest.mark.parametrize("make", [Layer, modules_in_a_dict, a_dict])
@pytest.mark.parametrize("how", MASKS)
@pytest.mark.parametrize("is_function", [True, False])
def test_weights_alone_decay(how: str, make: Callable[[], Any], is_function: bool) -> None:
    """The mask that every tutorial writes says the same as a function, and as a tree."""
    model = make()
    updates = decayed(model, MASKS[how] if is_function else MASKS[how](model))
    layer = updates if make is Layer else updates["body"][1]
    w, b = (layer["w"], layer["b"]) if isinstance(layer, dict) else (layer.w, layer.b)
    assert (float(w[0, 0]), float(b[0])) == (1.0, 0.0)


def test_labels_from_a_selection_have_one_answer_for_a_tied_leaf() -> None:
    """`dag_mask` in a label function selects a leaf by any of its paths, with no conflict."""
    w = jnp.ones(2)
    model = {"a": w, "b": w, "c": jnp.ones(2)}

    def labels(model: Any) -> Any:
        return jax.tree.map(lambda yes: "x" if yes else "z", pydag.dag_mask(model, "['a']"))

    groups = {"x": optax.sgd(1.0), "z": optax.set_to_zero()}
    opt = pj.optimizer(optax.partition(groups, labels))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        updates, _ = opt.update(pj.tree.map(jnp.ones_like, model), opt.init(model), model)
    assert updates["a"] is updates["b"]
    assert (float(updates["a"][0]), float(updates["c"][0])) == (-1.0, 0.0)


def test_a_function_that_takes_arrays_alone() -> None:
    """Where it fails for a number, it gets the model once more, with None there."""
    updates = decayed(a_dict(), lambda m: jax.tree.map(lambda x: x.ndim > 1, m))
    assert float(updates["head"]["w"][0, 0]) == 1.0
    with pytest.raises(ZeroDivisionError):
        decayed(a_dict(), lambda m: 1 // 0)


def test_sharing_that_unfolds_without_end() -> None:
    """A model with astronomically many paths is given with its ties."""
    model: Any = [jnp.ones(2), jnp.ones(2)]
    for _ in range(60):
        model = [model, model]
    updates = decayed(model, lambda m: pydag.dag_map(lambda _: True, m))
    assert pydag.dag_leaves(updates)[0].tolist() == [1.0, 1.0]


def test_the_key_of_a_leaf_of_a_module() -> None:
    """It has the last part of the path as its name, and the whole as text."""
    paths = [path for path, _ in jax.tree.leaves_with_path({"net": Net()})]
    keys = [path[-1] for path in paths]
    assert [key.name for key in keys] == ["b", "w", "b", "w", "key", "n"]
    assert [str(key) for key in keys[:3]] == [".body[0].b", ".body[0].w", ".head.b"]
    assert keystr(paths[0]) == "['net'].body[0].b"
    assert keystr(paths[0], simple=True, separator="/") == "net/body[0].b"
    assert len(set(keys)) == len(keys)
    assert pickle.loads(pickle.dumps(keys[0])) == keys[0]
    assert pickle.loads(pickle.dumps(keys[0])).name == "b"


def unknown_release(make: Callable[[Any], Any], keep: str) -> Any:
    """`optax.masked` as a release of optax might write it that calls the mask in another way."""
    code = f"""
def masked(inner, {keep}):
    import optax
    def init(params):
        return inner.init(params)
    def update(updates, state, params=None):
        flags = {keep}(updates) if callable({keep}) else {keep}
        return jax.tree.map(lambda m, u: 2 * u if m else u, flags, updates), state
    return optax.GradientTransformation(init, update)
"""
    names: dict[str, Any] = {"jax": jax, "__name__": "optax.transforms._new"}
    exec(code, names)
    return names["masked"](optax.identity(), make)


def is_at_the_decoder(model: Any) -> Any:
    return jax.tree_util.tree_map_with_path(lambda path, _: "decoder" in keystr(path), model)


def test_a_mask_in_a_release_of_optax_that_is_not_known() -> None:
    """Under a name that pydag doesn't know, a function that makes a mask is refused."""
    w = jnp.ones(2)
    model = {"decoder": w, "embed": w}
    for keep, is_known in (("mask", True), ("wanted", False)):
        opt = pj.optimizer(unknown_release(is_at_the_decoder, keep))
        state = opt.init(model)
        if is_known:
            with pytest.warns(UserWarning, match="True counts"):
                found = opt.update(model, state, model)[0]
            assert found["embed"].tolist() == [2, 2]
            continue
        with pytest.raises(TypeError, match=r"is_at_the_decoder makes a mask(.|\n)*'wanted'"):
            opt.update(model, state, model)
    # What makes no mask is called as it is, and gets a Dag.
    double = optax.stateless(lambda updates, params: jax.tree.map(lambda u: 2 * u, updates))
    assert pj.optimizer(double).update(model, pj.optimizer(double).init(model), model)[0][
        "embed"
    ].tolist() == [2, 2]
