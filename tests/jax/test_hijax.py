# SPDX-License-Identifier: Apache-2.0
"""Leaves of types that aren't arrays to JAX, and objects that JAX could make arrays of."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest
from jax.experimental import hijax
from wrappers import WRAPPERS

import pydag
import pydag.jaxinterop as pj

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
    """Its derivative is the sum over both places, twice that of `jax.grad` at each."""
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
    """Its update is added to it, and what is shared stays so."""
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
    """And the cure works: it is left out by `wrt=`."""
    with pytest.raises(TypeError, match=r"can't train params\['a'\], of type halves(.|\n)*wrt"):
        pj.optimizer(tx).init(shared())
    assert pj.optimizer(tx, wrt="['w']").init(shared()) is not None


@has_types
def test_what_optax_can_t_update_is_an_error_with_its_path() -> None:
    """Where it needs the parameter; and where the sum isn't of the type."""
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
    """As `jax.lax` does."""
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
    """In each wrapper, as an argument, with the path: it would have no gradient."""
    model = {"scale": cls(jnp.full(2, 3.0)), "w": jnp.ones(2)}
    with pytest.raises(TypeError, match=r"\['scale'\] is an object of .*not registered"):
        WRAPPERS[name](lambda t: t)(model)


def test_and_in_optimizers_and_results() -> None:
    """It would have no moment; and JAX takes none as a result."""
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
    """Then it is a node, which has a gradient and a moment."""

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
