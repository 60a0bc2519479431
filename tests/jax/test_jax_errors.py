# SPDX-License-Identifier: Apache-2.0
"""Errors speak of the user's function and of its arguments, with few frames of pydag's."""

from __future__ import annotations

import functools
import inspect
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest
from operations import python_calls

import pydag
import pydag.jaxinterop as pj

MESH = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
SPEC: Any = jax.sharding.PartitionSpec


def model() -> dict[str, Any]:
    return {"enc": {"w": jnp.ones(2)}}


def batch() -> dict[str, Any]:
    return {"enc": {"w": jnp.ones((3, 2))}}


def forward(tree: Any, *_: Any) -> Any:
    """A function that JAX can't trace: it needs a value."""
    return tree if tree["enc"]["w"].sum() > 0 else None


def total(tree: Any) -> Any:
    return jnp.sum(tree["enc"]["w"])


def place(fun: Any) -> str:
    """Where a function stands, as JAX writes it."""
    return f"{fun.__name__} at {__file__}:{inspect.unwrap(fun).__code__.co_firstlineno}"


def assert_not_of_us(text: str) -> None:
    """Asserts that a text names none of our files, classes and parameters."""
    for ours in ("jaxinterop", "leaves[", "values[", ".tree[", ".tree.", "Packed"):
        assert ours not in text


def said(call: Callable[[], Any], error: type[Exception] = Exception) -> str:
    """What the error of a call says, notes included."""
    with pytest.raises(error) as caught:
        call()
    text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert_not_of_us(text)
    return text


def carried(state: Any, _: Any) -> Any:
    return forward(state), None


def scanned(state: Any, part: Any) -> Any:
    forward(part)
    return state, None


def counted(_: Any, state: Any) -> Any:
    return forward(state)


def with_rule(tree: Any) -> Any:
    rule = pj.custom_jvp(forward)
    rule.defjvp(lambda primals, tangents: (primals, tangents))
    return pj.jit(rule)(tree)


ARGUMENT = "args[0]['enc']['w']"


# What JAX's coming implementations call themselves.
REMAT = "remat3" if getattr(jax.config, "jax_remat3", False) else "checkpoint / remat"
RULE = "jit" if getattr(jax.config, "jax_custom_jvp3", False) else "custom_jvp fun"


# The call, what JAX says it traces for, the function that is traced, the argument's path.
TRACED: dict[str, tuple[Callable[[], Any], str, Any, str]] = {
    "jit": (lambda: pj.jit(forward)(model()), "jit", forward, ARGUMENT),
    "keyword": (lambda: pj.jit(forward)(tree=model()), "jit", forward,
        "kwargs['tree']['enc']['w']"),
    "jit of grad": (lambda: pj.jit(pj.grad(forward))(model()), "jit", forward, ARGUMENT),
    "checkpoint": (lambda: pj.checkpoint(forward)(model(), 2.0), REMAT, forward, ARGUMENT),
    "cond": (lambda: pj.cond(True, forward, total, model()), "cond", forward, ARGUMENT),
    "scan, carry": (lambda: pj.scan(carried, model(), length=2), "scan", carried,
        "state['enc']['w']"),
    "scan, slice": (lambda: pj.scan(scanned, 0.0, batch()), "scan", scanned, "part['enc']['w']"),
    "fori_loop": (lambda: pj.fori_loop(0, 2, counted, model()), "fori_loop", counted,
        "state['enc']['w']"),
    "while_loop, body": (lambda: pj.while_loop(lambda _: False, forward, model()), "while_body",
        forward, "tree['enc']['w']"),
    "custom_jvp": (lambda: with_rule(model()), RULE, forward, ARGUMENT),
    "shard_map in jit": (lambda: pj.jit(pj.shard_map(forward, mesh=MESH, in_specs=SPEC(),
        out_specs=SPEC()))(model()), "shard_map", forward, ARGUMENT),
}  # fmt: skip


@pytest.mark.parametrize("name", TRACED)
def test_a_value_that_is_needed_while_tracing(name: str) -> None:
    """The error names the user's function, its file and line, and the path of the argument."""
    call, api, fun, path = TRACED[name]
    text = said(call, jax.errors.TracerBoolConversionError)
    assert f"while tracing the function {place(fun)} for {api}." in text
    assert f"depends on the value of the argument {path}." in text


@pydag.register_fields
class Record:
    """With a flag that somebody takes for configuration."""

    def __init__(self) -> None:
        self.flag, self.rate, self.w = True, 0.5, jnp.ones(2)


def branching(record: Any, *_: Any) -> Any:
    return record if record.flag else None


def with_flag(tree: Any) -> Any:
    return jnp.sum(tree["w"]) if tree["flag"] else 0.0


def flags() -> dict[str, Any]:
    return {"flag": True, "w": jnp.ones(2)}


# The call, and what the flag is called.
ADVISED: dict[str, tuple[Callable[[], Any], str]] = {
    "jit": (lambda: pj.jit(branching)(Record()), "args[0].flag"),
    "dict": (lambda: pj.jit(with_flag)(flags()), "args[0]['flag']"),
    "shape": (lambda: pj.jit(lambda tree: jnp.zeros(tree["n"]))({"n": 2}), "args[0]['n']"),
    "two": (lambda: pj.jit(lambda a, b: a if a.rate > b.rate else b)(Record(), Record()),
        "args[0].rate"),
    "keyword": (lambda: pj.jit(branching)(record=Record()), "kwargs['record'].flag"),
    "jit of grad": (lambda: pj.jit(pj.grad(lambda r: jnp.sum(branching(r).w)))(Record()),
        "args[0].flag"),
    "scan": (lambda: pj.scan(lambda state, _: (branching(state), None), Record(), length=2),
        "state.flag"),
    "while_loop, body": (lambda: pj.while_loop(lambda _: False, branching, Record()),
        "record.flag"),
}  # fmt: skip


@pytest.mark.parametrize("name", ADVISED)
def test_a_flag_of_a_record_that_python_branches_on(name: str) -> None:
    """JAX's error is followed by what the flag is, and how it becomes configuration: once."""
    call, path = ADVISED[name]
    text = said(call, TypeError)
    assert f"depends on the value{'s' if name == 'two' else ''} of the argument" in text
    assert text.count(f"These numbers are traced, as in any record or dict: {path}") == 1
    assert text.count("are static (pj.Module, pydag.register_module)") == 1


class Finished:
    def __init__(self) -> None:
        self.flag = jnp.array(True)


pydag.register_module(Finished)


def leaking(leak: list[Any]) -> Callable[[Any], Any]:
    """A function that keeps a tracer."""

    def leaky(tree: Any) -> Any:
        leak.append(2 * tree["enc"]["w"])
        return total(tree)

    return leaky


TAKES: dict[str, Callable[[Any], Any]] = {
    "jit": lambda f: pj.jit(f)(model()),
    "checkpoint": lambda f: pj.checkpoint(f)(model()),
    "cond": lambda f: pj.cond(True, f, f, model()),
}


@pytest.mark.parametrize("name", ["jit", "checkpoint", "cond"])
def test_a_leaked_tracer_that_is_used(name: str) -> None:
    """The error says which function leaked it, and on which line, without frames of ours."""
    leak: list[Any] = []
    leaky = leaking(leak)
    TAKES[name](leaky)
    text = said(lambda: leak[0] + 1, jax.errors.UnexpectedTracerError)
    assert f"The function being traced when the value leaked was {place(leaky)} traced" in text
    line = leaky.__code__.co_firstlineno + 1
    assert f"was created on line {__file__}:{line}:" in text
    leak.clear()


def test_sizes_that_scan_refuses() -> None:
    """Leading axes that differ, and scalars, are named by their paths."""
    xs = {"a": jnp.ones(3), "b": jnp.ones(2)}
    for call in (lambda: pj.scan(lambda c, x: (c, x), 0.0, xs), lambda: pj.map(lambda x: x, xs)):
        text = said(call, ValueError)
        assert "leading axis sizes: xs['a'] has size 3, xs['b'] has size 2" in text
    text = said(lambda: pj.scan(lambda c, x: (c, x), 0.0, {"a": jnp.ones(3), "b": 1.0}))
    assert "a value without a leading axis: xs['b']" in text


@pydag.register_fields(data_fields=["w", "b"])
class Layer:
    """A class with two fields, of which an instance has one."""

    def __init__(self) -> None:
        self.w = jnp.ones(2)


class Broken:
    """A class that can't be flattened."""


def refuse(_: Any) -> Any:
    raise LookupError("no children today")


pydag.register_pydag_node(Broken, refuse, lambda *_: Broken())


def cyclic() -> Any:
    tree: dict[str, Any] = {"x": [jnp.ones(2)]}
    tree["x"].append(tree)
    return tree


KNOWN = pj.jit(lambda tree: 1.0)
KNOWN(model())


# How a tree is passed, and what the user calls it there.
ROOTS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "jit": (lambda tree: pj.jit(lambda *_: 1.0)(0.0, tree), "args[1]"),
    "jit, known": (lambda tree: KNOWN(tree), "args[0]"),
    "jit, keyword": (lambda tree: pj.jit(lambda p: 1.0)(p=tree), "kwargs['p']"),
    "jit, result": (lambda tree: pj.jit(lambda _: tree)(0.0), "result"),
    "vmap": (lambda tree: pj.vmap(lambda _: 1.0)(tree), "args[0]"),
    "grad": (lambda tree: pj.grad(lambda _: 1.0)(tree), "args[0]"),
    "scan": (lambda tree: pj.scan(lambda c, x: (c, x), tree, length=2), "init"),
    "scan, slices": (lambda tree: pj.scan(lambda c, x: (c, x), 0.0, tree), "xs"),
    "scan, stacked": (lambda tree: pj.scan(lambda c, x: (c, tree), 0.0, length=2), "result[1]"),
    "while_loop": (lambda tree: pj.while_loop(lambda _: True, lambda c: c, tree), "init_val"),
    "cond": (lambda tree: pj.cond(True, lambda t: t, lambda t: t, tree), "args[0]"),
    "custom_vjp": (lambda tree: pj.custom_vjp(lambda x, t: x)(0.0, tree), "args[1]"),
}


@pytest.mark.parametrize("name", ROOTS)
def test_trees_that_cannot_be_flattened(name: str) -> None:
    """Errors about missing fields, exceptions and cycles have a path from the user's name on."""
    call, root = ROOTS[name]
    text = said(lambda: call({"m": Layer()}), AttributeError)
    assert f"\n  at {root}['m']" in text
    text = said(lambda: call([Broken()]), LookupError)
    assert f"raised while flattening {root}[0]" in text
    text = said(lambda: call(cyclic()), pydag.CycleError)
    assert f"{root}['x'][1] is the dict at {root}\n" in text
    assert f"\n  at {root}['x'][1]" in text


class Called:
    """An object that is called, and holds nothing."""

    def __call__(self, tree: Any) -> Any:
        return forward(tree)

    def method(self, tree: Any) -> Any:
        return forward(tree)


@pytest.mark.parametrize(
    ("fun", "name", "code"),
    [
        (functools.partial(forward), "forward", forward),
        (functools.partial(functools.partial(forward)), "forward", forward),
        (Called(), "Called", Called.__call__),
        (Called().method, "method", Called.method),
        (functools.wraps(forward)(lambda t: forward(t)), "forward", forward),
        (jax.jit(forward), "forward", forward),
        (pj.vmap(forward, in_axes=None, axis_size=2), "forward", forward),
    ],
    ids=["partial", "nested partial", "object", "method", "wrapped", "jax.jit", "vmap"],
)
def test_callables_of_all_kinds(fun: Any, name: str, code: Any) -> None:
    """Whatever can be called has a name and, where there is Python code, a file and a line."""
    line = code.__code__.co_firstlineno
    text = said(lambda: pj.jit(fun)(model()), jax.errors.TracerBoolConversionError)
    assert f"while tracing the function {name} at {__file__}:{line} for jit." in text


def deep(depth: int, kind: Callable[[Any], Any]) -> Any:
    """An array in so many containers."""
    tree: Any = jnp.float32(1.0)
    for _ in range(depth):
        tree = kind(tree)
    return tree


def bottom(tree: Any) -> Any:
    """The array."""
    while isinstance(tree, tuple | list | dict):
        tree = tree["k"] if isinstance(tree, dict) else tree[0]
    return tree


DEEP: dict[str, Callable[[Any], Any]] = {
    "jit": lambda t: pj.jit(lambda t: t)(t),
    "grad": lambda t: pj.grad(bottom)(t),
    "jit of grad": lambda t: pj.jit(pj.grad(bottom))(t),
    "vjp": lambda t: pj.vjp(bottom, t)[1](jnp.float32(1.0)),
    "scan": lambda t: pj.scan(lambda c, _: (c, None), t, length=1)[0],
    "cond": lambda t: pj.cond(True, lambda t: t, lambda t: t, t),
}


@pytest.mark.parametrize("name", DEEP)
@pytest.mark.parametrize("depth", [300, 5000])
@pytest.mark.parametrize("kind", [lambda t: (t,), lambda t: {"k": t}], ids=["tuple", "dict"])
def test_deep_trees(name: str, depth: int, kind: Any) -> None:
    """Containers may be nested deeper than Python calls."""
    assert float(bottom(DEEP[name](deep(depth, kind)))) == 1.0


def test_partials_that_hold_a_cycle_or_a_deep_tuple() -> None:
    """Such partials hold no model, and are compiled."""
    cycle: list[Any] = []
    cycle.append(cycle)
    knot: dict[str, Any] = {"list": cycle}
    knot["dict"] = knot
    numbers: Any = 3
    for _ in range(5000):
        numbers = (numbers,)
    for held in (cycle, knot, (cycle, knot), numbers, [numbers]):
        for f in (
            functools.partial(lambda held, x: x, held),
            functools.partial(lambda x, y: x, y=held),
        ):
            assert float(pj.jit(f)(jnp.float32(2.0))) == 2.0
    with pytest.raises(TypeError, match="holds a model"):
        pj.jit(functools.partial(lambda held, x: x, [cycle, jnp.ones(2)]))


@pytest.mark.parametrize(
    "name",
    [
        "source_info_util.register_exclusion",
        "traceback_util.register_exclusion",
        "traceback_util.api_boundary",
    ],
)
def test_a_jax_that_cannot_hide_frames(name: str) -> None:
    """A private name of JAX that only shortens tracebacks may be missing."""
    module, attribute = name.split(".")
    code = f"""
import jax
from jax._src import {module}
del {module}.{attribute}
import pydag.jaxinterop as pj
print(pj.jit(lambda p: p["a"] + 1)({{"a": 1.0}}), pj.grad(lambda x: x * 3)(2.0))
"""
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert made.stdout.split() == ["2.0", "3.0"], made.stderr


PYDAG = str(Path(pydag.__file__).parent) + os.sep
OPTIMIZER = pj.optimizer(optax.add_decayed_weights(0.1))


class Net(pj.Module):
    """A model for two inputs, which fails for three."""

    def __init__(self) -> None:
        self.w = jnp.ones(2)

    def __call__(self, x: Any) -> Any:
        return jnp.sum(self.w * x)

    def step(self, carry: Any, x: Any) -> Any:
        return carry, self(x)


def loss(net: Any, x: Any) -> Any:
    """Fails by its shapes."""
    return net(x)


def _custom_vjp(net: Any, x: Any) -> Any:
    f = pj.custom_vjp(loss)
    f.defvjp(lambda net, x: (loss(net, x), None), lambda _, g: (None, None))
    return f(net, x)


def _custom_jvp(net: Any, x: Any) -> Any:
    f = pj.custom_jvp(loss)
    f.defjvp(lambda primals, tangents: (loss(*primals), tangents[1].sum()))
    return pj.grad(f, argnums=1)(net, x)


WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "jit": pj.jit(loss),
    "grad": pj.grad(loss),
    "jacrev": pj.jacrev(loss),
    "vjp": lambda net, x: pj.vjp(loss, net, x),
    "vmap": lambda net, x: pj.vmap(loss, in_axes=(None, 0))(net, x[None]),
    "checkpoint": pj.checkpoint(loss),
    "cond": lambda net, x: pj.cond(True, loss, loss, net, x),
    "scan": lambda net, x: pj.scan(lambda net, x: (net, net(x)), net, x[None]),
    "while_loop": lambda net, x: pj.while_loop(lambda c: c[0](c[1]) > 0, lambda c: c, [net, x]),
    "fori_loop": lambda net, x: pj.fori_loop(0, 2, lambda i, c: [c[0], c[0](c[1])], [net, x]),
    "custom_jvp": _custom_jvp,
    "custom_vjp": _custom_vjp,
    "eval_shape": lambda net, x: pj.eval_shape(loss, net, x),
    "make_jaxpr": lambda net, x: pj.make_jaxpr(loss)(net, x),
    "optimizer": lambda net, x: OPTIMIZER.update(
        pj.tree.map(lambda _: x, net), OPTIMIZER.init(net), net
    ),
}

NESTED: dict[str, Callable[[Any, Any], Any]] = {
    "jit of grad": pj.jit(pj.grad(loss)),
    "grad of jit": pj.grad(pj.jit(loss)),
    "jit of grad of scan": pj.jit(
        lambda net, x: pj.grad(lambda net: pj.scan(net.step, x, x[None])[1].sum())(net)
    ),
    "vmap of checkpoint of cond": lambda net, x: pj.vmap(
        pj.checkpoint(lambda net, x: pj.cond(x.sum() > 0, loss, loss, net, x)), in_axes=(None, 0)
    )(net, x[None]),
}


def frames_of_ours(fails: Callable[[Any, Any], Any]) -> int:
    """How many frames of pydag's a user sees."""
    with pytest.raises((TypeError, ValueError)) as info:
        fails(Net(), jnp.ones(3))
    frames = traceback.extract_tb(info.value.__traceback__)
    return sum(frame.filename.startswith(PYDAG) for frame in frames)


@pytest.mark.parametrize("name", WAYS)
def test_a_shape_error_has_few_frames_of_pydag(name: str) -> None:
    """A user sees at most three, in each wrapper."""
    assert frames_of_ours(WAYS[name]) <= 3


@pytest.mark.parametrize("name", NESTED)
def test_nested_wrappers_add_few_frames(name: str) -> None:
    """A user sees at most six, where wrappers are nested."""
    assert frames_of_ours(NESTED[name]) <= 6


def test_the_users_own_frames_are_there() -> None:
    """The frames of the functions that the user wrote stay, innermost last."""
    with pytest.raises(TypeError) as info:
        WAYS["jit"](Net(), jnp.ones(3))
    own = [f.name for f in traceback.extract_tb(info.value.__traceback__) if f.filename == __file__]
    assert own[-2:] == ["loss", "__call__"]


@pytest.mark.parametrize("count", [1, 8, 9, 40])
@pytest.mark.parametrize("donated", [(), (1,)])
def test_errors_name_a_leaf_however_many_there_are(count: int, donated: tuple[int, ...]) -> None:
    """Few leaves are passed to JAX one by one, many as one argument: errors say the same."""
    model = {i: jnp.float32(i) for i in range(count)}

    def f(model: Any, _other: Any) -> Any:
        return 1 if model[count - 1] > 0 else 2

    with pytest.raises(jax.errors.TracerBoolConversionError) as raised:
        pj.jit(f, donate_argnums=donated)(model, jnp.ones(2))
    assert f"args[0][{count - 1}]" in str(raised.value)


@pytest.mark.parametrize("count", [7, 8, 9, 40])
def test_a_call_gives_each_leaf_its_own_place_however_many_there_are(count: int) -> None:
    """Places are right beside the number from which on leaves are one argument, with ties, too."""
    model = {i: jnp.float32(i) for i in range(count)} | {"again": None}
    model["again"] = model[0]
    jitted = pj.jit(lambda model: [model, model["again"] is model[0]])
    for _ in range(3):
        same, is_shared = jitted(model)
        assert [float(same[i]) for i in range(count)] == [float(i) for i in range(count)]
        assert same["again"] is same[0]
        assert bool(is_shared)


struct: Any = jax.ShapeDtypeStruct
HERE = jax.sharding.SingleDeviceSharding(jax.devices()[0])


def calls_of(work: Callable[[], object]) -> int:
    """How many functions are called meanwhile, of Python's and of C's."""
    return len(python_calls(work, ("call", "c_call")))


def first(tree: Any) -> Any:
    return tree["0.weight"]


def work_on(width: int, how: str) -> int:
    """The calls that the first trace for a dict with so many arrays takes."""
    names = [f"{i}.weight" for i in range(width)]
    tree = {name: struct((2,), "float32") for name in names}
    treatments: Any = dict.fromkeys(names, 0 if how == "axes" else HERE)
    if how == "axes":
        mapped = pj.vmap(first, in_axes=(treatments,))
        return calls_of(lambda: pj.eval_shape(mapped, tree))
    jitted: Any = {
        "in": lambda: pj.jit(first, in_shardings=(treatments,)),
        "out": lambda: pj.jit(lambda tree: tree, out_shardings=treatments),
    }[how]()
    return calls_of(lambda: jitted.trace(tree))


@pytest.mark.parametrize("how", ["axes", "in", "out"])
def test_trees_of_shardings_and_axes(how: str) -> None:
    """A sharding or an axis for each of four times as many names: about four times the work."""
    work_on(50, how)
    assert work_on(800, how) < 6 * work_on(200, how)


class Numbered:
    """A module with an array and a number, which is configuration."""

    def __init__(self, weight: Any) -> None:
        self.weight, self.eps = weight, 1e-6


pydag.register_module(Numbered)
