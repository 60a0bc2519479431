# SPDX-License-Identifier: Apache-2.0
"""What is traced, also of types that aren't arrays to JAX; what a static leaf may be."""

import dataclasses
import enum
import functools
import re
import threading
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.experimental import hijax
from wrappers import WRAPPERS

import pydag
import pydag.functools
import pydag.jaxinterop as pj

X = jnp.ones(2)
Partial: Any = jax.tree_util.Partial
Described: Any = jax.ShapeDtypeStruct


class Model(pj.Module):
    """A module that holds one thing beside an array."""

    def __init__(self, held: Any) -> None:
        self.w, self.held = X, held


@pydag.register_fields
class Record:
    """A record that holds one thing."""

    def __init__(self, held: Any) -> None:
        self.held = held


@pydag.register_fields(meta_fields=("meta",))
class WithMeta:
    """A record with a meta field."""

    def __init__(self, held: Any, meta: Any) -> None:
        self.held, self.meta = held, meta


def is_traced_in(make: Any, read: Any) -> bool:
    """Whether a function by `jit` gets a tracer at a place."""
    found = []
    pj.jit(lambda tree: found.append(isinstance(read(tree), jax.core.Tracer)))(make)
    return found[0]


@pytest.mark.parametrize(
    ("tree", "read", "expected"),
    [
        (3, lambda t: t, True),
        ({"n": 3}, lambda t: t["n"], True),
        (Record(2.0), lambda t: t.held, True),
        (Model(3), lambda t: t.held, False),
        (Model(True), lambda t: t.held, False),
        (Model(np.float32(3)), lambda t: t.held, False),
        (Model({"a": [3]}), lambda t: t.held["a"][0], False),
        (Model(Record(3)), lambda t: t.held.held, True),
        (Record(Model(3)), lambda t: t.held.held, False),
        (Model(np.array(3)), lambda t: t.held, True),
        (Model(np.ones(2, "float16")), lambda t: t.held, True),
    ],
)
def test_numbers_are_data_beside_modules_and_configuration_in_them(
    tree: Any, read: Any, expected: bool
) -> None:
    """The nearest registered owner decides about numbers; arrays are traced wherever they are."""
    assert is_traced_in(tree, read) is expected


def test_descriptions_count_as_arrays_where_arrays_are_described() -> None:
    """`eval_shape` and `lower` take `jax.ShapeDtypeStruct`; a call doesn't."""
    described = {"w": Described((2,), "float32")}
    assert pj.eval_shape(lambda t: t["w"] * 2, described).shape == (2,)
    assert pj.jit(lambda t: t["w"] * 2).lower(described).out_info.shape == (2,)
    with pytest.raises(TypeError, match=r"args\[0\]\['w'\]"):
        pj.jit(lambda t: t["w"] * 2)(described)


class Color(enum.Enum):
    """An enumeration."""

    RED = 1


class Value:
    """It says that it is a value, by both methods."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and self.n == other.n

    def __hash__(self) -> int:
        return self.n


@pytest.mark.parametrize(
    "value",
    [
        "text", b"bytes", Color.RED, np.dtype("int8"), ..., jnp.tanh, len, dict, types, np.add,
        jax.jit(jnp.sin), jax.devices()[0], functools.partial(jnp.clip, min=0), (1, "a"),
        frozenset({1}), Value(1), range(3), str.upper,
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_values_are_static_leaves(value: Any) -> None:
    """What can be compared by what it is comes in as it is, in dicts and in modules."""
    tree = {"x": X, "held": value} if not isinstance(value, tuple) else {"x": X, "held": "tuple"}
    seen: list[Any] = []
    pj.jit(lambda t, m: seen.extend((t["held"], m.held)))(tree, Model(value))
    assert seen == [tree["held"], value]


class Plain:
    """A class that nobody registered."""

    def __init__(self) -> None:
        self.w = X

    def method(self) -> None:
        """Is bound to an object that holds an array."""

    def __call__(self) -> None:
        """Makes instances callable."""


@pytest.mark.parametrize(
    ("leaf", "cure"),
    [
        (Plain(), r"Plain(.|\n)*pj.Module(.|\n)*register_m(.|\n)*register_f(.|\n)*static=Plain"),
        (threading.Lock(), "lock"),
        (Plain().method, "jax.tree_util.Partial"),
        (functools.partial(jnp.add, X), "jax.tree_util.Partial"),
        (iter([1]), "list"),
        ({"a": 1}.values(), "list"),
        (memoryview(b"ab"), "list"),
        (np.array([X, None], object), "list or a tuple"),
        (Partial(functools.partial(jnp.add, X)), "jax.tree_util.Partial"),
        (pydag.functools.partial(functools.partial(jnp.add, X)), "jax.tree_util.Partial"),
        (Partial(Plain()), "Plain"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "wrapped",
    [
        lambda t: pj.jit(lambda t: 1.0)(t),
        lambda t: pj.grad(lambda t: t["x"].sum())(t),
        lambda t: pj.vmap(lambda t: t["x"])(t),
        lambda t: pj.checkpoint(lambda t: t["x"])(t),
        lambda t: pj.scan(lambda c, _: (c, None), t, None, length=1),
        lambda t: pj.cond(True, lambda t: t["x"], lambda t: t["x"], t),
        lambda t: pj.eval_shape(lambda t: t["x"], t),
    ],
    ids=["jit", "grad", "vmap", "checkpoint", "scan", "cond", "eval_shape"],
)
def test_what_might_hide_an_array_is_an_error(wrapped: Any, leaf: Any, cure: str) -> None:
    """A `TypeError` has the path and the cure, in every wrapper."""
    with pytest.raises(TypeError, match=r"\['held'\]") as caught:
        wrapped({"x": X, "held": leaf})
    assert re.search(cure, str(caught.value))


class One(NamedTuple):
    """A named tuple."""

    x: int


class Other(NamedTuple):
    """Another one."""

    x: int


class Float(float):
    """Compares by its number."""


@dataclasses.dataclass(frozen=True)
class Frozen:
    """Compared and hashed by its fields."""

    size: Any


def apply(x: Any, value: Any) -> Any:
    """A function for partials and derived leaves."""
    return x


PAIRS = [
    (True, 1), (1, 1.0), (0.0, -0.0), ((True,), (1,)), ((0.0,), (-0.0,)), (np.float64(0), -0.0),
    (complex(0, 0.0), complex(0, -0.0)), (frozenset({True}), frozenset({1})),
    (functools.partial(max, True), functools.partial(max, 1)),
    (functools.partial(max, key=0.0), functools.partial(max, key=-0.0)),
    (np.float32(1), np.float64(1)), (np.int64(1), 1),
    (One(1), Other(1)), (Float(0.0), Float(-0.0)), (range(0, 3, 2), range(0, 4, 2)),
    (Frozen((0.0,)), Frozen((-0.0,))),
]  # fmt: skip

PLACES: dict[str, Any] = {
    "a module": (lambda v: (Model(v),), lambda m: m.held, {}),
    "a meta field": (lambda v: (WithMeta(X, v),), lambda r: r.meta, {}),
    "a static argument": (lambda v: (v,), lambda v: v, {"static_argnums": 0}),
    "a key of a dict": (lambda v: ({v: X},), lambda t: next(iter(t)), {}),
    "a part of a partial": (
        lambda v: ([functools.partial(apply, value=v), X],),
        lambda t: t[0].keywords["value"],
        {},
    ),
    "a keyword of a derived leaf": (
        lambda v: (pj.Derived(apply, X, value=v),),
        lambda d: d.kwargs["value"],
        {},
    ),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("one", "other"), PAIRS, ids=str)
def test_values_are_equal_if_their_types_are(place: str, one: Any, other: Any) -> None:
    """What `==` takes for equal and isn't gets a trace of its own; equal values share one."""
    if place == "a module" and isinstance(one, tuple):
        one, other = {"t": one}, {"t": other}  # a tuple is opened; its items are compared
    make, read, options = PLACES[place]
    seen: list[str] = []
    function = pj.jit(lambda tree: seen.append(repr(read(tree))), **options)
    for value in (one, other, one, other):
        function(*make(value))
    assert seen == [repr(one), repr(other)]


def test_nan_is_nan() -> None:
    """Two NaNs are one value: nothing is traced again."""
    seen: list[Any] = []
    function = pj.jit(lambda m: seen.append(m.held))
    function(Model(float("nan")))
    function(Model(float("nan")))
    assert len(seen) == 1


@pydag.register_module
class Registered:
    """A module of another base."""

    def __init__(self) -> None:
        self.w = X


@pytest.mark.parametrize("model", [Model(1), Registered(), Record(X), {"w": X}, [np.ones(2)]])
def test_a_model_is_no_static_argument(model: Any) -> None:
    """The model would be a constant: a `ValueError` says to pass it as an ordinary argument."""
    with pytest.raises(ValueError, match=r"args\[0\](.|\n)*as an ordinary argument"):
        pj.jit(lambda m, x: x, static_argnums=0)(model, 1.0)


@pytest.mark.parametrize("wrap", [pj.jit, pj.checkpoint], ids=["jit", "checkpoint"])
@pytest.mark.parametrize("chosen", [{"static_argnums": 0}, {"static_argnames": "held"}], ids=str)
def test_a_static_argument_may_be_an_object_of_any_class(wrap: Any, chosen: Any) -> None:
    """Who names it has said that it is a constant, as in JAX."""
    plain = Plain()
    function = wrap(lambda held, x: x * held.w, **chosen)
    assert function(plain, X).tolist() == [1.0, 1.0]
    assert wrap(lambda n, x: x * (n + 1 if type(n) is int else 0), static_argnums=0)(1, X)[0] == 2.0


def test_the_order_of_dicts_and_attributes_is_seen() -> None:
    """Inside and in results it is what it is without `jit`; the leaves don't depend on it."""
    ordered = pj.jit(lambda t: (t, {"order": "".join(t)}))
    for keys in ("ab", "ba", "ab"):
        out, seen = ordered({key: X * i for i, key in enumerate(keys)})
        assert (list(out), seen["order"]) == (list(keys), keys)
    one, other = Model(X * 2), Model(X * 2)
    vars(other).update({name: vars(other).pop(name) for name in ("w", "held")[::-1]})
    names = pj.jit(lambda m: {"names": ".".join(vars(m))})
    assert names(one)["names"] == ".".join(vars(one))
    assert names(other)["names"] == ".".join(vars(other))
    assert pydag.dag_structure(one) == pydag.dag_structure(other)


F32 = jnp.dtype("float32")


@dataclasses.dataclass(frozen=True)
class Halves:
    """Two arrays that JAX sees as one value; it can be added to."""

    hi: Any
    lo: Any

    def __add__(self, change: Any) -> "Halves":
        return Halves(self.hi + change, self.lo)


class Bare(Halves):
    """One that can't be added to."""

    __add__: Any = None


class Label(Halves):
    """One without a derivative."""


@dataclasses.dataclass(frozen=True)
class HalvesType(hijax.HiType):
    """JAX's type of these."""

    n: int
    cls: type

    def lo_ty(self) -> Any:
        return [hijax.ShapedArray((self.n,), F32)] * 2

    def lower_val(self, value: Any) -> Any:
        return [value.hi, value.lo]

    def raise_val(self, hi: Any, lo: Any) -> Any:
        return self.cls(hi, lo)

    def to_tangent_aval(self) -> Any:
        return hijax.ShapedArray((self.n,), jax.dtypes.float0 if self.cls is Label else F32)

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        return f"halves[{self.n}]"

    __repr__ = str_short


for _cls in (Halves, Bare, Label):
    hijax.register_hitype(_cls, lambda x: HalvesType(x.hi.shape[0], type(x)))


if hasattr(hijax, "HiPrim"):

    class Join(hijax.HiPrim):  # type: ignore[misc, name-defined, unused-ignore]  # untyped base
        """The sum of both."""

        def __init__(self, of: Any) -> None:
            params: dict[str, Any] = {}
            self.in_avals, self.out_aval = (of,), hijax.ShapedArray((of.n,), F32)
            self.params = params
            super().__init__()  # type: ignore[no-untyped-call, unused-ignore]  # untyped

        def expand(self, value: Any) -> Any:
            return value.hi + value.lo

        def vjp_fwd(self, nzs_in: Any, value: Any) -> Any:
            return self(value), None

        def vjp_bwd_retval(self, res: Any, g: Any) -> Any:
            return (g,)


has_types = pytest.mark.skipif(
    not hasattr(hijax, "HiPrim"), reason="this JAX defines operations on such types otherwise"
)


def join(value: Any) -> Any:
    """An operation of JAX on such a value."""
    return Join(jax.typeof(value))(value)


def halves(cls: type = Halves) -> Any:
    return cls(jnp.arange(3.0), jnp.full(3, 0.5))


def loss(m: Any) -> Any:
    return (join(m["a"]) * join(m["b"]) * m["w"]).sum()


def shared(cls: type = Halves) -> dict[str, Any]:
    """One such leaf at two places."""
    leaf = halves(cls)
    return {"a": leaf, "b": leaf, "w": jnp.ones(3)}


GRADIENTS: dict[str, Callable[[Any], Any]] = {
    "grad": pj.grad(loss),
    "jit of grad": pj.jit(pj.grad(loss)),
    "grad of jit": pj.grad(pj.jit(loss)),
    "value_and_grad": lambda m: pj.value_and_grad(loss)(m)[1],
    "vjp": lambda m: pj.vjp(loss, m)[1](jnp.ones(()))[0],
    "wrt a class": pj.grad(loss, wrt=[Halves, "['w']"]),
    "wrt a pattern": pj.grad(loss, wrt="**"),
    "wrt a predicate": pj.grad(loss, wrt=lambda x: True),
    "of a Dag": lambda m: jax.grad(lambda d: loss(d.tree))(pj.Dag(m)).tree,
}


@has_types
@pytest.mark.parametrize("how", GRADIENTS)
def test_a_leaf_of_a_hijax_type_has_a_gradient(how: str) -> None:
    """The leaf's derivative is the sum over both places, twice that of `jax.grad` at each."""
    model = shared()
    one = jax.grad(loss)(model)
    gradient = GRADIENTS[how](model)
    assert one["a"].tolist() == [0.5, 1.5, 2.5]
    assert one["w"].tolist() == [0.25, 2.25, 6.25]
    assert gradient["a"] is gradient["b"]
    assert gradient["a"].tolist() == [1.0, 3.0, 5.0]
    assert gradient["w"].tolist() == [0.25, 2.25, 6.25]


@has_types
def test_a_type_says_whether_it_has_a_derivative() -> None:
    """Where its tangents are float0, None stands in the gradient, as for an integer."""

    def f(m: Any) -> Any:
        return (m["w"] ** 2).sum()

    gradient = pj.grad(f)({"a": halves(Label), "w": jnp.ones(3)})
    assert gradient["a"] is None
    assert gradient["w"].tolist() == [2.0, 2.0, 2.0]
    state = pj.optimizer(optax.adam(0.1)).init({"a": halves(Label), "w": jnp.ones(3)})
    assert state[0].mu.keys() == {"w"}


@has_types
def test_cotangents_of_a_result() -> None:
    """A result of such a type takes its cotangent, and None for zero."""
    model = {"a": halves(), "w": jnp.ones(3)}
    _, pull = pj.vjp(lambda m: m, model)
    one = jnp.ones(3)
    assert pull({"a": 2 * one, "w": one})[0]["a"].tolist() == [2.0, 2.0, 2.0]
    assert pull({"a": None, "w": one})[0]["a"].tolist() == [0.0, 0.0, 0.0]


@has_types
def test_rules_of_ones_own() -> None:
    """A rule gives the derivative of such a leaf."""
    f = pj.custom_vjp(lambda m: join(m["a"]).sum())
    f.defvjp(lambda m: (f(m), None), lambda _, g: ({"a": jnp.full(3, 7.0) * g},))
    assert pj.grad(f)({"a": halves()})["a"].tolist() == [7.0, 7.0, 7.0]


@has_types
def test_training_with_what_optax_can_do() -> None:
    """The leaf's update is added to it, and what is shared stays so."""
    opt, model = pj.optimizer(optax.sgd(1.0)), shared()
    updates, _ = opt.update(pj.grad(loss)(model), opt.init(model), model)
    model = pj.apply_updates(model, updates)
    assert type(model["a"]) is Halves
    assert model["a"] is model["b"]
    assert model["a"].hi.tolist() == [-1.0, -2.0, -3.0]
    assert model["w"][0] == 0.75


@has_types
@pytest.mark.parametrize(
    "tx", [optax.adam(0.1), optax.sgd(0.1, momentum=0.9), optax.lamb(0.1)], ids=["a", "m", "l"]
)
def test_what_optax_can_t_train_is_an_error_with_its_path(tx: Any) -> None:
    """The cure works: the leaf is left out by `wrt=`."""
    with pytest.raises(TypeError, match=r"can't train params\['a'\], of type halves(.|\n)*wrt"):
        pj.optimizer(tx).init(shared())
    assert pj.optimizer(tx, wrt="['w']").init(shared()) is not None


@has_types
def test_what_optax_can_t_update_is_an_error_with_its_path() -> None:
    """An optimizer may need the parameter; and a sum may not be of the type."""
    decay = pj.optimizer(optax.add_decayed_weights(0.1))
    with pytest.raises(TypeError, match=r"can't train params\['a'\]"):
        decay.update(pj.grad(loss)(shared()), decay.init(shared()), shared())
    model = shared(Bare)
    with pytest.raises(TypeError, match=r"can't update params\['a'\]: its type halves\[3\] has no"):
        pj.apply_updates(model, pj.grad(loss)(model))
    updates = {**pj.grad(loss)(model), "a": None, "b": None}
    assert pj.apply_updates(model, updates)["a"] is model["a"]


@has_types
def test_loops_and_branches_carry_them() -> None:
    """Values are those of `jax.lax`."""
    model = {"a": halves(), "n": 0}
    found = pj.while_loop(lambda m: m["n"] < 3, lambda m: {**m, "n": m["n"] + 1}, model)
    assert found["a"].hi.tolist() == [0.0, 1.0, 2.0]
    assert found["n"] == 3
    joined: Any = pj.cond(True, lambda m: join(m["a"]), lambda m: -join(m["a"]), model)
    assert joined.tolist() == [0.5, 1.5, 2.5]
    with pytest.raises(ValueError, match="leading-axis size of non-array"):
        pj.scan(lambda c, m: (c, join(m["a"])), 0.0, model["a"])


class Parameter:
    """Says how to make an array of it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __jax_array__(self) -> Any:
        return self.value


class ByValue(Parameter):
    """One that says that it is a value, too."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByValue)

    def __hash__(self) -> int:
        return 1


@pytest.mark.parametrize("cls", [Parameter, ByValue])
@pytest.mark.parametrize("name", WRAPPERS)
def test_an_object_with_jax_array_is_an_error(name: str, cls: Any) -> None:
    """Each wrapper names the argument with its path: the object would have no gradient."""
    model = {"scale": cls(jnp.full(2, 3.0)), "w": jnp.ones(2)}
    with pytest.raises(TypeError, match=r"\['scale'\] is an object of .*not registered"):
        WRAPPERS[name](lambda t: t)(model)


def test_and_in_optimizers_and_results() -> None:
    """The object would have no moment; and JAX takes none as a result."""
    model = {"scale": Parameter(jnp.full(2, 3.0)), "w": jnp.ones(2)}
    for call in (
        pj.optimizer(optax.adam(0.1)).init,
        lambda m: pj.apply_updates(m, m),
        lambda m: pj.tree.map(lambda x: x, m),
        lambda m: pj.jit(lambda x: {"scale": Parameter(x)})(1.0),
    ):
        with pytest.raises(TypeError, match=r"\['scale'\] is an object of .*Parameter"):
            call(model)


def test_registering_it_is_the_cure() -> None:
    """A registered object is a node, which has a gradient and a moment."""

    class Late(Parameter):
        pass

    pydag.register_fields(Late)
    model = {"scale": Late(jnp.full(2, 3.0)), "w": jnp.ones(2)}
    gradient = pj.grad(lambda m: (m["scale"].value * m["w"]).sum())(model)
    assert gradient["scale"].value.tolist() == [1.0, 1.0]
    assert pj.optimizer(optax.adam(0.1)).init(model)[0].mu["scale"]["value"].tolist() == [0.0, 0.0]


@has_types
def test_variables_of_a_hijax_type() -> None:
    """Flax makes such Variables: they have gradients, are trained, and stay Variables."""
    nnx = pytest.importorskip("flax.nnx")

    class Net(nnx.Module):  # type: ignore[misc, name-defined, unused-ignore]  # untyped base
        def __init__(self) -> None:
            self.w, self.mean = nnx.Param(jnp.ones(2)), nnx.BatchStat(jnp.ones(2))

    net = nnx.with_vars(Net(), hijax=True)

    def f(m: Any) -> Any:
        return (m.w[...] ** 2 * m.mean[...]).sum()

    opt = pj.optimizer(optax.adam(1.0))
    state = opt.init(net)
    assert state[0].mu.keys() == {"w"}
    for gradient in (pj.grad(f)(net), pj.jit(pj.grad(f))(net)):
        assert gradient.mean is None
        assert gradient.w[...].tolist() == [2.0, 2.0]
    updates, state = opt.update(gradient, state, net)
    new = pj.apply_updates(net, updates)
    assert isinstance(new.w, nnx.Param)
    assert isinstance(new.mean, nnx.BatchStat)
    assert jnp.allclose(new.w[...], 0.0, atol=1e-4)
    assert new.mean[...].tolist() == [1.0, 1.0]
    assert jnp.allclose(state[0].mu["w"], 0.2)
