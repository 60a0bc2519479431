# SPDX-License-Identifier: Apache-2.0
"""What comes out: gradients, numbers in the place of arrays, iterators, tracers, origins."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import equinox
import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pydag
import pydag.jaxinterop as pj

X = jnp.arange(3.0)


class Model(pj.Module):
    """A tie, integers, and configuration."""

    def __init__(self) -> None:
        self.w = jnp.arange(3.0)
        self.tied, self.steps, self.act, self.heads = self.w, jnp.int32(4), jnp.tanh, 4


def loss(m: Any) -> Any:
    """The sum of squares, tied: its derivative is 4 times the array."""
    return (m.w * m.w + m.tied * m.tied).sum()


LIKE_A_GRADIENT: dict[str, Callable[[Any], Any]] = {
    "grad": pj.grad(loss),
    "value_and_grad": lambda m: pj.value_and_grad(loss)(m)[1],
    "jit of grad": pj.jit(pj.grad(loss)),
    "jacrev": pj.jacrev(loss),
    "jacfwd": pj.jacfwd(loss),
    "vjp": lambda m: pj.vjp(loss, m)[1](1.0)[0],
}


@pytest.mark.parametrize("name", LIKE_A_GRADIENT)
def test_a_gradient_has_the_form_of_its_model(name: str) -> None:
    """Class, sharing and configuration stay; None stands where it isn't by."""
    found = LIKE_A_GRADIENT[name](Model())
    assert type(found) is Model
    assert found.w.tolist() == [0.0, 4.0, 8.0]
    assert found.w is found.tied
    assert found.steps is None
    assert found.act is jnp.tanh
    assert found.heads == 4


def test_jax_maps_over_a_model_and_its_gradient() -> None:
    """The gradient has the structure that JAX sees of a model without integers."""

    class Net(pj.Module):
        def __init__(self) -> None:
            self.w, self.heads = jnp.arange(3.0), 4
            self.tied = self.w

    net = Net()
    new = jax.tree.map(lambda p, g: p - g, net, pj.grad(loss)(net))
    assert new.w.tolist() == [0.0, -3.0, -6.0]
    assert new.w is new.tied
    assert new.heads == 4


class OfEquinox(equinox.Module):
    """In which JAX sees configuration as leaves."""

    w: Any
    heads: Any


@flax.struct.dataclass
class OfFlax:
    """The same of flax."""

    w: Any
    heads: Any


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Checked:
    """It refuses None when it is built."""

    w: Any
    heads: Any

    def __post_init__(self) -> None:
        if self.w.shape != (3,) or self.heads.dtype != jnp.int32:
            raise ValueError("other shapes")


@pytest.mark.parametrize("cls", [OfEquinox, OfFlax, Checked])
def test_where_jax_sees_configuration_none_stands(cls: Any) -> None:
    """Also in the field of a class whose constructor refuses it; never for what was computed."""
    heads = jnp.int32(4) if cls is Checked else 4
    found = pj.grad(lambda m: (m.w**2).sum())(cls(X, heads))
    assert type(found) is cls
    assert found.w.tolist() == [0.0, 2.0, 4.0]
    assert found.heads is None
    model = cls(X, heads)
    assert pj.tree.map(lambda p, g: p - g, model, found).w.tolist() == [0.0, -1.0, -2.0]


def test_what_wrt_leaves_out_is_none() -> None:
    """In records and dicts configuration is None, too: a head count must not be doubled."""
    found = pj.grad(lambda m: (m["w"] * m["v"]).sum(), wrt="*w*")({"w": X, "v": X + 1, "heads": 4})
    assert found["w"].tolist() == [1.0, 2.0, 3.0]
    assert (found["v"], found["heads"]) == (None, None)


@pytest.mark.parametrize("map_over", [pj.tree.map, jax.tree.map])
def test_a_number_in_the_place_of_an_array_becomes_one(map_over: Any) -> None:
    """Masks and sizes keep structure and sharing; so do axes."""
    sizes = map_over(lambda x: x.ndim, Model())
    assert sizes.w.shape == ()
    assert (int(sizes.w), int(sizes.steps), sizes.heads) == (1, 0, 4)
    assert sizes.w is sizes.tied
    assert pydag.dag_structure(sizes) == pydag.dag_structure(Model())


def test_an_object_of_the_callers_comes_back_as_itself() -> None:
    """A ref always; containers and modules of arguments that are updated."""
    ref, model = jax.new_ref(X), Model()
    assert pj.jit(lambda r: {"r": r})(ref)["r"] is ref

    def step(m: Any) -> Any:
        m.w = m.tied = m.w + 1
        return [m]

    for _ in range(2):
        assert pj.jit(step, update_argnums=0)(model)[0] is model
    assert model.w.tolist() == [2.0, 3.0, 4.0]


def act(held: Any, inner: Any = None) -> Any:
    """A function that has something in an attribute."""

    def act(y: Any) -> Any:
        return y

    act.held = held  # type: ignore[attr-defined]  # what is tested
    return act


def cyclic(items: list[Any]) -> list[Any]:
    """A list that also holds itself."""
    items.append(items)
    return items


HELD: dict[str, tuple[Callable[[Any], Any], str]] = {
    "itself": (act, r"result\['f'\]"),
    "in a list": (lambda x: act([1, {"k": x}]), r"result\['f'\]"),
    "below": (lambda x: act(act(x)), r"result\['f'\]"),
    "of a partial": (lambda x: functools.partial(act(x), 2), r"result\['f'\]"),
    "of jitted": (lambda x: jax.jit(act(x)), r"result\['f'\]"),
    "wrapped": (lambda x: functools.wraps(act(x))(lambda y: y), r"result\['f'\]"),
    "in a tuple": (lambda x: (act(x), 1), r"result\['f'\]\[0\]"),
    "in a dict": (lambda x: {"g": [act(x)]}, r"result\['f'\]\['g'\]\[0\]"),
    "of a node": (lambda x: jax.tree_util.Partial(act(x), x), r"result\['f'\].func"),  # type: ignore[no-untyped-call]  # JAX gives it no types
    "of a cycle": (lambda x: act(cyclic([x])), r"result\['f'\]"),
}
TRACED: dict[str, Callable[[Any], Any]] = {
    "jit": lambda f: pj.jit(f)(X),
    "vmap": lambda f: pj.vmap(f)(X),
    "checkpoint": lambda f: pj.checkpoint(f)(X),
    "eval_shape": lambda f: pj.eval_shape(f, X),
    "grad": lambda f: pj.grad(lambda x: (x.sum(), f(x)), has_aux=True)(X),
}


@pytest.mark.parametrize("name", HELD)
@pytest.mark.parametrize("wrap", TRACED)
def test_a_tracer_in_an_attribute_of_a_function(name: str, wrap: str) -> None:
    """It is gone when the function has returned: an error with the path of the function."""
    make, path = HELD[name]
    with pytest.raises(
        TypeError, match=path.replace("result", r"result(\[1\])?") + " is [\\s\\S]*trac"
    ):
        TRACED[wrap](lambda x: {"f": make(x), "y": x})


def test_other_things_in_attributes_of_functions() -> None:
    """They are the caller's matter."""
    for held in (3, X, [X], pj.jit(act(2)), jax.jit(act(2)), act(X)):
        function = act(held)
        assert pj.jit(lambda x, f=function: {"f": f, "y": x})(X)["f"] is function


NUMPYS: dict[str, Any] = {
    "flag": np.bool_(True),
    "float32": np.float32(3),
    "int64": np.int64(3),
    "complex": np.complex64(2j),
    "bfloat16": np.asarray(2, jnp.bfloat16)[()],
    "array": np.arange(3.0),
    "float0": np.zeros((), jax.dtypes.float0),
    "float0 array": np.zeros((2,), jax.dtypes.float0),
    "dict": {"a": np.bool_(False), "b": np.zeros(2)},
    "tuple": (np.float32(1), np.arange(2)),
}

RETURNING: dict[str, Callable[[Any, Callable[[Any], Any]], Any]] = {
    "jit": lambda lib, f: lib.jit(f)(X),
    "jit twice": lambda lib, f: [g := lib.jit(f), g(X), g(X)][1:],
    "checkpoint": lambda lib, f: lib.checkpoint(f)(X),
    "value_and_grad": lambda lib, f: lib.value_and_grad(f)(X),
    "vjp": lambda lib, f: lib.vjp(f, X)[0],
    "linearize": lambda lib, f: lib.linearize(f, X)[0],
    "vmap": lambda lib, f: lib.vmap(f)(X),
    "vmap, one axis each": lambda lib, f: lib.vmap(
        lambda x: {"a": f(x), "b": x}, out_axes={"a": None, "b": 0}
    )(X),
    "cond": lambda lib, f: getattr(lib, "lax", lib).cond(True, f, f, X),
    "scan": lambda lib, f: getattr(lib, "lax", lib).scan(lambda c, x: (c, f(x)), 1.0, X),
}


def outcome(call: Callable[[], Any]) -> Any:
    """The kinds, types and values of a result; or the type of the error."""
    try:
        result = call()
    except Exception as error:
        return type(error)
    leaves, structure = jax.tree.flatten(result)
    found = [(type(x), jnp.result_type(x), np.shape(x), str(np.asarray(x))) for x in leaves]
    return found, structure


@pytest.mark.parametrize("value", NUMPYS.values(), ids=NUMPYS)
@pytest.mark.parametrize("call", RETURNING.values(), ids=RETURNING)
@pytest.mark.parametrize("is_disabled", [False, True])
def test_a_result_of_numpys_comes_out_as_jax_gives_it(
    value: Any, call: Any, is_disabled: bool
) -> None:
    """Scalars, flags, arrays and float0: NumPy has a function `fill` of its own."""
    with jax.disable_jit(is_disabled):
        assert outcome(lambda: call(pj, lambda _: value)) == outcome(
            lambda: call(jax, lambda _: value)
        )


def test_the_derivative_by_an_integer_comes_out() -> None:
    """An array of float0, bare or in a dict, also where nothing is compiled."""

    def derivative(i: Any) -> Any:
        return jax.grad(lambda i: i * 2.0, allow_int=True)(i)

    for is_disabled in (False, True):
        with jax.disable_jit(is_disabled):
            for found in (
                pj.jit(derivative)(jnp.int32(1)),
                pj.jit(lambda i: {"a": derivative(i)})(jnp.int32(1))["a"],
                pj.grad(lambda i: i * 2.0, allow_int=True)(jnp.int32(1)),
            ):
                assert (found.dtype, found.shape) == (jax.dtypes.float0, ())


class Filling(pj.Module):
    """Has the names by which results of the core were known."""

    def __init__(self, tree: Any) -> None:
        self.tree = tree

    def fill(self, _: Any) -> None:
        raise AssertionError("this is the user's")


def test_the_names_of_a_class_say_nothing() -> None:
    """A class with a function `fill` and a property `tree` is what it is."""
    for wrap in (pj.jit, pj.checkpoint, lambda f: f):
        with jax.disable_jit(wrap is not pj.jit):
            assert wrap(Filling)(X).tree.tolist() == [0.0, 1.0, 2.0]


class Doubling:
    """A callable with the attributes of a partial."""

    func, args, keywords = None, (), ("a",)

    def __call__(self, x: Any) -> Any:
        return 2 * x


def test_a_callable_with_keywords_is_no_partial() -> None:
    """In a `Partial` it is an object of a class that isn't registered."""
    with pytest.raises(TypeError, match=r"args\[0\].func is an object of .*Doubling"):
        pj.jit(lambda f, x: f(x))(jax.tree_util.Partial(Doubling()), X)  # type: ignore[no-untyped-call]  # JAX's class
