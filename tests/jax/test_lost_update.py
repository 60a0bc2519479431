# SPDX-License-Identifier: Apache-2.0
"""The warning about a function that changes its argument and doesn't return it."""

import warnings
from collections.abc import Callable
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


def _scanned(f: Any) -> Any:
    def body(carry: Any, x: Any) -> Any:
        return Net(), f(carry, x)

    return lambda m, x: pj.scan(body, m, x[None])


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
    "eval_shape": lambda f: lambda m, x: pj.eval_shape(f, m, x),
    "make_jaxpr": pj.make_jaxpr,
    "keep_sharing": pj.keep_sharing(lambda f: f),
}
LOOPS: dict[str, Any] = {
    "scan": _scanned,
    "while_loop": lambda f: (
        lambda m, x: pj.while_loop(lambda c: f(c["m"], x) < 0, lambda c: c, {"m": m})
    ),
    "fori_loop": lambda f: lambda m, x: pj.fori_loop(0, 2, lambda i, c: (f(c, x), Net())[1], m),
    "map": lambda f: lambda m, x: pj.map(lambda m: f(m, x), pj.tree.map(lambda a: a[None], m)),
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_every_wrapper_tells(name: str) -> None:
    """The path, the function and the cures; `update_argnums` only where the wrapper has it."""
    loss = fresh_loss()
    with pytest.warns(LostUpdateWarning) as told:
        WRAPPERS[name](loss)(Net(), X)
    text = str(told[0].message)
    assert "args[0].norm.mean" in text
    assert f"loss at {__file__}" in text
    assert "Return what was changed" in text
    assert "If only this call needs it, change a copy: model = pydag.dag_copy(model)." in text
    has_option = name.split()[0] in ("jit", "grad", "value_and_grad", "vmap", "checkpoint")
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


def test_the_new_value_of_a_module_is_not_the_module() -> None:
    """A recurrent cell that returns its state doesn't keep it: the changed object isn't there."""
    for f in (lambda cell, x: cell(x), lambda cell, x: (cell(x), {"h": cell.h}, [cell.w])):
        with pytest.warns(LostUpdateWarning, match=r"args\[0\].h, .*the changed object is not in"):
            pj.jit(f)(Cell(), X)


def test_the_new_item_of_a_dict_is_enough() -> None:
    """Of dicts and lists that no module holds, what was written may be returned alone."""

    def f(state: Any, x: Any) -> Any:
        state["h"] = state["h"] + x
        state["layers"][0] = state["h"] * 2
        return state["h"], state["layers"][0]

    pj.jit(f)({"h": X, "layers": [X]}, X)


@pytest.mark.parametrize(
    "result",
    [
        lambda cell: cell,
        lambda cell: {"cells": [cell]},
        lambda cell: pydag.dag_copy(cell),
        lambda cell: pj.tree.map(lambda a: a * 2, cell),
        lambda cell: pj.Dag({"cell": cell}),
        lambda cell: (cell.h, pydag.dag_replace(cell, cell.h, cell.h * 2)),
    ],
)
def test_a_changed_module_that_is_returned_is_not_lost(result: Any) -> None:
    """As it is, at any place, copied or mapped; with a new number, and a longer list."""

    def f(cell: Any, x: Any) -> Any:
        y = cell(x)
        cell.calls += 1
        cell.log.append(y)
        return result(cell)

    pj.jit(f)(Cell(), X)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda m: setattr(m, "calls", m.calls + 1), r"args\[0\].calls"),
        (lambda m: setattr(m, "calls", m.w.sum()), r"args\[0\].calls"),
        (lambda m: setattr(m, "h", 0), r"args\[0\].h"),
        (lambda m: setattr(m, "h", None), r"args\[0\].h"),
        (lambda m: delattr(m, "h"), r"args\[0\].h"),
        (lambda m: m.log.append(m.w), r"args\[0\].log\[1\]"),
        (lambda m: m.log.append("traced"), r"args\[0\].log\[1\]"),
        (lambda m: m.log.clear(), r"args\[0\].log\[0\]"),
        (lambda m: m.log.__setitem__(0, m.w + 1), r"args\[0\].log\[0\]"),
    ],
)
def test_changes_inside_of_modules(change: Any, path: str) -> None:
    """Numbers that change, items that come or go, arrays that are removed."""
    with pytest.warns(LostUpdateWarning, match=path):
        pj.jit(lambda m: (change(m), m.w)[1])(Cell())


@pytest.mark.parametrize(
    "change",
    [
        lambda m: setattr(m, "training", False),
        lambda m: setattr(m, "calls", int("0")),
        lambda m: setattr(m, "name", "cell"),
        lambda m: setattr(m, "size", 3),
        lambda m: setattr(m, "log", list(m.log)),
    ],
)
def test_flags_and_new_configuration_are_silent(change: Any) -> None:
    """A flag, the same number, a text, and a number that wasn't there before."""
    pj.jit(lambda m: (change(m), m.w)[1])(Cell())


def test_a_list_of_the_module_that_is_returned() -> None:
    """The list was changed and is in the result; the module, which wasn't, need not be."""

    def f(cell: Any) -> Any:
        cell.log.append(cell.w + 1)
        return cell.log

    pj.jit(f)(Cell())


def test_numbers_and_variables_of_nnx() -> None:
    """A Variable's value that is returned without its Variable, and a number of a module."""

    class Counting(nnx.Module):
        def __init__(self) -> None:
            self.h, self.calls = nnx.Variable(jnp.zeros(3)), 0

    def f(m: Any) -> Any:
        m.h[...] = m.h[...] + 1
        return m.h[...]

    def count(m: Any) -> Any:
        m.calls += 1
        return m.h[...]

    with pytest.warns(LostUpdateWarning, match=r"args\[0\].h.value, and"):
        pj.jit(f)(Counting())
    with pytest.warns(LostUpdateWarning, match=r"args\[0\].calls, and"):
        pj.jit(count)(Counting())
    pj.jit(lambda m: (f(m), nnx.state(m)))(Counting())
    pj.jit(lambda m: (count(m), m))(Counting())


def test_a_module_of_nnx_that_is_split() -> None:
    """`nnx.split` and `nnx.graphdef` tell the numbers of a changed module; its state does not."""

    class Counting(nnx.Module):
        def __init__(self) -> None:
            self.h, self.calls = nnx.Variable(jnp.zeros(3)), 0

    def counted(m: Any, *answer: Callable[[Any], Any]) -> Any:
        before = [f(m) for f in answer[1:]]
        m.calls += 1
        m.h[...] += 1
        return answer[0](m), before

    in_result: list[Callable[[Any], Any]] = [
        nnx.split,
        lambda m: [nnx.split(m, nnx.Param, ...)],
        lambda m: (nnx.graphdef(m), m.h),
    ]
    for split in in_result:
        found = pj.jit(lambda m, split=split: counted(m, split))(Counting())
        assert len(jax.tree.leaves(found)) == 1
    merged = nnx.merge(*pj.jit(lambda m: counted(m, nnx.split)[0])(Counting()))
    assert (merged.calls, merged.h[0]) == (1, 1)
    for lost in ((nnx.state,), (nnx.state, nnx.split)):
        with pytest.warns(LostUpdateWarning, match=r"args\[0\].calls, and"):
            pj.jit(lambda m, lost=lost: counted(m, *lost))(Counting())


def test_a_carry_that_is_changed_and_returned() -> None:
    """The body of a scan may change its carry in place."""

    def body(model: Any, x: Any) -> Any:
        return model, model(x)

    model, ys = pj.scan(body, Net(), jnp.ones((4, 3)))
    assert ys.shape == (4, 3)
    assert model.norm.mean.shape == (3,)


def test_told_once_for_each_trace() -> None:
    """A compiled function is asked when it is traced, and not when it is called again."""
    f = pj.jit(lambda m, x: m(x))
    model = Net()
    with pytest.warns(LostUpdateWarning) as told:
        f(model, X)
    assert len(told) == 1
    f(model, X)
    with pytest.warns(LostUpdateWarning):
        f(model, jnp.ones((2, 3)))


def test_a_lazily_made_weight() -> None:
    """An array in an attribute that held None, or wasn't there, is a change."""

    def f(model: Any) -> Any:
        model.lazy = jnp.ones(3)
        model.other = {"deep": model.w + 1}
        return model.lazy.sum()

    with pytest.warns(LostUpdateWarning, match=r"args\[0\].lazy, args\[0\].other") as caught:
        pj.jit(f)(Net())
    assert "make it before (an array of zeros)" in str(caught[0].message)


def test_one_array_at_two_places_is_named_twice() -> None:
    """Each place that was written is named, also where both have one array now."""

    def f(tree: Any) -> Any:
        tree["a"] = tree["b"] = tree["a"] + 1
        return tree["a"].sum()

    with pytest.warns(LostUpdateWarning, match=r"args\[0\]\['a'\], args\[0\]\['b'\], and"):
        pj.jit(f)({"a": X, "b": jnp.zeros(3)})


def test_keyword_arguments_are_named() -> None:
    """The cure for a keyword argument is update_argnames."""
    with pytest.warns(LostUpdateWarning, match=r"kwargs\['model'\].norm.mean") as told:
        pj.jit(fresh_loss())(model=Net(), x=X)
    assert "update_argnames='model'" in str(told[0].message)


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.pop("a"),
        lambda p: p.update(new=p["a"] + 1),
        lambda p: p["items"].append(p["a"] + 1),
        lambda p: p["items"].clear(),
        lambda p: p.update(name="other"),
        lambda p: p["norm"].__setattr__("is_training", False),
        lambda p: p.update(a=p["a"]),
        lambda p: p.update(items=list(p["items"])),
    ],
)
def test_silent(change: Callable[[Any], Any]) -> None:
    """Items that come or go, static values and what was there before are not spoken of."""

    def f(p: Any) -> Any:
        x = p["a"] * 2
        change(p)
        return x

    pj.jit(f)({"a": X, "items": [jnp.zeros(2)], "name": "one", "norm": Norm()})


def test_objects_made_inside() -> None:
    """What the function made itself is its own affair, also where it takes the place of a part."""

    def f(p: Any) -> Any:
        own = {"a": p["a"]}
        own["a"] = own["a"] + 1
        q = dict(p)
        q["a"] = jnp.zeros(3)
        return own["a"]

    pj.jit(f)({"a": X})


def test_items_of_dicts_and_lists() -> None:
    """A leaf written over an item of a dict or list warns, also one that takes None's place."""

    def f(p: Any) -> Any:
        p["cache"][0] = p["cache"][0] + 1
        p["none"] = p["cache"][0] * 2
        return p["cache"][0].sum()

    with pytest.warns(LostUpdateWarning, match=r"args\[0\]\['cache'\]\[0\], args\[0\]\['none'\]"):
        pj.jit(f)({"cache": [X], "none": None})


def test_a_swap_is_told() -> None:
    """Two arrays that change places are two changes."""

    def f(p: Any) -> Any:
        p["a"], p["b"] = p["b"], p["a"]
        return jnp.zeros(())

    with pytest.warns(LostUpdateWarning, match=r"args\[0\]\['a'\], args\[0\]\['b'\]"):
        pj.jit(f)({"a": X, "b": jnp.zeros(3)})


def test_a_mapped_copy_is_a_result() -> None:
    """A model that is changed and then mapped was not lost: it is what the map saw."""

    def f(model: Any, x: Any) -> Any:
        model(x)
        return pj.tree.map(lambda a: a * 0.5, model)

    def g(model: Any, xs: Any) -> Any:
        model.w = model.w * 0.9
        return pj.scan(lambda m, x: (m, m.w.sum()), model, xs)

    pj.jit(f)(Net(), X)
    pj.jit(g)(Net(), X)


def test_something_alike_is_no_copy() -> None:
    """A result that only looks like the model, such as the moments of an optimizer, isn't it."""

    def f(model: Any, moments: Any, x: Any) -> Any:
        y = model(x)
        return y, pj.tree.map(lambda a: a * 0.9, moments)

    with pytest.warns(LostUpdateWarning, match=r"args\[0\].norm.mean"):
        pj.jit(f)(Net(), Net(), X)


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


def test_a_tree_in_a_dag() -> None:
    """What is changed in a Dag's tree is a change of the argument."""

    def f(dag: Any) -> Any:
        dag.tree["a"] = dag.tree["a"] + 1
        return dag.tree["a"].sum()

    with pytest.warns(LostUpdateWarning, match=r"args\[0\]"):
        pj.jit(f)(pj.Dag({"a": X}))


def test_thousands_of_changes_are_named_briefly() -> None:
    """A warning names a few places and counts the others."""
    leaves = {f"p{i}": jnp.float32(i) for i in range(100)}

    def f(p: Any) -> Any:
        for name in p:
            p[name] = p[name] + 1
        return jnp.zeros(())

    with pytest.warns(LostUpdateWarning, match="and 96 more"):
        pj.jit(f)(leaves)


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
        for d in (a, b, c):
            d["x"] = d["x"] + 1
        return jnp.ones(())

    with pytest.warns(
        pj.LostUpdateWarning, match=r"update_argnums=\(0, 1\) and update_argnames='c': then"
    ):
        pj.jit(change)({"x": jnp.ones(2)}, {"x": jnp.zeros(2)}, c={"x": jnp.ones(3)})
