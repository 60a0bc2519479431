# SPDX-License-Identifier: Apache-2.0
"""What a function changes in an argument that `update_argnums` names comes out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import flax.struct
import jax
import jax.numpy as jnp
import optax
import pytest
from flax import nnx
from jax.experimental.random import stateful_rng

import pydag
import pydag.jaxinterop as pj
from pydag.errors import SharingError


class Net(pj.Module):
    """A module with a part, a list, and configuration."""

    def __init__(self) -> None:
        self.w, self.part = jnp.ones(3), {"mean": jnp.zeros(3)}
        self.calls, self.mode = jnp.int32(0), "train"
        self.history = [jnp.zeros(())]


X, ARRAY = jnp.ones(3), jnp.arange(3.0)


# The wrappers that update the argument of a number; a derivative is by the other one of two.
UPDATING: dict[str, Callable[[Any, int], Any]] = {
    "jit": lambda f, n: pj.jit(f, update_argnums=n),
    "grad": lambda f, n: pj.value_and_grad(f, argnums=1 - n, update_argnums=n),
    "checkpoint": lambda f, n: pj.checkpoint(f, update_argnums=n),
}

outer_wrappers = pytest.mark.parametrize("outer", UPDATING)


def test_nested_in_checkpoint_under_grad() -> None:
    """A checkpointed part that changes its module runs twice under grad, and writes once."""
    model = Net()

    def call(model: Any, x: Any) -> Any:
        model.calls = model.calls + 1
        return (model.w * x).sum()

    pj.grad(lambda m, x: pj.checkpoint(call, update_argnums=0)(m, x), update_argnums=0)(model, X)
    assert int(model.calls) == 1


def linear() -> Any:
    return nnx.Linear(2, 2, rngs=nnx.Rngs(0))


@outer_wrappers
@pytest.mark.parametrize(
    ("make", "change", "text"),
    [
        (Net, lambda m: setattr(m, "lazy", jnp.ones(3)), "lazy"),
        (Net, lambda m: delattr(m, "calls"), "calls"),
        (Net, lambda m: m.history.append(X), "history"),
        (Net, lambda m: setattr(m, "part", [X]), "part"),
        (Net, lambda m: setattr(m, "part", None), "part"),
        (linear, lambda m: setattr(m, "new", nnx.Param(X)), r"What came or went: args\[0\]\.new"),
        (linear, lambda m: delattr(m, "bias"), r"What came or went: args\[0\]\.bias"),
        (linear, lambda m: setattr(m, "new", "static"), "'new'"),
        (linear, lambda m: setattr(m, "kernel", nnx.BatchStat(X)), r"Param(.|\n)*BatchStat"),
    ],
)
def test_another_structure(outer: str, make: Any, change: Any, text: str) -> None:
    """Another class, key or length is a ValueError that says where; nothing is written."""
    model = make()
    before = pydag.dag_structure(model)

    def f(model: Any, x: Any) -> Any:
        change(model)
        return x.sum()

    with pytest.raises(ValueError, match=text) as caught:
        UPDATING[outer](f, 0)(model, X)
    assert "args[0]" in str(caught.value)
    assert pydag.dag_structure(model) == before


def test_the_order_of_dicts_stays() -> None:
    """The caller's dicts keep the order in which they were filled."""
    tree = {"b": jnp.zeros(2), "a": jnp.ones(2)}

    def f(p: Any) -> None:
        p["a"], p["b"] = p.pop("a") + 1, p.pop("b") + 2

    pj.jit(f, update_argnums=0)(tree)
    assert list(tree) == ["b", "a"]
    assert tree["a"].tolist() == tree["b"].tolist() == [2.0, 2.0]


def test_tuples_below() -> None:
    """A tuple in something that can be changed is replaced by a new one."""
    tree = {"pair": (jnp.zeros(2), [jnp.ones(2)])}
    inner = tree["pair"][1]

    def f(p: Any) -> None:
        p["pair"][1][0] = p["pair"][1][0] + 1
        p["pair"] = (p["pair"][0] + 1, p["pair"][1])

    pj.jit(f, update_argnums=0)(tree)
    assert tree["pair"][0].tolist() == [1.0, 1.0]
    assert tree["pair"][1] is inner
    assert inner[0].tolist() == [2.0, 2.0]


def test_a_class_that_refuses_to_be_written() -> None:
    """What a flatten function opens can't be written: an error, and nothing is written."""

    class Box:
        def __init__(self, x: Any) -> None:
            self.x = x

    pydag.register_pydag_node(Box, lambda b: ((b.x,), None), lambda _, xs: Box(*xs))

    def f(p: Any) -> None:
        p["a"] = p["a"] + 1
        p["box"].x = p["a"] * 2

    def g(p: Any) -> Any:
        f(p)
        return p["a"].sum()

    tree = {"a": X, "box": Box(jnp.zeros(3))}
    with pytest.raises(TypeError, match=r"can't be changed in place"):
        pj.jit(f, update_argnums=0)(tree)
    with pytest.raises(TypeError, match="changed in place"):
        pj.grad(g, update_argnums=0)(tree)
    assert tree["a"] is X


def test_a_ref_that_is_put_in() -> None:
    """A ref that is made, or is another argument, can't be put into a compiled update."""
    ref = jax.new_ref(X)

    def made(tree: Any, _: Any) -> None:
        tree["a"] = jax.new_ref(X)

    def given(tree: Any, ref: Any) -> None:
        tree["a"] = ref

    for f in (made, given):
        tree = {"a": X}
        with pytest.raises(
            TypeError, match=r"another ref at args\[0\]\['a'\].*\n.*ref\[\.\.\.\] ="
        ):
            pj.jit(f, update_argnums=0)(tree, ref)
        assert tree["a"] is X


def test_static_and_updated() -> None:
    """An argument can't be both."""
    with pytest.raises(ValueError, match="both static and updated"):
        pj.jit(lambda x: x, update_argnums=0, static_argnums=0)


class Pair(NamedTuple):
    """Two values."""

    w: Any
    b: Any


class Frozen(eqx.Module):
    """A model that can't be changed."""

    w: Any


@flax.struct.dataclass
class State:
    """A state that can't be changed."""

    w: Any


@pytest.mark.parametrize(
    ("tree", "what"),
    [
        (X, r"f32\[3\]"),
        ((X, X), r"\(f32\[3\], f32\[3\]\)"),
        (Pair(X, X), "Pair"),
        (Frozen((X, Pair(X, None))), "Frozen"),
        (State(X), "State"),
    ],
)
def test_where_nothing_can_be_changed(tree: Any, what: str) -> None:
    """The warning names the argument and the cure, once for each trace, in every wrapper."""
    f = pj.jit(lambda model, tree: pj.tree.leaves(tree)[0].sum(), update_argnums=(0, 1))
    with pytest.warns(UserWarning, match=rf"args\[1\].*nothing can be changed: .*{what}") as told:
        f(Net(), tree)
    assert len(told) == 1
    assert "Return the new value" in str(told[0].message)
    assert told[0].filename == __file__
    f(Net(), tree)
    with pytest.warns(UserWarning, match=r"update_argnames names kwargs\['tree'\]"):
        pj.jit(lambda *, tree: 1.0, update_argnames="tree")(tree=tree)
    with pytest.warns(UserWarning, match="update_argnums names args"):
        pj.grad(lambda tree: pj.tree.leaves(tree)[0].sum(), update_argnums=0)(tree)


def test_where_something_can_be_changed() -> None:
    """An object somewhere below is enough; refs are written anyway, and None is nothing."""
    state, ref = pj.optimizer(optax.sgd(0.1)).init(Net()), jax.new_ref(X)
    trees = ([X], {"a": X}, (Net(), X), Frozen([X]), pj.Dag((X,)), state, ref, None)
    pj.jit(lambda *trees: X, update_argnums=tuple(range(len(trees))))(*trees)


INNER: dict[str, Callable[..., Any]] = {
    "jit": lambda f, x: pj.jit(f)(x),
    "jax.jit": lambda f, x: jax.jit(f)(x),
    "scan": lambda f, x: pj.scan(lambda c, _: (c + f(x), None), 0.0, None, 2)[0],
    "cond": lambda f, x: pj.cond(True, f, lambda x: 0.0, x),
    "checkpoint": lambda f, x: pj.checkpoint(f)(x),
    "jax.vmap": lambda f, x: jax.vmap(f)(jnp.stack([x, x])).sum(),
    "grad": lambda f, x: pj.grad(f)(x).sum(),
}


@outer_wrappers
@pytest.mark.parametrize("inner", INNER)
def test_an_inner_function_that_takes_it_from_around(inner: str, outer: str) -> None:
    """What it writes has no value outside of it: an error with the path; nothing is written."""

    def f(d: Any, x: Any) -> Any:
        def inside(x: Any) -> Any:
            d["total"] = d["total"] + x
            return d["total"].sum()

        return INNER[inner](inside, x)

    before = 2 * ARRAY
    given = {"total": before}
    text = r"^args\[0\]\['total'\] was written"
    with pytest.raises(jax.errors.UnexpectedTracerError, match=text):
        UPDATING[outer](f, 0)(given, ARRAY)
    assert given["total"] is before


@outer_wrappers
def test_a_container_of_an_argument_that_stays(outer: str) -> None:
    """Put into one that is updated, or taken out of it, it is a SharingError: nothing is written.

    What was shared before may be changed through both.
    """

    def graft(online: Any, target: Any) -> Any:
        target["n"] = online["n"]
        target["n"]["w"] = target["n"]["w"] + 1
        return online["x"].sum()

    def cut(online: Any, target: Any) -> Any:
        target["n"] = {"w": target["n"]["w"] + 1}
        return online["x"].sum()

    def through(online: Any, target: Any) -> Any:
        target["n"]["w"] = online["n"]["w"] + 1
        return online["x"].sum()

    online, target = ({"n": {"w": ARRAY + i}, "x": ARRAY + i} for i in range(2))
    with pytest.raises(pydag.SharingError, match=r"makes a tie(.|\n)*pj\.tree\.copy\(x\)"):
        UPDATING[outer](graft, 1)(online, target)
    if outer == "grad":
        return  # what is shared would be differentiated by at one place, and updated at another
    shared = {"w": ARRAY}
    one, other = {"n": shared, "x": ARRAY + 1}, {"n": shared}
    with pytest.raises(pydag.SharingError, match="cuts a tie"):
        UPDATING[outer](cut, 1)(one, other)
    assert shared["w"] is ARRAY
    UPDATING[outer](through, 1)(one, other)
    assert shared["w"].tolist() == (ARRAY + 1).tolist()
    assert one["n"] is other["n"]


class Model(pj.Module):
    def __init__(self) -> None:
        self.layers = [Net(), Net()]
        self.tied = self.layers[0]
        self.state = {"count": jnp.zeros(())}

    def __call__(self) -> Any:
        self.state["count"] = self.state["count"] + 1
        return self.layers[0].w.sum()


def test_containers_and_modules_below_it() -> None:
    """Containers and modules below are the caller's, too, wherever they stand in the result."""
    model = Model()

    @pj.jit(update_argnums=0)
    def parts(model: Model) -> Any:
        model()
        layer = model.layers[1]
        return Pair((model.tied, 2 * layer.w), {"s": [model.state], "l": layer}), model.layers

    for _ in range(3):
        pair, layers = parts(model)
        assert type(pair) is Pair
        assert pair.w[0] is model.layers[0]
        assert pair.w[1].tolist() == [2, 2, 2]
        assert pair.b["s"][0] is model.state
        assert pair.b["l"] is model.layers[1]
        assert layers is model.layers
    assert float(model.state["count"]) == 3


def test_nothing_has_to_change() -> None:
    """A model that a function returned as it was is the caller's, too; without updates a copy."""
    model = Model()
    assert pj.jit(lambda m: m, update_argnums=0)(model) is model
    assert pj.jit(lambda m: m)(model) is not model


AUX: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "grad": lambda f: lambda m: pj.grad(f, has_aux=True, update_argnums=0)(m)[1],
    "value_and_grad": lambda f: (
        lambda m: pj.value_and_grad(f, has_aux=True, update_argnums=0)(m)[0][1]
    ),
    "checkpoint": lambda f: lambda m: pj.checkpoint(f, update_argnums=0)(m)[1],
}


@pytest.mark.parametrize("name", AUX)
@pytest.mark.parametrize("is_jitted", [False, True])
def test_what_comes_back_of_other_wrappers(name: str, is_jitted: bool) -> None:
    """An aux of a derivative and `checkpoint` give the caller's object, alone and in `jit`."""
    model, run = Model(), AUX[name](lambda model: (model(), (model, model.state)))

    def outer(model: Model) -> Any:
        returned, state = run(model)
        assert returned is model
        assert state is model.state
        return returned

    run_outer = pj.jit(outer, update_argnums=0) if is_jitted else outer
    for i in range(1, 3):
        assert run_outer(model) is model
        assert float(model.state["count"]) == i


class Counter(pj.Module):
    """A module with a total, a part at two places, and configuration."""

    def __init__(self) -> None:
        self.total = jnp.zeros(2)
        self.part = self.again = {"mean": jnp.zeros(2)}
        self.calls = 3


@pydag.register_fields
@dataclass
class Record:
    """A record."""

    total: Any


class Stats(nnx.Module):
    """A module of NNX with a parameter and with state."""

    def __init__(self) -> None:
        self.weight = nnx.Param(jnp.ones(2))
        self.total = nnx.BatchStat(jnp.zeros(2))


class Updating:
    """The wrappers that update their first argument, called alike."""

    @staticmethod
    def jit(f: Any, **options: Any) -> Callable[..., Any]:
        """A compiled function."""
        return pj.jit(f, **options)

    @staticmethod
    def grad(f: Any, **options: Any) -> Callable[..., Any]:
        """The value of a differentiated function."""
        both = pj.value_and_grad(f, argnums=1, **options)
        return lambda model, x: both(model, x)[0]

    @staticmethod
    def checkpoint(f: Any, **options: Any) -> Callable[..., Any]:
        """A checkpointed function."""
        return pj.checkpoint(f, **options)


wrappers = pytest.mark.parametrize("wrap", [Updating.jit, Updating.grad, Updating.checkpoint])
PAIR = jnp.array([1.0, 2.0])


@wrappers
@pytest.mark.parametrize(
    ("make", "get", "put"),
    [
        (Counter, lambda m: m.total, lambda m, x: setattr(m, "total", x)),
        (lambda: Record(jnp.zeros(2)), lambda m: m.total, lambda m, x: setattr(m, "total", x)),
        (lambda: {"t": jnp.zeros(2)}, lambda m: m["t"], lambda m, x: m.update(t=x)),
        (lambda: [jnp.zeros(2)], lambda m: m[0], lambda m, x: m.__setitem__(0, x)),
        (
            lambda: {"m": Counter()},
            lambda m: m["m"].total,
            lambda m, x: setattr(m["m"], "total", x),
        ),
        (Stats, lambda m: m.total[...], lambda m, x: m.total.set_value(x)),
        (
            lambda: pj.Dag(Counter()),
            lambda m: m.tree.total,
            lambda m, x: setattr(m.tree, "total", x),
        ),
    ],
    ids=["module", "record", "dict", "list", "nested", "nnx", "Dag"],
)
def test_what_is_written_comes_back(wrap: Any, make: Any, get: Any, put: Any) -> None:
    """Leaves that the function writes are written into the caller's objects, at each call."""

    def add(model: Any, x: Any) -> Any:
        put(model, get(model) + x)
        return x.sum()

    model, f = make(), wrap(add, update_argnums=0)
    assert float(f(model, PAIR)) == 3
    assert float(f(model, PAIR)) == 3
    assert get(model).tolist() == [2.0, 4.0]


@wrappers
def test_shared_parts_are_written_once_and_containers_stay(wrap: Any) -> None:
    """Objects of an updated argument stay the objects that they are, and shared ones shared."""

    def add(model: Any, x: Any) -> Any:
        model.again["mean"] = model.part["mean"] + x
        return x.sum()

    model = Counter()
    part = model.part
    wrap(add, update_argnames="model")(model, PAIR)
    assert model.part is part
    assert model.again is part
    assert part["mean"].tolist() == [1.0, 2.0]


@wrappers
def test_nothing_is_written_when_the_function_raises(wrap: Any) -> None:
    """An exception leaves the caller's objects as they were."""

    def fail(model: Any, x: Any) -> Any:
        model.total = model.total + x
        raise RuntimeError("stop")

    model = Counter()
    with pytest.raises(RuntimeError, match="stop"):
        wrap(fail, update_argnums=0)(model, PAIR)
    assert model.total.tolist() == [0.0, 0.0]


@wrappers
def test_static_leaves_and_structure_must_stay(wrap: Any) -> None:
    """Another static leaf, and another structure, are errors that say where; nothing is written."""

    def count(model: Any, x: Any) -> Any:
        model.total, model.calls = model.total + x, model.calls + 1
        return x.sum()

    def replace(model: Any, x: Any) -> Any:
        model.total = "none"
        return x.sum()

    def grow(model: Any, x: Any) -> Any:
        model.more = x * 2
        return x.sum()

    def untie(model: Any, x: Any) -> Any:
        model.again = {"mean": x * 2}
        return x.sum()

    model = Counter()
    with pytest.raises(
        ValueError, match=r"args\[0\]\.calls was 3 and is 4: .*\n.* make it an array"
    ):
        wrap(count, update_argnums=0)(model, PAIR)
    with pytest.raises(ValueError, match=r"args\[0\]\.total was an array and is 'none'"):
        wrap(replace, update_argnums=0)(model, PAIR)
    with pytest.raises(ValueError, match="more"):
        wrap(grow, update_argnums=0)(model, PAIR)
    with pytest.raises(SharingError, match="again"):
        wrap(untie, update_argnums=0)(model, PAIR)
    assert (model.calls, model.total.tolist(), hasattr(model, "more")) == (3, [0.0, 0.0], False)


def test_ties_between_arguments() -> None:
    """An object of two arguments is updated in both; a tie made or cut with another is an error."""

    def write(one: Any, two: Any) -> None:
        one["x"] = two["x"] = one["x"] + 1

    def cut(one: Any, two: Any) -> None:
        one["x"] = one["x"] + 1

    def tie(one: Any, two: Any) -> None:
        one["x"] = two["x"]

    shared = jnp.zeros(1)
    one, two = {"x": shared}, {"x": shared}
    pj.jit(write, update_argnums=(0, 1))(one, two)
    assert one["x"] is two["x"]
    assert one["x"].tolist() == [1.0]
    with pytest.raises(SharingError, match="cuts a tie"):
        pj.jit(cut, update_argnums=0)(one, two)
    with pytest.raises(SharingError, match="makes a tie"):
        pj.jit(tie, update_argnums=0)({"x": shared}, {"x": jnp.ones(1)})


def test_an_argument_that_is_an_array_holds_nothing() -> None:
    """Such an argument is no tie with what is updated, whatever is written."""

    def f(tree: Any, x: Any) -> Any:
        tree["w"], tree["v"] = tree["w"] + 1, x
        return {"a": x, "b": x + 1}

    held: Any = ((lambda x: x, PAIR), (lambda pair: pair[0], (PAIR, 1.0)))
    for get, x in held:
        tree = {"w": PAIR, "v": PAIR + 1}
        pj.jit(lambda tree, x, get=get: f(tree, get(x)), update_argnums=0)(tree, x)
        assert (tree["w"].tolist(), tree["v"].tolist()) == ([2.0, 3.0], [1.0, 2.0])
    one = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    for shardings in (None, one, {"a": None, "b": one}):
        tree = {"w": PAIR, "v": PAIR + 1}
        pj.jit(f, update_argnums=0, out_shardings=shardings)(tree, PAIR)
        assert (tree["w"].tolist(), tree["v"].tolist()) == ([2.0, 3.0], [1.0, 2.0])
        assert tree["v"] is not PAIR


def test_an_object_of_two_arguments_is_updated_if_one_is() -> None:
    """A module that an argument that isn't updated holds, too, is updated."""

    def write(one: Any, two: Any) -> Any:
        one.total = one.total + 1
        return two["m"].total

    model = Counter()
    out = pj.jit(write, update_argnums=0)(model, {"m": model})
    assert out.tolist() == model.total.tolist() == [1.0, 1.0]


def test_unchanged_leaves_are_neither_returned_nor_written() -> None:
    """The program returns the leaves that were written, and the others stay the caller's arrays."""

    def write(model: Any) -> None:
        model.total = model.total + 1

    model, f = Counter(), pj.jit(write, update_argnums=0)
    mean = model.part["mean"]
    f(model)
    assert model.part["mean"] is mean
    assert len(f.trace(model).jaxpr.jaxpr.outvars) == 1


@wrappers
def test_updates_nest(wrap: Any) -> None:
    """A function with an update may stand inside of one with an update."""

    def inner(model: Any, x: Any) -> Any:
        model.total = model.total + x
        return x.sum()

    def outer(model: Any, x: Any) -> Any:
        return wrap(inner, update_argnums=0)(model, x) + wrap(inner, update_argnums=0)(model, x)

    model = Counter()
    pj.jit(outer, update_argnums=0)(model, PAIR)
    assert model.total.tolist() == [2.0, 4.0]


# --- refs ---
@pytest.mark.parametrize(
    "run",
    [
        lambda draw, rng: pj.jit(draw)(rng),
        lambda draw, rng: pj.scan(lambda c, _: (c, draw(rng)), 0.0, length=2)[1],
        lambda draw, rng: pj.jit(lambda r: pj.cond(True, draw, draw, r))(rng),
        lambda draw, rng: pj.checkpoint(draw)(rng),
    ],
    ids=["jit", "scan", "cond", "checkpoint"],
)
def test_generators_of_jax_advance(run: Any) -> None:
    """A generator of `jax.experimental.random` draws other numbers at each call."""
    rng = stateful_rng(0)
    draw = lambda r: r.normal((2,))  # noqa: E731 (a name for what several wrappers are given)
    first, second = run(draw, rng), run(draw, rng)
    assert first.tolist() != second.tolist()
