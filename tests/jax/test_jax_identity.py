# SPDX-License-Identifier: Apache-2.0
"""Which arguments have one table of identities; one axis and one sharding for each object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding, PartitionSpec
from jax_models import tied_under
from wrappers import MESH

import pydag
import pydag.jaxinterop as pj

X = jnp.arange(3.0)
Function = Callable[..., Any]


def tied() -> dict[str, Any]:
    """One array at two places."""
    w = jnp.arange(3.0) + 1
    return {"a": w, "b": w}


def on_a_mesh(fun: Function) -> Function:
    """`shard_map` over one device."""
    mesh = jax.make_mesh((1,), ("i",), (jax.sharding.AxisType.Auto,))
    spec: Any = jax.P
    mapped: Function = pj.shard_map(fun, mesh=mesh, in_specs=spec(), out_specs=spec())
    return mapped


ONE_TABLE: dict[str, Callable[[Function], Function]] = {
    "jit": pj.jit,
    "checkpoint": pj.checkpoint,
    "eval_shape": lambda f: lambda *args: pj.eval_shape(f, *args),
    "make_jaxpr": lambda f: lambda *args: pj.make_jaxpr(f)(*args),
    "shard_map": on_a_mesh,
    "cond": lambda f: lambda *args: pj.cond(True, f, f, *args),
    "switch": lambda f: lambda *args: pj.switch(0, [f, f], *args),
    "vmap": lambda f: lambda *args: pj.vmap(f)(*args),
}


@pytest.mark.parametrize("name", ONE_TABLE)
def test_one_table_spans_all_arguments(name: str) -> None:
    """An array that two arguments hold is one inside."""
    tree, seen = tied(), []

    def fun(t: Any, more: Any) -> Any:
        seen.append((t["a"] is t["b"], t["a"] is more[0]))
        return {"a": t["a"] * 2}

    ONE_TABLE[name](fun)(tree, [tree["a"]])
    assert set(seen) == {(True, True)}


@pytest.mark.parametrize("name", [name for name in ONE_TABLE if name != "make_jaxpr"])
def test_a_result_has_a_table_of_its_own(name: str) -> None:
    """What is one object in the result is one for the caller."""

    def fun(t: Any) -> Any:
        twice = t["a"] * 2
        return {"one": twice, "same": [twice], "other": t["a"] * 2}

    out = ONE_TABLE[name](fun)(tied())
    assert out["one"] is out["same"][0]
    assert out["one"] is not out["other"]


DERIVATIVES: dict[str, Callable[[Function, Any, Any], Any]] = {
    "grad": lambda f, p, rest: pj.grad(f)(p, rest),
    "value_and_grad": lambda f, p, rest: pj.value_and_grad(f)(p, rest)[1],
    "grad in jit": lambda f, p, rest: pj.jit(pj.grad(f))(p, rest),
    "jacrev": lambda f, p, rest: pj.jacrev(f)(p, rest),
    "jacfwd": lambda f, p, rest: pj.jacfwd(f)(p, rest),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_what_is_also_another_argument_is_constant_there(name: str) -> None:
    """`target = params`: only the first one has a derivative, as in JAX."""
    params = tied()
    found = DERIVATIVES[name](lambda p, t: (p["a"] * t["b"]).sum(), params, params)
    assert found["a"].tolist() == [1.0, 2.0, 3.0]
    assert found["a"] is found["b"]


def test_two_arguments_that_it_is_by_have_the_sum() -> None:
    """Both gradients hold the sum, as one object."""
    params = tied()
    one, two = pj.grad(lambda p, q: (p["a"] * q["b"]).sum(), argnums=(0, 1))(params, params)
    assert one["a"].tolist() == [2.0, 4.0, 6.0]
    assert one["a"] is two["b"]


def test_arguments_of_two_axes_have_nothing_in_common() -> None:
    """Axes of `vmap` that are counted from both ends are one, also for arguments by name."""
    square = jnp.ones((2, 2))
    is_one = lambda x, y: (x[0] is y[0]) & jnp.isfinite(x[0]).all()  # noqa: E731 (it is short)
    for axes, expected in (((0, 0), True), ((0, 1), False), ((1, -1), True), ((0, None), False)):
        assert bool(pj.vmap(is_one, in_axes=axes)([square], [square]).all()) is expected
    assert bool(pj.vmap(is_one, in_axes=1)([square], y=[square]).any()) is False


CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "dict": lambda x: {"n": x},
    "list": lambda x: [x],
    "nested": lambda x: {"n": [x]},
    "tuple": lambda x: (x,),
    "array": lambda x: x,
}


@pytest.mark.parametrize("kind", CONTAINERS)
@pytest.mark.parametrize(
    "axes",
    [(0, None, None), (None, 0, 0), (1, 0, 0), (0, 1, 1), (0, -1, -1), (0, {"st": 0, "X": 0}, 0)],
    ids=str,
)
@pytest.mark.parametrize("has_third", [True, False])
def test_a_group_of_axes_is_one_tree(kind: str, axes: Any, has_third: bool) -> None:
    """What two arguments of `vmap` share doesn't depend on what a third one holds."""
    x, held = jnp.ones((2, 2)), CONTAINERS[kind](jnp.ones((2, 2)))
    third = x if has_third else jnp.ones((2, 2))
    seen = []

    def f(x: Any, a: Any, b: Any) -> Any:
        seen.append((a["st"] is b["st"], x is a["X"]))
        return jnp.sum(x)

    one, other = {"st": held, "X": x}, {"st": held, "X": x}
    pj.vmap(f, in_axes=axes)(third, one, other)
    assert seen == [(axes[1] == axes[2] and kind != "tuple", False)]


def test_what_a_mapped_function_changes_in_a_group() -> None:
    """A change of a container is seen in the other argument of its axes, as in Python."""

    def f(x: Any, a: Any, b: Any) -> Any:
        a["st"]["n"] = a["st"]["n"] + 1
        return b["st"]["n"]

    x, st = jnp.ones((2, 2)), {"n": jnp.float32(1)}
    for first in (x, x + 0):
        out = pj.vmap(f, in_axes=(0, None, None))(first, {"st": st, "X": x}, {"st": st})
        assert out.tolist() == [2, 2]


@pytest.mark.parametrize("is_jitted", [False, True])
def test_groups_of_axes_give_what_jax_gives(is_jitted: bool) -> None:
    """Values of arguments of several axes, by position and by name, with shared arrays."""
    w, v = jnp.arange(6.0).reshape(2, 3), jnp.arange(4.0).reshape(2, 2) + 1

    def f(a: Any, b: Any, c: Any, *, d: Any, name: str = "f") -> Any:
        return {"sum": a["w"].sum() * b["w"] + c[0].sum(), "d": d["w"] * a["v"].sum()}

    def call(vmap: Any) -> Any:
        mapped = vmap(f, in_axes=(0, {"w": None, "v": 1}, -1), out_axes={"sum": 1, "d": 0})
        p = {"w": w, "v": v}
        return mapped(p, p, [v], d={"w": p["w"]})

    wanted = call(jax.vmap)
    found = pj.jit(call, static_argnums=0)(pj.vmap) if is_jitted else call(pj.vmap)
    assert jax.tree.map(lambda x: x.tolist(), found) == jax.tree.map(lambda x: x.tolist(), wanted)


def test_a_ref_in_arguments_of_two_axes() -> None:
    """A ref is one object where no axis maps it; else there is an error with both paths."""
    ref = jax.new_ref(jnp.arange(2.0))
    mapped = pj.vmap(
        lambda r, s: r["r"][...] * (r["r"] is s[0]), in_axes=({"r": None}, None), axis_size=2
    )
    assert mapped({"r": ref}, [ref]).tolist() == [[0, 1], [0, 1]]
    for axes in ((0, None), (None, 0), ({"r": 0}, 0)):
        with pytest.raises(
            pydag.SharingError, match=r"args\[0\]\['r'\] is [\s\S]*args\[1\]\[0\], the"
        ):
            pj.vmap(lambda r, s: r["r"][...], in_axes=axes, axis_size=2)({"r": ref}, [ref])
    assert pj.vmap(lambda r, s: r["r"][...] + s[0][...])({"r": ref}, [ref]).tolist() == [0, 2]


def test_scan_has_a_table_for_the_carry_and_one_for_what_is_scanned() -> None:
    """An array in both is two in the body."""
    seen = []

    def body(carry: Any, x: Any) -> Any:
        seen.append((carry["c"] is x["x"], x["x"] is x["y"]))
        return carry, None

    ones = jnp.ones(())
    pj.scan(body, {"c": ones}, {"x": X, "y": X})
    assert set(seen) == {(False, True)}


def test_tuples_are_values() -> None:
    """Each array to which tuples alone lead is a variable of its own at each place."""
    s = jnp.float32(3.0)
    product = lambda x, y: x * y  # noqa: E731 (it is short)
    assert pj.grad(product, argnums=(0, 1))(s, s) == (3.0, 3.0)
    assert pj.grad(lambda t: t[0] * t[1][0])((s, (s,))) == (3.0, (3.0,))
    assert pj.jacfwd(product, argnums=(0, 1))(s, s) == (3.0, 3.0)
    zero = jnp.zeros(())
    assert pj.scan(lambda c, _: ((c[0] + 1, c[1]), None), (zero, zero), None, 3)[0] == (3.0, 0.0)
    assert pj.fori_loop(0, 3, lambda i, c: (c[0] + 1, c[1]), (zero, zero)) == (3.0, 0.0)
    assert pj.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (zero, zero)) == (3.0, 0.0)
    assert pj.cond(True, lambda x: (x, x), lambda x: (x, x + 1), s) == (3.0, 3.0)
    assert pj.scan(lambda c, x: (c + x[0] * x[1], None), zero, (X, X))[0] == 5.0


def test_results_of_rules_have_no_identity() -> None:
    """A rule gets one cotangent for each place, whatever holds it."""

    @pj.custom_vjp
    def twice(x: Any) -> Any:
        return [x, x]

    twice.defvjp(lambda x: ([x, x], None), lambda _, g: (g[0] + 10 * g[1],))
    assert pj.grad(lambda x: twice(x)[0] + twice(x)[1])(jnp.float32(1.0)) == 11.0


SHARDED = jax.sharding.SingleDeviceSharding(jax.devices()[0])

TREATMENTS: dict[str, tuple[Function, tuple[str, str]]] = {
    "in_axes": (
        lambda t: pj.vmap(lambda t: 0.0, in_axes=({"a": 0, "b": None},))(t),
        ("mapped over axis 0", "not mapped"),
    ),
    "donate_argnums": (
        lambda t: pj.jit(lambda x, y: 0.0, donate_argnums=0)([t["a"]], [t["b"]]),
        ("donated", "kept"),
    ),
    "in_shardings": (
        lambda t: pj.jit(lambda t: 0.0, in_shardings=({"a": SHARDED, "b": None},))(t),
        ("SingleDeviceSharding", "left to JAX"),
    ),
}


@pytest.mark.parametrize("name", TREATMENTS)
def test_one_object_gets_one_treatment(name: str) -> None:
    """Two treatments are an error with both paths, both treatments, and the cure."""
    call, (one, other) = TREATMENTS[name]
    with pytest.raises(pydag.SharingError) as caught:
        call(tied())
    text = str(caught.value)
    first, second = ("[0][0]", "[1][0]") if name == "donate_argnums" else ("['a']", "['b']")
    assert f"{first} is " in text
    assert f"{second}, the same object, is " in text
    assert one in text
    assert other in text
    assert "cop" in text


def test_axes_of_results() -> None:
    """A tree of axes for the result; one object has one axis, from whichever end."""
    x = jnp.ones((2, 3))
    out = pj.vmap(lambda x: {"a": x, "b": x.sum()}, in_axes=1, out_axes={"a": 1, "b": 0})(x)
    assert (out["a"].shape, out["b"].shape) == ((2, 3), (3,))
    both = pj.vmap(lambda x: [x, x], in_axes=1, out_axes=[1, -1])(x)
    assert both[0] is both[1]
    with pytest.raises(pydag.SharingError, match="axis 0 and mapped over axis -1"):
        pj.vmap(lambda x: [x, x], out_axes=[0, -1])(x)


LOOPS: dict[str, Callable[[Function, Any], Any]] = {
    "scan": lambda body, c: pj.scan(lambda c, _: (body(c), None), c, None, length=2)[0],
    "fori_loop": lambda body, c: pj.fori_loop(0, 2, lambda _, c: body(c), c),
    "while_loop": lambda body, c: pj.while_loop(lambda c: c["a"].sum() < 20, body, c),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_keep_the_sharing(name: str) -> None:
    """What the body keeps one is one after; what comes out shared may fill two places."""
    traces = []

    def body(c: Any) -> Any:
        traces.append(c["a"] is c["b"])
        new = c["a"] * 2
        return {"a": new, "b": new}

    out = LOOPS[name](body, tied())
    assert out["a"] is out["b"]
    assert traces == [True]
    apart = LOOPS[name](body, {"a": X + 1, "b": X + 1})
    assert apart["b"].tolist() == out["b"].tolist()


def test_branches_return_one_structure() -> None:
    """What differs in more than sharing is a `TypeError` that says the place."""
    with pytest.raises(TypeError, match=r"first: true_fun(.|\n)*list of 1\n(.|\n)*same structure"):
        pj.cond(True, lambda x: [x], lambda x: x, X)
    with pytest.raises(TypeError, match=r"branches\[1\](.|\n)*'name'\](.|\n)*'one'\n.*'two'"):
        pj.switch(0, [lambda x: {"name": "one"}, lambda x: {"name": "two"}], X)


def test_an_operand_by_name() -> None:
    """None given by name is an operand, as in JAX."""
    assert pj.cond(True, lambda x: x is None, lambda x: x is None, operand=None)
    assert pj.switch(1, [lambda x: 1, lambda x: [x, 2]][1:], operand=None) == [None, 2]


def test_shared_containers_under_a_prefix() -> None:
    """A shared container gets its axes once; a deeper prefix at one of its paths must agree."""
    layer = [jnp.ones((2, 3)), jnp.ones((2, 3))]
    tree = {"a": layer, "b": layer}
    out = pj.vmap(lambda t: t, in_axes=({"a": [1, 1], "b": 1},), out_axes=1)(tree)
    assert out["a"] is out["b"]
    with pytest.raises(pydag.SharingError) as caught:
        pj.vmap(lambda t: t, in_axes=({"a": [1, 0], "b": 1},))(tree)
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
    mapped = pj.vmap(lambda m: m, in_axes=(axes,), out_axes=axes)
    out = mapped(model)
    assert out["a"] is out["b"]
    assert (out["a"].w.shape, out["c"].w.shape, out["c"].name) == ((2, 3), (3, 2), "layer")
    axes["c"] = axes["a"]  # the prefix may share more than the model
    assert mapped({**model, "c": Layer(jnp.ones((2, 3)))})["c"].w.shape == (2, 3)
    both = {"a": axes["a"], "b": Layer(1), "c": 0}
    with pytest.raises(pydag.SharingError, match=r"args\[0\]\['b'\].w, the same object, is mapped"):
        pj.vmap(lambda m: m, in_axes=(both,))(model)


def test_two_axes_for_one_object_are_cured_by_untie() -> None:
    """The error names `untie`, and with the whole argument untied there is none."""
    w = jnp.ones((2, 2))
    state = {"a": w, "b": w}
    add = pj.vmap(lambda s: s["a"] + s["b"], in_axes=({"a": 0, "b": None},))
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
        pj.vmap(lambda p: p["a"], in_axes=({"b": 0},))({"a": w})
    with pytest.raises(ValueError, match="2 entries for 1 positional"):
        pj.vmap(lambda p: p, in_axes=(0, 0))(w)
    with pytest.raises(ValueError, match=r"out_axes must be a tree prefix [\s\S]* at result\b"):
        pj.vmap(lambda p: p, out_axes=[0, 0])([w])
    with pytest.raises(ValueError, match=r"inconsistent sizes[\s\S]*args\[0\]\['v'\]"):
        pj.vmap(lambda p: p)({"v": jnp.ones(3), "w": jnp.ones(2)})


def test_sixty_levels_of_sharing() -> None:
    """`t = [t, t]`, and axes that are shared alike, are checked without unfolding."""
    tree: Any = jnp.ones(2)
    axes: Any = 0
    for _ in range(60):
        tree, axes = [tree, tree], [axes, axes]
    out = pj.vmap(lambda t: t, in_axes=(axes,), out_axes=axes)(tree)
    for _ in range(60):
        assert out[0] is out[1]
        out = out[0]
    assert out.shape == (2,)


def test_a_dict_is_no_prefix_of_a_module() -> None:
    """The error says how the prefix of an object is made, by `dag_mask`; what it says works."""

    class Scale(pj.Module):
        def __init__(self) -> None:
            self.w, self.b = jnp.ones((2, 3)), jnp.ones(3)

    cure = r"pydag.dag_map\(lambda chosen: 0 if chosen else None, pydag.dag_mask\(obj, 'w'\)\)"
    scale = Scale()
    with pytest.raises(ValueError, match=cure):
        pj.vmap(lambda scale: scale.w + scale.b, in_axes=({"w": 0},))(scale)
    with pytest.raises(ValueError, match="if chosen else None"):
        pj.vmap(lambda x: Scale(), out_axes={"w": 0, "b": None})(jnp.ones(2))
    axes = pydag.dag_map(lambda chosen: 0 if chosen else None, pydag.dag_mask(scale, "w"))
    assert pj.vmap(lambda scale: scale.w + scale.b, in_axes=(axes,))(scale).shape == (2, 3)


P: Any = jax.sharding.PartitionSpec
tied_row = tied_under("a", "b", lambda: jnp.arange(4.0), name="net", function=jnp.sin)


def double(tree: Any) -> Any:
    """The tree with its arrays doubled."""
    assert tree["a"] is tree["b"]
    return {**tree, "a": (twice := 2 * tree["a"]), "b": twice}


def test_forms_of_the_decorator() -> None:
    """The decorator takes a function, or keywords alone; the name stays."""
    options = {"mesh": MESH, "in_specs": P("x"), "out_specs": P("x")}
    for mapped in (
        pj.shard_map(double, **options),
        pj.shard_map(**options)(double),
    ):
        out = mapped(tied_row())
        assert out["a"] is out["b"]
        assert (out["a"].tolist(), out["name"]) == ([0.0, 2.0, 4.0, 6.0], "net")
        assert out["function"] is jnp.sin
        assert mapped.__name__ == "double"


def test_prefixes() -> None:
    """A prefix is one of the tuple of arguments or of the result; a list of specs is one, too."""
    mapped = pj.shard_map(
        lambda t, x: (double(t), {"x": x}),
        mesh=MESH,
        in_specs=[{"a": P("x"), "b": P("x"), "name": None, "function": P()}, P()],
        out_specs=(P("x"), {"x": P()}),
    )
    out, more = mapped(tied_row(), jnp.ones(3))
    assert out["a"] is out["b"]
    assert more["x"].tolist() == [1.0, 1.0, 1.0]


def test_specs_that_do_not_fit() -> None:
    """`ValueError` that says where."""
    with pytest.raises(ValueError, match=r"in_specs must be a tree prefix [\s\S]* at args\b"):
        pj.shard_map(double, mesh=MESH, in_specs=(P(), P()), out_specs=P())(tied_row())
    with pytest.raises(ValueError, match=r"out_specs must be a tree prefix [\s\S]* at result\b"):
        pj.shard_map(double, mesh=MESH, in_specs=P(), out_specs=(P(), P()))(tied_row())


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
    """Shardings may be as deep as one likes; a shared array is one input and one output."""
    shardings: dict[str, Any] = {
        "in_shardings": ({"a": SPLIT, "b": SPLIT, "bias": WHOLE}, None),
        "out_shardings": ({"a": SPLIT, "b": SPLIT, "bias": WHOLE}, None),
    }
    jitted = pj.jit(step, **shardings)
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
    jitted = pj.jit(step, in_shardings=({"a": SPLIT, "c": WHOLE}, None))
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

    assert outcome(pj) == outcome(jax)


def test_a_named_static_argument_beside_shardings() -> None:
    """A static argument may be named where there are shardings, though JAX's own jit refuses it."""
    options: Any = {"static_argnames": "n", "in_shardings": (SPLIT,)}
    out = pj.jit(lambda x, n: x * n, **options)(jnp.ones((2, 2)), n=2)
    assert out.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    with pytest.raises(ValueError, match="kwargs"):
        jax.jit(lambda x, n: x * n, **options)(jnp.ones((2, 2)), n=2)


def test_a_tree_of_shardings_beside_a_static_argument() -> None:
    """A prefix of an argument counts as one."""
    f: Any = pj.jit(
        lambda n, p, x: (p["a"] * n, x),
        static_argnums=0,
        in_shardings=({"a": SPLIT, "b": None}, SPLIT),
    )
    p = {"a": jnp.ones((2, 2)), "b": jnp.ones(2)}
    assert f(3, p, jnp.ones(2))[0].tolist() == [[3.0, 3.0], [3.0, 3.0]]
    with pytest.raises(ValueError, match="2 entries, and 1 arguments"):
        f(3, p)
