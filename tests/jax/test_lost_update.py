# SPDX-License-Identifier: Apache-2.0
"""The warning about a function that changes its argument and doesn't return it."""

import warnings
from typing import Any

import jax
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


def _by_custom_jvp(f: Any) -> Any:
    g = pj.custom_jvp(f)
    g.defjvp(lambda primals, tangents: (f(*primals), tangents[1].sum()))
    return g


def _by_custom_vjp(f: Any) -> Any:
    g = pj.custom_vjp(f)
    g.defvjp(lambda m, x: (f(m, x), None), lambda saved, ct: (None, None))
    return g


WRAPPERS: dict[str, Any] = {
    "jit": pj.jit,
    "grad": pj.grad,
    "value_and_grad": pj.value_and_grad,
    "jacrev": pj.jacrev,
    "vmap": lambda f: pj.vmap(f, in_axes=(None, 0)),
    "checkpoint": pj.checkpoint,
    "cond": lambda f: lambda m, x: pj.cond(x.sum() > 0, f, f, m, x),
    "switch": lambda f: lambda m, x: pj.switch(0, [f, f], m, x),
    "vjp": lambda f: lambda m, x: pj.vjp(f, m, x),
    "jvp": lambda f: lambda m, x: pj.jvp(f, (m, x), (pj.tree.map(jnp.ones_like, m), x)),
    "linearize": lambda f: lambda m, x: pj.linearize(f, m, x),
    "custom_jvp": _by_custom_jvp,
    "custom_vjp": _by_custom_vjp,
    "keep_sharing": pj.keep_sharing(lambda f: f),
}
LOOPS: dict[str, Any] = {
    "scan": lambda f: (
        lambda m, x: pj.scan(
            lambda c, m: (c + f(m, x), None), 0.0, pj.tree.map(lambda a: a[None], m)
        )
    ),
    "while_loop": lambda f: (
        lambda m, x: pj.while_loop(lambda c: f(c["m"], x) < 0, lambda c: c, {"m": m})
    ),
    "map": lambda f: lambda m, x: pj.map(lambda m: f(m, x), pj.tree.map(lambda a: a[None], m)),
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_every_wrapper_tells(name: str) -> None:
    """The path, the function and the cures; `update_argnums` only where the wrapper has it."""
    loss = fresh_loss()
    with pytest.warns(LostUpdateWarning) as told:
        WRAPPERS[name](loss)(Net(), X)
    text = str(told[0].message)
    root = "model" if name.startswith("custom") else "args[0]"
    assert f"{root}.norm.mean" in text
    assert f"loss at {__file__}" in text
    assert "Return what was changed" in text
    assert "If only this call needs it, change a copy: model = pydag.dag_copy(model)." in text
    has_option = name.split()[0] in ("jit", "grad", "value_and_grad", "checkpoint")
    assert ("or say update_argnums=0" in text) is has_option, name
    assert told[0].filename == __file__
    assert told[0].lineno == loss.__code__.co_firstlineno


@pytest.mark.parametrize("name", LOOPS)
def test_every_loop_tells(name: str) -> None:
    """A loop's body or condition that changes what it is given in vain warns."""
    with pytest.warns(LostUpdateWarning, match=r"\.mean, and the change is lost"):
        LOOPS[name](fresh_loss())(Net(), X)


@pytest.mark.parametrize("name", sorted(WRAPPERS.keys() - {"grad", "value_and_grad", "jvp"}))
def test_what_is_returned_is_not_lost(name: str) -> None:
    """Nothing is said where the changed object is in the result."""
    WRAPPERS[name](with_model)(Net(), X)


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


def test_a_lazily_made_weight() -> None:
    """An array in an attribute that held None, or wasn't there, is a change."""

    def f(model: Any) -> Any:
        model.lazy = jnp.ones(3)
        model.other = {"deep": model.w + 1}
        return model.lazy.sum()

    with pytest.warns(LostUpdateWarning, match=r"args\[0\].lazy, args\[0\].other") as caught:
        pj.jit(f)(Net())
    assert "make it before (an array of zeros)" in str(caught[0].message)


def test_the_outer_model_is_not_changed_by_an_inner_function() -> None:
    """Only the innermost wrapper tells: the function outside has objects of its own."""

    def step(model: Any, x: Any) -> Any:
        return pj.grad(fresh_loss())(model, x)

    with pytest.warns(LostUpdateWarning) as told:
        pj.jit(step)(Net(), X)
    assert len(told) == 1
    assert "loss at" in str(told[0].message)


def test_a_shared_part_is_named_once() -> None:
    """A part at two places has one path in the warning."""
    norm = Norm()

    def f(parts: Any) -> Any:
        parts[1].mean = parts[0].mean + 1
        return parts[0].mean.sum()

    with pytest.warns(LostUpdateWarning, match=r"changed args\[0\]\[0\].mean, and"):
        pj.jit(f)([norm, norm])


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


def test_it_can_be_an_error() -> None:
    """A filter makes it one, raised where the function is traced."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", LostUpdateWarning)
        with pytest.raises(LostUpdateWarning):
            pj.jit(fresh_loss())(Net(), X)


def test_thousands_of_changes_are_named_briefly() -> None:
    """A warning names a few places and counts the others."""
    cell = Cell()
    cell.log = [jnp.float32(i) for i in range(100)]

    def f(cell: Any) -> Any:
        cell.log[:] = [x + 1 for x in cell.log]
        return jnp.zeros(())

    with pytest.warns(LostUpdateWarning, match="and 96 more"):
        pj.jit(f)(cell)


def test_a_number_in_a_record_that_is_replaced() -> None:
    """Data of a record is traced: a number put in its place warns, as an array does."""

    @pydag.register_fields
    class State:
        def __init__(self) -> None:
            self.step = 1

    def f(state: Any) -> Any:
        state.step = state.step + 1
        return jax.numpy.zeros(())

    with pytest.warns(LostUpdateWarning, match=r"args\[0\].step"):
        pj.jit(f)(State())


def test_all_arguments_are_in_the_cure() -> None:
    """Of several that are changed in vain, all numbers and names are said."""

    def change(a: Any, b: Any, *, c: Any) -> Any:
        return a(X) + b(X) + c(X)

    text = r"update_argnums=\(0, 1\) and update_argnames='c': then"
    with pytest.warns(LostUpdateWarning, match=text):
        pj.jit(change)(Net(), Net(), c=Net())
