"""`jaxinterop.vmap`: one axis for one object, along every path."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import pydag
from pydag import jaxinterop


def test_between_arguments_and_keywords() -> None:
    """One identity table spans all arguments; keyword arguments are mapped over axis 0."""

    def f(x: Any, y: Any, *, z: Any) -> Any:
        assert x is y[0]
        assert z["k"] is x
        return x + y[0] + z["k"]

    w = jnp.arange(3.0)
    assert jaxinterop.vmap(f)(w, [w], z={"k": w}).tolist() == [0.0, 3.0, 6.0]


def test_nested_axes() -> None:
    """Axes as a tree prefix, in and out; what isn't mapped is None."""
    x, y, c = jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.arange(5.0)

    def f(params: Any, c: Any) -> Any:
        assert params["x"].shape == (2,)
        assert params["more"][0].shape == (4,)
        return {"x": params["x"], "y": params["more"][0], "c": c}

    mapped = jaxinterop.vmap(
        f, in_axes=({"x": 1, "more": 0}, None), out_axes={"x": 1, "y": 0, "c": None}
    )
    out = mapped({"x": x, "more": [y]}, c)
    shapes = {name: array.shape for name, array in out.items()}
    assert shapes == {"x": (2, 3), "y": (3, 4), "c": (5,)}
    expected = jax.vmap(f, ({"x": 1, "more": 0}, None), {"x": 1, "y": 0, "c": None})(
        {"x": x, "more": [y]}, c
    )
    assert all((out[name] == expected[name]).all() for name in out)


def test_shared_containers_under_a_prefix() -> None:
    """A shared container gets its axes once; a deeper prefix at one of its paths must agree."""
    layer = [jnp.ones((2, 3)), jnp.ones((2, 3))]
    tree = {"a": layer, "b": layer}
    out = jaxinterop.vmap(lambda t: t, in_axes=({"a": [1, 1], "b": 1},), out_axes=1)(tree)
    assert out["a"] is out["b"]
    with pytest.raises(pydag.SharingError) as caught:
        jaxinterop.vmap(lambda t: t, in_axes=({"a": [1, 0], "b": 1},))(tree)
    assert str(caught.value).splitlines()[1:3] == [
        "  args[0]['a'][1] is mapped over axis 0",
        "  args[0]['b'][1], the same object, is mapped over axis 1",
    ]


def test_numbers_in_a_shared_container() -> None:
    """Equal numbers are leaves of their own, each with its place."""
    layer = [2.0, 2.0, jnp.arange(3.0)]
    out = jaxinterop.vmap(
        lambda t: t["a"][0] * t["b"][2], ({"a": [None, None, 0], "b": layer_axes},)
    )({"a": layer, "b": layer})
    assert out.tolist() == [0.0, 2.0, 4.0]


layer_axes = [None, None, 0]


def test_axes_made_by_a_map() -> None:
    """A prefix may be of registered classes, and shared as the model is."""

    @pydag.register_fields
    class Layer:
        def __init__(self, w: Any) -> None:
            self.w = w
            self.name = "layer"

    layer = Layer(jnp.ones((2, 3)))
    model = {"a": layer, "b": layer, "c": Layer(jnp.ones((3, 2)))}
    axes = pydag.dag_map(lambda x: x if isinstance(x, str) else x.shape.index(2), model)
    mapped = jaxinterop.vmap(lambda m: m, in_axes=(axes,), out_axes=axes)
    out = mapped(model)
    assert out["a"] is out["b"]
    assert (out["a"].w.shape, out["c"].w.shape, out["c"].name) == ((2, 3), (3, 2), "layer")
    axes["c"] = axes["a"]  # the prefix may share more than the model
    assert mapped({**model, "c": Layer(jnp.ones((2, 3)))})["c"].w.shape == (2, 3)
    both = {"a": axes["a"], "b": Layer(1), "c": 0}
    with pytest.raises(pydag.SharingError, match=r"args\[0\]\['b'\].w, the same object, is mapped"):
        jaxinterop.vmap(lambda m: m, in_axes=(both,))(model)


def test_one_axis_counted_from_both_ends() -> None:
    """Axes 1 and -1 of one matrix are one axis, in arguments and in results."""
    w, layer = jnp.arange(6.0).reshape(2, 3), [jnp.ones((2, 3))]
    out = jaxinterop.vmap(lambda p: p["a"] + p["b"], in_axes=({"a": 1, "b": -1},))({"a": w, "b": w})
    assert out.shape == (3, 2)
    out = jaxinterop.vmap(lambda x, y: x[0] + y[0], in_axes=(-2, 0))(layer, layer)
    assert out.shape == (2, 3)
    both = jaxinterop.vmap(lambda x: (x, [x]), in_axes=1, out_axes=(1, -1))(w)
    assert both[0] is both[1][0]
    assert both[0].tolist() == w.tolist()
    with pytest.raises(pydag.SharingError, match="mapped over axis 0 and mapped over axis -1"):
        jaxinterop.vmap(lambda x: (x, x), out_axes=(0, -1))(w)


def test_axes_from_the_end_are_found_for_each_array() -> None:
    """Axes 0 and -1 of a shared vector are one, of a shared matrix two: also at the second call."""
    mapped = jaxinterop.vmap(lambda tree: tree["a"] + tree["b"], in_axes=({"a": 0, "b": -1},))
    vector, matrix = jnp.arange(3.0), jnp.ones((3, 3))
    assert mapped({"a": vector, "b": vector}).tolist() == [0, 2, 4]
    with pytest.raises(pydag.SharingError, match="mapped over axis -1"):
        mapped({"a": matrix, "b": matrix})


def test_identity_of_nodes_only() -> None:
    """With `identity="nodes"` one array may be mapped over two axes, as in JAX."""
    w = jnp.arange(4.0).reshape(2, 2)
    out = jaxinterop.vmap(lambda x, y: (x, y), (0, 1), identity="nodes")(w, w)
    assert (out[1] == w.T).all()


def test_static_leaves() -> None:
    """They need no axis, and stand in the result where the function put them."""

    def f(model: Any) -> Any:
        assert model["name"] == "net"
        return {**model, "w": model["activation"](model["w"])}

    model = {"w": jnp.arange(-1.0, 2.0), "name": "net", "activation": jax.nn.relu, "no": None}
    out = jaxinterop.vmap(f)(model)
    assert (out["name"], out["activation"], out["no"]) == ("net", jax.nn.relu, None)
    assert out["w"].tolist() == [0.0, 0.0, 1.0]
    out = jaxinterop.vmap(f, out_axes={"w": 0, "name": None, "activation": None, "no": None})(model)
    assert out["activation"] is jax.nn.relu


def test_axis_names_and_sizes() -> None:
    """`axis_name`, `axis_size` and `spmd_axis_name` reach JAX."""
    lax: Any = jax.lax
    mapped = jaxinterop.vmap(lambda p: p["a"] / lax.psum(p["b"], "i"), axis_name="i")
    assert mapped({"a": jnp.ones(4), "b": jnp.ones(4)}).tolist() == [0.25] * 4
    assert jaxinterop.vmap(lambda: jnp.ones(2), axis_size=3)().shape == (3, 2)
    assert jaxinterop.vmap(lambda x: x, spmd_axis_name="i")(jnp.ones(2)).shape == (2,)


def test_what_jax_refuses() -> None:
    """Axes that don't fit are errors that say where, and for sizes too, with paths."""
    w = jnp.ones((2, 3))
    with pytest.raises(ValueError, match=r"map args\[0\] over axis 2, and its shape is \(2, 3\)"):
        jaxinterop.vmap(lambda x: x, in_axes=2)(w)
    with pytest.raises(
        ValueError, match=r"vmap in_axes must .* \['b'\], got key\(s\): \['a'\][\s\S]* at args\[0\]"
    ):
        jaxinterop.vmap(lambda p: p["a"], in_axes=({"b": 0},))({"a": w})
    with pytest.raises(ValueError, match="2 entries for 1 positional"):
        jaxinterop.vmap(lambda p: p, in_axes=(0, 0))(w)
    with pytest.raises(ValueError, match=r"out_axes must be a tree prefix [\s\S]* at result\b"):
        jaxinterop.vmap(lambda p: p, out_axes=[0, 0])([w])
    with pytest.raises(ValueError, match=r"inconsistent sizes[\s\S]*args\[0\]\['v'\]"):
        jaxinterop.vmap(lambda p: p)({"v": jnp.ones(3), "w": jnp.ones(2)})
    with pytest.raises(
        TypeError, match=r"vmap in_axes must be an int, None, or a tuple .* got '0'"
    ):
        jaxinterop.vmap(lambda p: p, in_axes="0")
    with pytest.raises(TypeError, match="vmap in_axes must be an int"):
        jaxinterop.vmap(lambda p: p, in_axes=({"a": "0"},))({"a": w})
    with pytest.raises(TypeError, match="vmap out_axes has '0' for an array"):
        jaxinterop.vmap(lambda p: p, out_axes={"a": "0"})({"a": w})
    with pytest.raises(ValueError, match="at least one"):
        jaxinterop.vmap(lambda p: p)({})


def test_random_keys() -> None:
    """Typed keys are arrays."""
    keys = jax.random.split(jax.random.key(0), 3)
    tree = {"a": keys, "b": keys}
    out = jaxinterop.vmap(lambda t: jax.random.normal(t["a"]) - jax.random.normal(t["b"]))(tree)
    assert out.tolist() == [0.0, 0.0, 0.0]


def test_sixty_levels_of_sharing() -> None:
    """`t = [t, t]`, and axes that are shared alike, are checked without unfolding."""
    tree: Any = jnp.ones(2)
    axes: Any = 0
    for _ in range(60):
        tree, axes = [tree, tree], [axes, axes]
    out = jaxinterop.vmap(lambda t: t, in_axes=(axes,), out_axes=axes)(tree)
    for _ in range(60):
        assert out[0] is out[1]
        out = out[0]
    assert out.shape == (2,)


def test_a_dict_is_no_prefix_of_a_module() -> None:
    """The error says how the prefix of an object is made, by `dag_mask`; what it says works."""

    class Scale(jaxinterop.Module):
        def __init__(self) -> None:
            self.w, self.b = jnp.ones((2, 3)), jnp.ones(3)

    cure = r"pydag.dag_map\(lambda chosen: 0 if chosen else None, pydag.dag_mask\(obj, 'w'\)\)"
    scale = Scale()
    with pytest.raises(ValueError, match=cure):
        jaxinterop.vmap(lambda scale: scale.w + scale.b, in_axes=({"w": 0},))(scale)
    with pytest.raises(ValueError, match="if chosen else None"):
        jaxinterop.vmap(lambda x: Scale(), out_axes={"w": 0, "b": None})(jnp.ones(2))
    axes = pydag.dag_map(lambda chosen: 0 if chosen else None, pydag.dag_mask(scale, "w"))
    assert jaxinterop.vmap(lambda scale: scale.w + scale.b, in_axes=(axes,))(scale).shape == (2, 3)
