# SPDX-License-Identifier: Apache-2.0
"""The warning about a function that changes its argument and doesn't return it."""

from typing import Any

import jax.numpy as jnp
import pytest
from flax import nnx

import pydag
import pydag.jaxinterop as pj
from pydag.jaxinterop import LostUpdateWarning


@pydag.register_module
class Norm:
    """A part with a running mean."""

    def __init__(self) -> None:
        self.mean = jnp.zeros(3)
        self.calls = 0


@pydag.register_module
class Net:
    """A module that changes itself when it is called."""

    def __init__(self) -> None:
        self.w = jnp.ones(3)
        self.norm = Norm()
        self.lazy: Any = None

    def __call__(self, x: Any) -> Any:
        self.norm.mean = 0.9 * self.norm.mean + 0.1 * x
        return self.w * x - self.norm.mean


X = jnp.ones(3)


def fresh_loss() -> Any:
    """A function that no wrapper has traced yet."""

    def loss(model: Any, x: Any) -> Any:
        return model(x).sum()

    return loss


loss = fresh_loss()


def with_model(model: Any, x: Any) -> Any:
    """Changes the model, and returns it, too."""
    return model(x).sum(), model


def test_aux_is_a_result() -> None:
    """What `has_aux` hands on is not lost."""
    pj.grad(with_model, has_aux=True)(Net(), X)
    pj.jit(pj.value_and_grad(with_model, has_aux=True))(Net(), X)


class Cell(pj.Module):
    """A cell that keeps its state."""

    def __init__(self) -> None:
        self.h, self.w = jnp.zeros(3), jnp.ones(3)
        self.calls, self.training = 0, True
        self.log: list[Any] = [jnp.zeros(3)]

    def __call__(self, x: Any) -> Any:
        self.h = jnp.tanh(self.w * self.h + x)
        return self.h


def test_a_list_of_the_module_that_is_returned() -> None:
    """The list was changed and is in the result; the module, which wasn't, need not be."""

    def f(cell: Any) -> Any:
        cell.log.append(cell.w + 1)
        return cell.log

    pj.jit(f)(Cell())


def test_a_module_of_nnx_that_is_split() -> None:
    """What `nnx.split` gives of a changed module is the module."""

    class Counting(nnx.Module):
        def __init__(self) -> None:
            self.h, self.calls = nnx.Variable(jnp.zeros(3)), 0

    def counted(m: Any) -> Any:
        m.calls += 1
        m.h[...] += 1
        return nnx.split(m)

    merged = nnx.merge(*pj.jit(counted)(Counting()))
    assert (merged.calls, merged.h[0]) == (1, 1)


def test_the_outer_model_is_not_changed_by_an_inner_function() -> None:
    """Only the innermost wrapper tells: the function outside has objects of its own."""

    def step(model: Any, x: Any) -> Any:
        return pj.grad(fresh_loss())(model, x)

    with pytest.warns(LostUpdateWarning) as told:
        pj.jit(step)(Net(), X)
    assert len(told) == 1
    assert "loss at" in str(told[0].message)


def test_bare_arrays_are_variables_of_their_own() -> None:
    """One array given twice, of which the function makes nothing, is no change."""
    pj.grad(lambda a, b, p: (a * b).sum() + p["x"].sum(), argnums=(0, 1))(X, X, {"x": jnp.ones(3)})
    pj.vmap(lambda a, b: a * b, in_axes=(0, None))(X, X)


def test_something_that_cannot_be_flattened_is_left_alone() -> None:
    """A function may put anything into its argument, such as the argument itself."""

    def f(p: Any) -> Any:
        p["self"] = p
        return p["a"] + 1

    pj.jit(f)({"a": X})


def test_a_module_of_nnx() -> None:
    """A counter that never advances warns; a module that is returned does not."""
    model = nnx.Dropout(0.5, rngs=nnx.Rngs(0))
    with pytest.warns(LostUpdateWarning, match=r"args\[0\].rngs.count"):
        pj.jit(lambda m, x: m(x))(model, X)
    pj.jit(lambda m, x: (m(x), m))(model, X)
    pj.grad(lambda m, x: (m(x).sum(), m), argnums=1, has_aux=True)(model, X)


def test_all_arguments_are_in_the_cure() -> None:
    """Of several that are changed in vain, all numbers and names are said."""

    def change(a: Any, b: Any, *, c: Any) -> Any:
        return a(X) + b(X) + c(X)

    text = r"update_argnums=\(0, 1\) and update_argnames='c': then"
    with pytest.warns(LostUpdateWarning, match=text):
        pj.jit(change)(Net(), Net(), c=Net())
