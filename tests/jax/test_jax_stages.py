"""The stages of a compiled function speak of the function as its user has it."""

from __future__ import annotations

import gc
import math
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import stages
from jax.experimental import serialize_executable

import pydag
from pydag import jaxinterop as pj

W = jnp.ones(3)


class Net(pj.Module):
    """A module with one array at two places, a number and a function."""

    a: Any
    b: Any

    def __init__(self, w: Any) -> None:
        self.a = self.b = w
        self.depth, self.activation = 3, jnp.tanh


@pj.register
@pydag.register_fields
class Record:
    """A record with one array at two places, and a number."""

    def __init__(self, w: Any) -> None:
        self.v = self.w = w
        self.n = 2.0


def f(params: Any, net: Any, record: Any, n: Any, *, k: Any) -> Any:
    """Uses all of its arguments, and returns modules, records and arrays."""
    return {"x": params["a"] * net.a * n, "net": net, "record": record, "k": (k, k * 1)}


def arguments() -> tuple[Any, ...]:
    """Of `f`: what is shared spans them; the last one is static."""
    return {"a": W, "b": W}, Net(W), Record(jnp.zeros(3)), 5


JITTED = pj.jit(f, static_argnums=3, donate_argnums=2)
K = jnp.ones(())


def every_stage() -> tuple[Any, Any, Any]:
    """Traced, lowered and compiled."""
    lowered = JITTED.lower(*arguments(), k=K)
    return JITTED.trace(*arguments(), k=K), lowered, lowered.compile()


def plain(params: Any, x: Any) -> Any:
    """A function of what plain JAX takes, too."""
    return params["w"] * x


PLAIN = {"w": W}, jnp.zeros(3)


@pytest.mark.parametrize("donated", [(), (1,)])
def test_without_sharing_all_is_as_in_jax(donated: tuple[int, ...]) -> None:
    """Types, structures, donation, shardings and layouts are those of `jax.jit`."""
    found: list[Any] = []
    for jit in (jax.jit, pj.jit):
        lowered: Any = jit(plain, donate_argnums=donated).lower(*PLAIN)
        compiled = lowered.compile()
        for stage in (jit(plain, donate_argnums=donated).trace(*PLAIN), lowered, compiled):
            found.append((stage.args_info, stage.in_tree, stage.in_avals, stage.donate_argnums))
            found.append((stage.out_tree, jax.tree.map(lambda x: x.shape, stage.out_info)))
        found.append((compiled.input_shardings, compiled.output_shardings))
        found.append((compiled.input_formats, compiled.output_formats))
        found.append((compiled.cost_analysis() is None, compiled.memory_analysis() is None))
        found.append((type(compiled.runtime_executable()), lowered.compiler_ir() is None))
    half = len(found) // 2
    assert found[:half] == found[half:]


def test_they_pass_for_those_of_jax() -> None:
    """`isinstance` is true, also of the compiled function itself."""
    traced, lowered, compiled = every_stage()
    assert isinstance(traced, stages.Traced)
    assert isinstance(lowered, stages.Lowered)
    assert isinstance(compiled, stages.Compiled)
    assert isinstance(JITTED, stages.Wrapped)


def test_arguments_in_their_own_form() -> None:
    """What JAX says of an array stands at all of its places; None at what JAX doesn't trace."""
    for stage in every_stage():
        (params, net, record), kwargs = stage.args_info
        assert params["a"] is params["b"] is net.a is net.b
        assert (params["a"].shape, params["a"].donated) == ((3,), False)
        assert (net.depth, net.activation) == (None, None)
        assert record.v is record.w
        assert (record.w.donated, record.n.donated) == (True, True)
        assert kwargs["k"].shape == ()
        # To JAX: two of the dict, one of the module, two of the record, and one by keyword.
        assert stage.donate_argnums == (3, 4)
        assert stage.in_tree == jax.tree.structure((arguments()[:3], {"k": K}))
        assert jax.tree.leaves(stage.in_avals)[2].shape == (3,)


def test_results_in_their_own_form() -> None:
    """So do shapes, types, shardings and layouts of the result."""
    traced, lowered, compiled = every_stage()
    out = compiled(*arguments(), k=K)
    for stage in (traced, lowered, compiled):
        assert stage.out_info["net"].a is stage.out_info["net"].b
        assert stage.out_info["net"].depth == 3
        structure: Any = jax.tree.structure(out)
        assert stage.out_tree == structure
    assert traced.out_avals["x"].shape == (3,)
    for shardings in (compiled.output_shardings, compiled.output_formats):
        assert jax.tree.structure(shardings) == structure
        assert shardings["net"].depth is None


def test_arguments_are_placed_by_the_shardings() -> None:
    """`jax.device_put` takes them for the arguments, with sharing, modules and records."""
    compiled = every_stage()[2]
    given = arguments()[:3]
    for places in (compiled.input_shardings[0], compiled.input_formats[0]):
        params, net, record = jax.device_put(given, places)
        assert params["a"].tolist() == [1.0, 1.0, 1.0]
        assert net.a is net.b
        assert (net.depth, net.activation) == (3, jnp.tanh)
        assert record.v is record.w
        assert record.n == 2.0
    placed = pj.tree.map(jax.device_put, given, compiled.input_shardings[0])
    assert placed[0]["a"] is placed[1].b
    result = jax.device_put(compiled(*arguments(), k=K), compiled.output_shardings)
    assert result["net"].a is result["net"].b


def test_an_argument_that_is_not_used_has_no_sharding() -> None:
    """As in JAX: None stands there."""
    compiled = pj.jit(lambda p, x: p["w"] * 2).lower(*PLAIN).compile()
    assert compiled.input_shardings[0][1] is None
    assert jax.device_put(PLAIN, compiled.input_shardings[0])[1].tolist() == [0.0, 0.0, 0.0]


def test_arguments_in_groups() -> None:
    """Where leaves get different shardings, each is said of its own argument."""
    mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    spec: Any = jax.sharding.PartitionSpec
    split, whole = (jax.sharding.NamedSharding(mesh, s) for s in (spec("x"), spec()))
    jitted = pj.jit(
        lambda p, y: (p["a"] + p["b"] + p["c"], y + 1),
        in_shardings=({"a": split, "b": whole, "c": split}, whole),
        out_shardings=(split, whole),
        donate_argnums=1,
    )
    compiled = jitted.lower({k: jnp.ones((2, i + 1)) for i, k in enumerate("a")} | {
        "b": jnp.ones((1, 1)), "c": jnp.ones((2, 1))
    }, jnp.ones(5)).compile()  # fmt: skip
    (params, y), _ = compiled.args_info
    assert {k: v.shape for k, v in params.items()} == {"a": (2, 1), "b": (1, 1), "c": (2, 1)}
    assert (y.shape, y.donated) == ((5,), True)
    given = compiled.input_shardings[0]
    assert given[0]["a"].is_equivalent_to(split, 2)
    assert given[0]["b"].is_equivalent_to(whole, 2)
    assert compiled.output_shardings[1].is_equivalent_to(whole, 1)


def test_what_was_traced_is_evaluated() -> None:
    """A traced function can be called, and converted to one of what it closed over."""
    data = jnp.arange(3.0)
    traced: Any = pj.jit(lambda p: {"x": p["a"] * data, "y": p["b"]}).trace({"a": W, "b": W})
    if not hasattr(stages.Traced, "closure_convert"):
        pytest.skip("this JAX can't")
    assert traced({"a": W, "b": W})["x"].tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(TypeError, match="was traced for arguments of another structure"):
        traced({"a": W, "b": W + 0})
    consts, converted = traced.closure_convert()
    twice = [2 * const for const in consts]
    assert converted(twice, {"a": W, "b": W})["x"].tolist() == [0.0, 2.0, 4.0]


def test_an_executable_is_not_written_down_as_a_function_of_the_arguments() -> None:
    """It takes the distinct leaves, donated ones first: JAX would pass it all, in their order."""
    with pytest.raises(AttributeError, match=r"_executable.*jax\.jit"):
        serialize_executable.serialize(every_stage()[2])


def test_jax_export_says_what_to_export() -> None:
    """`jax.export` would pass the arguments in its own order: the error says what to do."""
    exported: Any = jax.export.export
    with pytest.raises(TypeError, match=r"Export jax\.jit of a function of the leaves"):
        exported(pj.jit(lambda p: p["a"]))({"a": W})


def test_analyses() -> None:
    """What the compiled program needs is JAX's answer: the array is there once."""
    compiled = pj.jit(lambda p: p["a"] + p["b"]).lower({"a": W, "b": W}).compile()
    assert compiled.memory_analysis().argument_size_in_bytes == math.prod(W.shape) * 4
    assert "ENTRY" in compiled.as_text()


@pytest.mark.parametrize("count", [2, 40])
def test_they_keep_no_array_of_the_call(count: int) -> None:
    """Neither what was traced, nor lowered, nor compiled; they still say all of it."""
    model = {i: jnp.full(3, float(i)) for i in range(count)}
    refs = [weakref.ref(array) for array in model.values()]
    traced = pj.jit(lambda model: model[0] + 1).trace(model)
    lowered = traced.lower()
    compiled = lowered.compile()
    del model
    gc.collect()
    assert [ref() for ref in refs] == [None] * count
    for stage in (traced, lowered, compiled):
        assert stage.args_info[0][0][count - 1].shape == (3,)
        assert stage.out_info.shape == (3,)
    assert compiled({i: jnp.ones(3) + i * 0 for i in range(count)}).tolist() == [2.0, 2.0, 2.0]


def test_a_ref_that_was_traced_is_kept_as_a_shape() -> None:
    """The result that holds it is described; the ref and its content are gone."""
    content = jnp.zeros(5)
    model = {"ref": jax.new_ref(content), "x": W}
    ref = weakref.ref(model["ref"])
    traced = pj.jit(lambda m: {"same": m["ref"], "y": m["x"] + 1}).trace(model)
    del model
    gc.collect()
    assert ref() is None
    assert traced.out_info["same"].shape == (5,)
    assert traced.out_info["y"].shape == (3,)
