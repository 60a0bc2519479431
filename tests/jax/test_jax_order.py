# SPDX-License-Identifier: Apache-2.0
"""The order in which dicts were filled, and attributes set: part of the key of what is compiled."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from wrappers import WRAPPERS

from pydag import jaxinterop
from pydag.jaxinterop import Dag

A, B = jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([[0.0, 1.0], [1.0, 1.0]])
X = jnp.ones(2)
AB, BA = [6.0, 10.0], [7.0, 10.0]  # X @ A @ B and X @ B @ A


def net(layers: Any) -> Any:
    """The layers, one after the other, in the order of their dict."""
    y = X
    for layer in layers.values():
        y = y @ layer
    return y


def one() -> Any:
    """A first."""
    return {"first": A, "second": B}


def two() -> Any:
    """The equal dict with B first."""
    return {"second": B, "first": A}


def test_keyword_arguments() -> None:
    """The order of keywords counts where the function can see it, and nowhere else."""
    seen: list[Any] = []

    def named(a: Any, *, b: Any, c: Any = 0) -> Any:
        seen.append((a, b, c))
        return a - b

    def of_all(**layers: Any) -> Any:
        seen.append(list(layers))
        return net(layers)

    f: Any = jaxinterop.jit(named, static_argnames="c")
    g: Any = jaxinterop.jit(of_all)
    for _ in range(2):
        assert f(a=3.0, b=1.0) == f(b=1.0, a=3.0) == 2.0
        assert f(a=3.0, b=1.0, c=5) == f(c=5, b=1.0, a=3.0) == 2.0
        assert f.lower(b=1.0, a=3.0).compile()(a=3.0, b=1.0) == 2.0
    assert [given[2] for given in seen] == [0, 5]
    seen.clear()
    assert [g(**given()).tolist() for given in (one, two, one, two)] == [AB, BA, AB, BA]
    assert seen == [["first", "second"], ["second", "first"]]
    with pytest.raises(TypeError, match="unexpected keyword argument 'd'"):
        f(b=1.0, d=2.0, a=3.0)


def test_ahead_of_time() -> None:
    """A compiled function that is called with another order says which dict it is about."""
    f = jaxinterop.jit(lambda model, x: net(model["layers"]) + x)
    compiled = f.lower({"layers": one()}, X).compile()
    assert compiled({"layers": one()}, X).tolist() == [7.0, 11.0]
    with pytest.raises(TypeError, match="Compile for these") as caught:
        compiled({"layers": two()}, X)
    assert str(caught.value).splitlines()[1:4] == [
        "args[0]['layers']",
        "  first:  a dict filled in the order ['first', 'second']",
        "  second: a dict filled in the order ['second', 'first']",
    ]
    assert f.lower({"layers": two()}, X).compile()({"layers": two()}, X).tolist() == [8.0, 11.0]


# --- where two structures have to be alike, dicts are matched by key ---


def turned(tree: Any) -> Any:
    """The same dict, filled the other way round."""
    return {key: tree[key] for key in reversed(tree)}


LOOPS: dict[str, Callable[[Any, Any], Any]] = {
    "scan": lambda f, t: jaxinterop.scan(lambda c, _: (f(c), None), t, length=2)[0],
    "fori_loop": lambda f, t: jaxinterop.fori_loop(0, 2, lambda _, c: f(c), t),
    "while_loop": lambda f, t: jaxinterop.while_loop(
        lambda c: c["n"] < 2, lambda c: f({**c, "n": c["n"] + 1}), {**t, "n": 0}
    ),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", LOOPS)
def test_a_carry_that_comes_back_in_another_order(name: str, compiled: bool) -> None:
    """The carry is matched by key. Each round sees the given order, and so does the result."""
    orders: list[list[str]] = []

    def body(carry: Any) -> Any:
        orders.append(list(carry))
        return turned({key: 2 * x if key != "n" else x for key, x in carry.items()})

    def run(tree: Any) -> Any:
        return LOOPS[name](body, tree)

    out = (jaxinterop.jit(run) if compiled else run)({"b": jnp.float32(1), "a": jnp.float32(3)})
    assert [key for key in out if key != "n"] == ["b", "a"]
    assert (float(out["b"]), float(out["a"])) == (4.0, 12.0)
    assert all([key for key in order if key != "n"] == ["b", "a"] for order in orders)


@pytest.mark.parametrize("first", [True, False])
def test_branches_that_fill_dicts_in_another_order(first: bool) -> None:
    """Such branches are alike; the result has the order of the first, whichever is taken."""
    tree = {"b": jnp.float32(1), "a": jnp.float32(3)}
    branches: list[Any] = [turned, dict, turned]
    wraps: list[Any] = [lambda f: f, jaxinterop.jit]
    for wrap in wraps:
        out = wrap(lambda p, t: jaxinterop.cond(p, lambda t: t, turned, t))(first, tree)
        assert (list(out), float(out["a"])) == (["b", "a"], 3.0)
        out = wrap(lambda i, t: jaxinterop.switch(i, branches, t))(1, tree)
        assert (list(out), float(out["a"])) == (["a", "b"], 3.0)


# --- Dag ---


def test_the_order_is_in_the_structure_of_a_dag() -> None:
    """Plain JAX tells Dags of another order apart, and those of the same order not."""
    structure: Any = jax.tree.structure
    assert structure(Dag(one())) != structure(Dag(two()))
    assert structure(Dag([one()])) == structure(Dag([one()]))
    assert hash(structure(Dag(one()))) == hash(structure(Dag(one())))
    copiers: list[Any] = [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
    for copier in copiers:
        assert structure(copier(Dag(two()))) == structure(Dag(two()))
        assert list(copier(Dag(two())).tree) == ["second", "first"]


class Net(jaxinterop.Module):
    """Layers under any names, which are applied in the order in which they were set."""

    def __init__(self, **layers: Any) -> None:
        vars(self).update(layers)

    def __call__(self, x: Any) -> Any:
        for layer in vars(self).values():
            x = x @ layer
        return x


def one_net() -> Any:
    """A first."""
    return Net(first=A, second=B)


def two_net() -> Any:
    """The equal module, with B set first."""
    return Net(second=B, first=A)


# How a holder of names is made, and how its dict is read.
HOLDERS: dict[str, tuple[Callable[..., Any], Callable[[Any], Any]]] = {
    "dict": (dict, lambda tree: tree),
    "attributes": (Net, vars),
}


@pytest.mark.parametrize("around", [lambda f: f, jaxinterop.jit], ids=["", "jit"])
@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("name", WRAPPERS)
def test_in_every_wrapper(name: str, holder: str, around: Any) -> None:
    """A function sees the order, and the result has it, whatever was traced first."""
    make, read = HOLDERS[holder]

    def counted(tree: Any) -> Any:
        return make(**{n: x * (place + 1) for place, (n, x) in enumerate(read(tree).items())})

    wrapped = around(WRAPPERS[name](counted))
    for order in ("ab", "ba", "ab", "ba"):
        out = read(wrapped(make(**{key: jnp.ones((2, 2)) for key in order})))
        assert "".join(out) == order
        assert [float(out[key][0, 0]) for key in order] == [1.0, 2.0]


def test_one_trace_for_each_order() -> None:
    """A function is traced once for each order, and answers as without `jit`."""
    seen: list[list[str]] = []

    @jaxinterop.jit
    def f(net: Any, x: Any) -> Any:
        seen.append(list(vars(net)))
        return net(x)

    for given, expected in ((one_net, AB), (two_net, BA), (one_net, AB), (two_net, BA)):
        assert f(given(), X).tolist() == given()(X).tolist() == expected
    assert seen == [["first", "second"], ["second", "first"]]
    assert jaxinterop.tree.structure(one_net()) != jaxinterop.tree.structure(two_net())
    assert jaxinterop.tree.structure(two_net()) == jaxinterop.tree.structure(two_net())


def test_where_structures_have_to_be_alike_attributes_are_matched_by_name() -> None:
    """A carry and branches may set attributes in another order; the result has the first order."""

    def turned(net: Any) -> Any:
        return Net(**{name: vars(net)[name] for name in reversed(vars(net))})

    out = jaxinterop.fori_loop(0, 3, lambda _, net: turned(net), one_net())
    assert (list(vars(out)), out.first.tolist()) == (["first", "second"], A.tolist())
    out = jaxinterop.cond(True, lambda net: net, turned, one_net())
    assert (list(vars(out)), out.first.tolist()) == (["first", "second"], A.tolist())


def test_the_program_of_named_use_is_one() -> None:
    """A function that uses names is one program, whichever attribute was set first: as text."""

    def loss(net: Any, x: Any) -> Any:
        return jnp.sum(jnp.tanh(x @ net.first) @ net.second)

    def step(net: Any, x: Any) -> Any:
        gradient = jaxinterop.grad(loss)(net, x)
        return jaxinterop.tree.map(lambda p, g: p - 0.1 * g, net, gradient)

    texts = {jaxinterop.jit(step).lower(given(), X).as_text() for given in (one_net, two_net)}
    assert len(texts) == 1
    leaves = [jaxinterop.tree.leaves(given()) for given in (one_net, two_net)]
    assert all(a is b for a, b in zip(*leaves, strict=True))
