# SPDX-License-Identifier: Apache-2.0
"""`vmap`, `shard_map` and shardings: one axis and one sharding for one object, along every path."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding, PartitionSpec
from jax_models import tied_under
from wrappers import MESH

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


def test_two_axes_for_one_object_are_cured_by_untie() -> None:
    """The error names `untie`, and with the whole argument untied there is none."""
    w = jnp.ones((2, 2))
    state = {"a": w, "b": w}
    add = jaxinterop.vmap(lambda s: s["a"] + s["b"], in_axes=({"a": 0, "b": None},))
    with pytest.raises(pydag.SharingError, match=r"pydag\.untie\(tree\) gives") as caught:
        add(state)
    assert "tree.copy" not in str(caught.value)
    assert add(pydag.untie(state)).shape == (2, 2, 2)


def test_what_jax_refuses() -> None:
    """Axes that don't fit are errors that say where, and for sizes too, with paths."""
    w = jnp.ones((2, 3))
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


P: Any = jax.sharding.PartitionSpec


tied = tied_under("a", "b", lambda: jnp.arange(4.0), name="net", function=jnp.sin)


def double(tree: Any) -> Any:
    """The tree with its arrays doubled."""
    assert tree["a"] is tree["b"]
    return {**tree, "a": (twice := 2 * tree["a"]), "b": twice}


def test_forms_of_the_decorator() -> None:
    """With a function, and with keywords alone; the name stays."""
    options = {"mesh": MESH, "in_specs": P("x"), "out_specs": P("x")}
    for mapped in (
        jaxinterop.shard_map(double, **options),
        jaxinterop.shard_map(**options)(double),
    ):
        out = mapped(tied())
        assert out["a"] is out["b"]
        assert (out["a"].tolist(), out["name"]) == ([0.0, 2.0, 4.0, 6.0], "net")
        assert out["function"] is jnp.sin
        assert mapped.__name__ == "double"


def test_prefixes() -> None:
    """Of the tuple of arguments and of the result; a list of specs is one, too."""
    mapped = jaxinterop.shard_map(
        lambda t, x: (double(t), {"x": x}),
        mesh=MESH,
        in_specs=[{"a": P("x"), "b": P("x"), "name": None, "function": P()}, P()],
        out_specs=(P("x"), {"x": P()}),
    )
    out, more = mapped(tied(), jnp.ones(3))
    assert out["a"] is out["b"]
    assert more["x"].tolist() == [1.0, 1.0, 1.0]


def test_specs_that_do_not_fit() -> None:
    """`ValueError` that says where."""
    with pytest.raises(ValueError, match=r"in_specs must be a tree prefix [\s\S]* at args\b"):
        jaxinterop.shard_map(double, mesh=MESH, in_specs=(P(), P()), out_specs=P())(tied())
    with pytest.raises(ValueError, match=r"out_specs must be a tree prefix [\s\S]* at result\b"):
        jaxinterop.shard_map(double, mesh=MESH, in_specs=P(), out_specs=(P(), P()))(tied())


AUTO = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
SPLIT = NamedSharding(AUTO, PartitionSpec("x"))  # type: ignore[no-untyped-call]  # JAX gives it no types
WHOLE = NamedSharding(AUTO, PartitionSpec())  # type: ignore[no-untyped-call]  # JAX gives it no types


def weights() -> dict[str, Any]:
    """One weight, used twice, and a bias."""
    w = jnp.ones((2, 2))
    return {"a": w, "b": w, "bias": jnp.zeros(2)}


def step(params: Any, x: Any, n: int = 1) -> Any:
    """Keeps the structure, and returns something else beside it."""
    return pydag.dag_map(lambda p: p - n * x, params), x


def test_prefixes_of_shardings() -> None:
    """In and out, as deep as one likes; a shared array is one input and one output."""
    shardings: dict[str, Any] = {
        "in_shardings": ({"a": SPLIT, "b": SPLIT, "bias": WHOLE}, None),
        "out_shardings": ({"a": SPLIT, "b": SPLIT, "bias": WHOLE}, None),
    }
    jitted = jaxinterop.jit(step, **shardings)
    out, _ = jitted(weights(), 1.0)
    assert out["a"] is out["b"]
    assert (out["a"].sharding, out["bias"].sharding) == (SPLIT, WHOLE)
    assert out["a"].tolist() == [[0.0, 0.0], [0.0, 0.0]]
    lowered = jitted.lower(weights(), 1.0)
    program = lowered.as_text()
    assert program[: program.index("->")].count("%arg") == 3
    assert lowered.out_info[0]["a"] is lowered.out_info[0]["b"]
    out, _ = lowered.compile()(weights(), 1.0)
    assert out["a"] is out["b"]


def test_shardings_that_do_not_fit() -> None:
    """`ValueError` that says where."""
    jitted = jaxinterop.jit(step, in_shardings=({"a": SPLIT, "c": WHOLE}, None))
    with pytest.raises(
        ValueError, match=r"jit in_shardings must be a tree prefix [\s\S]* at args\[0\]"
    ):
        jitted(weights(), 1.0)


def three(m: Any, n: Any, x: Any) -> Any:
    """Results of the arrays among three arguments."""
    return [y * 2 for y in (m, n, x) if hasattr(y, "shape")]


BESIDE_STATIC: dict[str, tuple[dict[str, Any], Any]] = {
    "one for each other": ({"static_argnums": 1}, (WHOLE, SPLIT)),
    "a list": ({"static_argnums": 1}, [WHOLE, SPLIT]),
    "one for all": ({"static_argnums": 1}, (WHOLE, WHOLE, SPLIT)),
    "too few": ({"static_argnums": 1}, (SPLIT,)),
    "None for the static one": ({"static_argnums": 1}, (SPLIT, None, SPLIT)),
    "None": ({"static_argnums": 1}, (None, SPLIT)),
    "a single one": ({"static_argnums": 1}, SPLIT),
    "negative": ({"static_argnums": -2}, (WHOLE, SPLIT)),
    "negative, for all": ({"static_argnums": -2}, (WHOLE, WHOLE, SPLIT)),
    "by name": ({"static_argnames": "n"}, (SPLIT, WHOLE)),
    "by name, for all": ({"static_argnames": "n"}, (SPLIT, WHOLE, WHOLE)),
    "two static": ({"static_argnums": (0, 1)}, (SPLIT,)),
    "two static, for all": ({"static_argnums": (0, 1)}, (SPLIT, SPLIT, SPLIT)),
    "all static": ({"static_argnums": (0, 1, 2)}, (SPLIT,)),
    "donated": ({"static_argnums": 1, "donate_argnums": 0}, (WHOLE, SPLIT)),
}


@pytest.mark.parametrize("name", BESIDE_STATIC)
def test_shardings_beside_static_arguments(name: str) -> None:
    """One for each argument that isn't static; any other number is an error, as in JAX."""
    options, shardings = BESIDE_STATIC[name]

    def outcome(lib: Any) -> Any:
        static = options.get("static_argnums", 1)
        numbers = {i % 3 for i in (static if isinstance(static, tuple) else (static,))}
        args = [2 if i in numbers else jnp.ones((2, 2)) for i in range(3)]
        try:
            out = lib.jit(three, in_shardings=shardings, **options)(*args)
        except ValueError:
            return ValueError
        donated = [x.is_deleted() for x in args if isinstance(x, jax.Array)]
        return [str(x.sharding) for x in out], donated

    assert outcome(jaxinterop) == outcome(jax)


def test_a_tree_of_shardings_beside_a_static_argument() -> None:
    """A prefix of an argument counts as one."""
    f: Any = jaxinterop.jit(
        lambda n, p, x: (p["a"] * n, x),
        static_argnums=0,
        in_shardings=({"a": SPLIT, "b": None}, SPLIT),
    )
    p = {"a": jnp.ones((2, 2)), "b": jnp.ones(2)}
    assert f(3, p, jnp.ones(2))[0].tolist() == [[3.0, 3.0], [3.0, 3.0]]
    with pytest.raises(ValueError, match="2 entries, and 1 arguments"):
        f(3, p)
