# SPDX-License-Identifier: Apache-2.0
"""What a module holds as a number or a flag is configuration; in a record it is data."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, deque, namedtuple
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from wrappers import WRAPPERS

import pydag
from pydag import jaxinterop
from pydag.jaxinterop import Dag


class Module:
    """Every subclass is a module."""

    def __init_subclass__(cls) -> None:
        pydag.register_module(cls)


class Norm(Module):
    """An array, a number, a flag and a width."""

    def __init__(self, eps: Any = 0.5) -> None:
        self.scale = jnp.ones((2, 2, 2))
        self.eps = eps
        self.is_training = True
        self.shape: list[Any] = [2, (1, {"channels": 3})]

    def __call__(self, x: Any) -> Any:
        assert self.is_training is True
        assert type(self.eps) is float
        assert jnp.zeros(self.shape[0]).shape == (2,)
        return x * self.scale + self.eps


@pydag.register_fields
class Record:
    def __init__(self, x: Any) -> None:
        self.x = x


def loss(norm: Norm, x: Any) -> Any:
    return jnp.sum(norm(x) ** 2)


def test_a_function_branches_on_flags_and_shapes_by_numbers() -> None:
    """Under `jit` and under `grad`, as without."""
    norm = Norm()
    expected = loss(norm, 2.0)
    assert jaxinterop.jit(loss)(norm, 2.0) == expected
    assert jaxinterop.jit(jaxinterop.value_and_grad(loss))(norm, 2.0)[0] == expected


def test_configuration_is_not_differentiated() -> None:
    """It stays in the gradient, being structure; the arrays have theirs."""
    for gradient in (
        jaxinterop.grad(loss)(Norm(), 2.0),
        jaxinterop.jit(jaxinterop.grad(loss))(Norm(), 2.0),
        jaxinterop.vjp(loss, Norm(), 2.0)[1](jnp.float32(1.0))[0],
    ):
        assert gradient.scale.tolist() == np.full((2, 2, 2), 10.0).tolist()
        assert (gradient.eps, gradient.is_training) == (0.5, True)
        assert gradient.shape == [2, (1, {"channels": 3})]


def test_numbers_of_records_and_dicts_are_traced() -> None:
    """As in JAX."""
    for tree in (Record(3.0), {"x": 3.0}, 3.0, [Record({"x": (3.0,)})]):

        def f(tree: Any) -> Any:
            [x] = pydag.dag_leaves(tree)
            assert isinstance(x, jax.core.Tracer)
            return x**2

        assert pydag.dag_leaves(jaxinterop.grad(f)(tree)) == [6.0]
        assert jaxinterop.jit(f)(tree) == 9.0


Pair = namedtuple("Pair", "a b")

HOLDERS: dict[str, Any] = {
    "itself": lambda x: x,
    "list": lambda x: [x],
    "tuple": lambda x: (x, [x]),
    "dict": lambda x: {"a": x},
    "OrderedDict": lambda x: OrderedDict(a=x),
    "deque": lambda x: deque([x]),
    "namedtuple": lambda x: Pair(x, [x]),
    "nested": lambda x: {"a": [(x, {"b": deque([x])})]},
}


@pytest.mark.parametrize("number", [True, 3, 0.5, 2j])
@pytest.mark.parametrize("holder", HOLDERS)
def test_the_nearest_registered_owner_counts(holder: str, number: Any) -> None:
    """Builtin containers are looked through; a record in a module holds data, and vice versa."""

    class Holder(Module):
        def __init__(self, content: Any) -> None:
            self.content = HOLDERS[holder](content)

    def kinds(tree: Any) -> Any:
        seen.append({isinstance(x, jax.core.Tracer) for x in pydag.dag_leaves(tree)})
        return 0

    seen: list[set[bool]] = []
    for tree in (Holder(number), Holder(Record(number)), Record(Holder(number)), [Holder(number)]):
        jaxinterop.jit(kinds)(tree)
    assert seen == [{False}, {True}, {False}, {False}]


def test_other_registries_say_records() -> None:
    """Of the libraries' classes only equinox's modules are modules."""

    @jax.tree_util.register_dataclass
    @dataclasses.dataclass
    class Known:
        x: Any

    class Holder(Module):
        def __init__(self, known: Any) -> None:
            self.known = known

    def f(tree: Any) -> Any:
        assert isinstance(pydag.dag_leaves(tree)[0], jax.core.Tracer)
        return 1

    assert jaxinterop.jit(f)(Holder(Known(0.5))) == 1


def test_arrays_in_the_place_of_numbers_are_traced() -> None:
    """Whether a leaf is configuration is asked at each call: leaves may be of other types."""
    seen: list[bool] = []

    @jaxinterop.jit
    def f(norm: Norm) -> Any:
        seen.append(isinstance(norm.eps, jax.core.Tracer))
        return norm.eps * 2

    array = np.array(0.5, "float32")
    values: list[Any] = [jnp.float32(0.5), 0.5, array, 0.5, np.float64(0.5), True]
    for _ in range(2):
        assert [float(f(Norm(value))) for value in values] == [1.0, 1.0, 1.0, 1.0, 1.0, 2.0]
    assert seen[:2] == [True, False]
    assert seen.count(False) == 3  # 0.5, NumPy's 0.5 and True


@pytest.mark.parametrize("name", [n for n in WRAPPERS if n != "keep_sharing"])
def test_every_wrapper_leaves_configuration_alone(name: str) -> None:
    """In, inside and out: what is a number there is the number."""

    def f(tree: Any) -> Any:
        norm = tree["norm"]
        assert (norm.eps, norm.is_training) == (0.5, True)
        norm.scale = norm.scale * 2
        return tree

    norm = Norm()
    out = WRAPPERS[name](f)({"norm": norm, "same": norm})
    assert out["norm"] is out["same"]
    assert type(out["norm"].eps) is float
    assert out["norm"].is_training is True
    assert out["norm"].shape == [2, (1, {"channels": 3})]
    assert (out["norm"].scale == 2.0).all()


def test_vmap_of_a_constructor() -> None:
    """Arrays get an axis; numbers, flags and text stay what they are."""
    scales = jnp.arange(3.0)

    def make(scale: Any) -> Norm:
        norm = Norm()
        norm.scale = scale * norm.scale
        return norm

    many = jaxinterop.vmap(make)(scales)
    assert many.scale.shape == (3, 2, 2, 2)
    assert (many.eps, many.is_training, many.shape) == (0.5, True, [2, (1, {"channels": 3})])
    totals = jaxinterop.vmap(lambda norm: jnp.sum(norm.scale) * norm.shape[0])(many)
    assert totals.tolist() == [0.0, 16.0, 32.0]


def test_the_structure_does_not_know_of_it() -> None:
    """Specs, leaves and maps are those of `register_fields`, whatever the leaves are."""
    leaves, spec = pydag.dag_flatten(Norm())
    assert [x for x in leaves if not isinstance(x, jax.Array)] == [0.5, True, 2, 1, 3]
    assert pydag.dag_structure(Norm(jnp.ones(2))) == spec
    assert pydag.dag_map(lambda x: "x", Norm()).eps == "x"


def test_a_dag_of_modules() -> None:
    """Plain JAX sees the arrays alone, and rebuilds the rest."""
    dag = Dag([Norm(), 2.5])
    assert [np.shape(x) for x in jax.tree.leaves(dag)] == [(2, 2, 2), ()]
    norm, number = jax.jit(lambda dag: dag)(dag).tree
    assert (norm.eps, norm.is_training) == (0.5, True)
    assert number == 2.5
    assert isinstance(number, jax.Array)


def test_a_dag_keeps_its_structure_whatever_its_leaves_are() -> None:
    """A number that JAX puts in the place of an array is a leaf, though a module holds it."""
    dag = jax.tree.map(lambda x: 7, Dag(Norm()))
    assert dag.tree.scale == 7
    assert jax.tree.leaves(dag) == [7]
    treedefs: list[Any] = [jax.tree.structure(d) for d in (dag, Dag(Norm()))]
    assert treedefs[0] == treedefs[1]
    dag.tree.scale = jnp.zeros(1)
    assert [np.shape(x) for x in jax.tree.leaves(dag)] == [(1,)]


def test_a_number_that_is_configuration_and_data() -> None:
    """A list that a module and a dict hold: `SharingError`, with both paths."""

    class Holder(Module):
        def __init__(self, sizes: Any) -> None:
            self.sizes = sizes

    sizes = [1, 2]
    for f in (jaxinterop.jit(lambda *_: 0), jaxinterop.vmap(lambda *_: 0)):
        with pytest.raises(pydag.SharingError) as caught:
            f(Holder(sizes), {"sizes": sizes})
        assert "args[0].sizes[0]" in str(caught.value)
        assert "args[1]['sizes'][0]" in str(caught.value)
    arrays = [jnp.ones(2)]
    out = jaxinterop.jit(lambda *trees: trees)(Holder(arrays), {"sizes": arrays})
    assert out[0].sizes is out[1]["sizes"]


def test_registration_takes_the_forms_of_register_fields() -> None:
    """Bare, with arguments, in a namespace; fields that are meta; the same errors."""

    @pydag.register_module
    class Bare:
        pass

    @pydag.register_module(meta_fields=("m",), namespace="modules")
    class Given:
        def __init__(self) -> None:
            self.m, self.rate = "meta", 0.5

    assert pydag.dag_structure(Given(), namespace="modules").num_leaves == 1
    f = jaxinterop.jit(lambda given: repr(given.rate), namespace="modules")
    assert f(Given()) == "0.5"
    with pytest.raises(ValueError, match="already registered"):
        pydag.register_module(Bare)
    with pytest.raises(ValueError, match="both data and meta"):
        pydag.register_module(type("New", (), {}), ("a",), ("a",))
    with pytest.raises(TypeError, match="sequence of names"):
        pydag.register_module(type("New", (), {}), "a")


def test_a_subclass_that_nobody_registered_is_told() -> None:
    """It holds arrays and would be a constant: the error names both ways to register it."""

    class Base:
        def __init__(self) -> None:
            self.w, self.eps = jnp.ones(2), 0.5

    pydag.register_module(Base)
    forgotten = type("Forgotten", (Base,), {})
    with pytest.raises(TypeError) as caught:
        jaxinterop.jit(lambda model: model)(forgotten())
    assert "pydag.register_module(Forgotten)" in str(caught.value)
    assert "pydag.register_fields(Forgotten)" in str(caught.value)
