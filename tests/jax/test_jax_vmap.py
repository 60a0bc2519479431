# SPDX-License-Identifier: Apache-2.0
"""`jaxinterop.vmap`: one axis for one object, along every path."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import pydag
from pydag import jaxinterop


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
