# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="attr-defined, no-untyped-call, assignment, misc"
"""Ties between an argument that is updated and another one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

import pydag
import pydag.jaxinterop as pj
from pydag.errors import SharingError


class Box(pj.Module):
    """A module with what it is given."""

    def __init__(self, **parts: Any) -> None:
        vars(self).update(parts)


@pydag.register_fields
@dataclass
class Record:
    """A record."""

    w: Any


class Layer(nnx.Module):
    """A module of NNX."""

    def __init__(self, w: Any) -> None:
        self.w = nnx.Param(w)


def one() -> Any:
    return jnp.ones(2)


# Each kind of object that two arguments can hold: what makes one, and what makes it anew with
# another array in it.
KINDS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "list": (lambda: [one()], lambda x: [x[0] + 1]),
    "dict": (lambda: {"w": one()}, lambda x: {"w": x["w"] + 1}),
    "module": (lambda: Box(w=one()), lambda x: Box(w=x.w + 1)),
    "record": (lambda: Record(one()), lambda x: Record(x.w + 1)),
    "nnx": (lambda: Layer(one()), lambda x: Layer(x.w[...] + 1)),
    "variable": (lambda: nnx.Param(one()), lambda x: nnx.Param(x[...] + 1)),
    "array": (one, lambda x: x + 1),
}
# The same object anew, with the same arrays: nothing is written.
ANEW: dict[str, Callable[[Any], Any]] = {
    "list": list,
    "dict": dict,
    "module": lambda x: Box(w=x.w),
    "record": lambda x: Record(x.w),
    "variable": lambda x: nnx.Param(x[...]),
}
HOLDERS: dict[str, Callable[[Any], Any]] = {
    "in a dict": lambda x: {"x": x},
    "in a module": lambda x: Box(x=x),
}


def get(holder: Any) -> Any:
    return holder["x"] if isinstance(holder, dict) else holder.x


def put(holder: Any, x: Any) -> None:
    if isinstance(holder, dict):
        holder["x"] = x
    else:
        holder.x = x


# Wrappers that update the first argument of a function of two, called by position or by name.
UPDATING: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "jit": lambda f: pj.jit(f, update_argnums=0),
    "checkpoint": lambda f: pj.checkpoint(f, update_argnums=0),
    "grad": lambda f: (
        lambda m, n: pj.value_and_grad(lambda t, m, n: (f(m, n), t)[1], update_argnums=1)(1.0, m, n)
    ),
    "by name": lambda f: lambda m, n: pj.jit(f, update_argnames="m")(n=n, m=m),
    "nested": lambda f: pj.jit(lambda m, n: pj.jit(f, update_argnums=0)(m, n), update_argnums=0),
}
wrappers = pytest.mark.parametrize("wrap", UPDATING.values(), ids=UPDATING)
kinds = pytest.mark.parametrize("kind", KINDS)
holders = pytest.mark.parametrize("hold", HOLDERS.values(), ids=HOLDERS)


@wrappers
@kinds
@holders
def test_a_tie_that_is_cut(wrap: Any, kind: str, hold: Any) -> None:
    """What both arguments hold is replaced in one: an error with both paths; nothing changes."""
    make, again = KINDS[kind]
    shared = make()
    m, n = hold(shared), {"y": shared}

    def cut(m: Any, n: Any) -> None:
        put(m, again(get(m)))

    with pytest.raises(SharingError, match=r"cuts a tie(.|\n)*pj\.tree\.copy") as caught:
        wrap(cut)(m, n)
    assert "x" in str(caught.value)
    assert "['y']" in str(caught.value)
    assert get(m) is shared
    assert n["y"] is shared


@wrappers
@kinds
@holders
def test_a_tie_that_is_made(wrap: Any, kind: str, hold: Any) -> None:
    """An object of another argument is put into the updated one: an error with both paths."""
    make, _ = KINDS[kind]
    first, second = make(), make()
    m, n = hold(first), {"y": second}

    def tie(m: Any, n: Any) -> None:
        put(m, n["y"])

    with pytest.raises(SharingError, match=r"makes a tie(.|\n)*\['y'\]"):
        wrap(tie)(m, n)
    assert get(m) is first


@wrappers
@pytest.mark.parametrize("kind", ANEW)
def test_a_new_container_of_the_same_arrays(wrap: Any, kind: str) -> None:
    """The container cuts the tie, too: else the next call would write into the other argument's."""
    shared = KINDS[kind][0]()
    m, n = {"x": shared}, {"y": shared}
    with pytest.raises(SharingError, match="cuts a tie"):
        wrap(lambda m, n: m.update(x=ANEW[kind](m["x"])))(m, n)
    with pytest.raises(SharingError, match="cuts a tie"):
        wrap(lambda m, n: n.update(y=ANEW[kind](n["y"])))(m, n)


@wrappers
def test_a_new_container_in_an_object_of_both(wrap: Any) -> None:
    """The container is an update of that object, whose containers stay the caller's."""
    shared = Box(items=[one()])
    items = shared.items
    m, n = Box(s=shared), {"s": shared}

    def grow(m: Any, n: Any) -> None:
        m.s.items = [x + 1 for x in m.s.items]

    f = wrap(grow)
    f(m, n)
    f(m, n)
    assert n["s"].items is items
    assert items[0].tolist() == [3.0, 3.0]


@wrappers
def test_what_both_hold_is_written_through_either(wrap: Any) -> None:
    """Objects of both arguments are updated, whichever of the two the function goes through."""
    shared = {"w": one()}
    m, n = {"s": shared}, Box(s=shared)

    def through(m: Any, n: Any) -> None:
        n.s["w"] = m["s"]["w"] + 1

    wrap(through)(m, n)
    assert shared["w"].tolist() == [2.0, 2.0]
    assert m["s"] is n.s


@wrappers
def test_what_another_argument_gains_or_loses(wrap: Any) -> None:
    """Places that are new or gone in a dict that isn't updated are no ties: it is free."""
    m, logs = {"w": one()}, {"old": jnp.zeros(())}

    def log(m: Any, n: Any) -> None:
        m["w"] = m["w"] + 1
        n["w"] = m["w"]
        n.pop("old")

    wrap(log)(m, logs)
    assert m["w"].tolist() == [2.0, 2.0]
    assert list(logs) == ["old"]


def test_two_updated_arguments() -> None:
    """A tie between them that is cut or made is an error; both may be swapped whole."""

    def cut(m: Any, n: Any) -> None:
        m["x"] = list(m["x"])

    def made(m: Any, n: Any) -> None:
        m["x"] = n["x"]

    def swapped(m: Any, n: Any) -> None:
        m["x"], n["x"] = n["x"], m["x"]

    shared = [one()]
    with pytest.raises(SharingError, match="cuts a tie"):
        pj.jit(cut, update_argnums=(0, 1))({"x": shared}, {"x": shared})
    m, n = {"x": [one()]}, {"x": [one() + 1]}
    with pytest.raises(SharingError, match="makes a tie"):
        pj.jit(made, update_argnums=(0, 1))(m, n)
    pj.jit(swapped, update_argnums=(0, 1))(m, n)
    assert (m["x"][0].tolist(), n["x"][0].tolist()) == ([2.0, 2.0], [1.0, 1.0])


def shared_between_tables() -> tuple[Any, Any, Any]:
    shared = {"w": one()}
    return shared, {"s": shared, "x": jnp.float32(2)}, {"s": shared}


@pytest.mark.parametrize("updated", [0, 1])
def test_an_object_that_a_derivative_has_twice(updated: int) -> None:
    """What is by and what is constant share an object: to replace it in one cuts the tie."""
    shared, m, n = shared_between_tables()

    def replaced(*args: Any) -> Any:
        args[updated]["s"] = {"w": args[updated]["s"]["w"] + 1}
        return args[0]["x"]

    def written(*args: Any) -> Any:
        args[updated]["s"]["w"] = args[updated]["s"]["w"] + 1
        return args[0]["x"]

    with pytest.raises(SharingError, match=r"cuts a tie(.|\n)*\['s'\]"):
        pj.value_and_grad(replaced, update_argnums=updated)(m, n)
    assert shared["w"].tolist() == [1.0, 1.0]
    pj.value_and_grad(written, update_argnums=updated)(m, n)
    assert shared["w"].tolist() == [2.0, 2.0]
    assert m["s"] is n["s"]


def test_an_object_that_a_derivative_has_twice_gets_one_value() -> None:
    """Two values for one leaf of the caller's are an error, not the later of them."""
    shared, m, n = shared_between_tables()

    def both(m: Any, n: Any) -> Any:
        m["s"]["w"], n["s"]["w"] = m["s"]["w"] + 1, n["s"]["w"] + 2
        return m["x"]

    with pytest.raises(SharingError, match=r"args\[0\]\['s'\]\['w'\] and args\[1\]\['s'\]\['w'\]"):
        pj.value_and_grad(both, update_argnums=(0, 1))(m, n)
    assert shared["w"].tolist() == [1.0, 1.0]


def test_an_average_that_starts_as_the_very_arrays() -> None:
    """An array that is differentiated by and one that is updated are two, as in JAX."""
    params = {"w": one()}
    average = {"w": params["w"]}

    def loss(params: Any, average: Any) -> Any:
        average["w"] = 0.5 * average["w"] + params["w"]
        return params["w"].sum()

    pj.value_and_grad(loss, update_argnums=1)(params, average)
    assert params["w"].tolist() == [1.0, 1.0]
    assert average["w"].tolist() == [1.5, 1.5]


def test_arrays_have_no_identity_with_nodes_alone() -> None:
    """With `identity="nodes"` an array in two arguments is two, and containers are ties."""
    w = one()
    m, n = {"w": w}, {"w": w}
    pj.jit(lambda m, n: m.update(w=m["w"] + 1), update_argnums=0, identity="nodes")(m, n)
    assert (m["w"].tolist(), n["w"].tolist()) == ([2.0, 2.0], [1.0, 1.0])
    shared = [w]
    with pytest.raises(SharingError, match="cuts a tie"):
        pj.jit(lambda m, n: m.update(x=list(m["x"])), update_argnums=0, identity="nodes")(
            {"x": shared}, {"x": shared}
        )


def test_a_number_that_is_static_by_choice() -> None:
    """What `static=` selects must stay as it was, in a dict as in a module."""
    tree = {"n": 1, "w": one()}
    count = lambda m: m.update(n=m["n"] + 1)  # noqa: E731 (a name for what is wrapped)
    with pytest.raises(ValueError, match=r"args\[0\]\['n'\] was 1 and is 2: it is static"):
        pj.jit(count, update_argnums=0, static="['n']")(tree)
    assert tree["n"] == 1


def test_later_calls_of_one_structure() -> None:
    """The core writes in later calls what the first one wrote, and returns the caller's objects."""
    shared = [one()]
    f = pj.jit(lambda m, n: (m["x"].__setitem__(0, m["x"][0] + 1), m["x"])[1], update_argnums=0)
    for i in range(2, 5):
        m = {"x": shared}
        assert f(m, {"y": shared}) is shared
        assert m["x"] is shared
        assert shared[0].tolist() == [i, i]
    assert isinstance(shared[0], jax.Array)


@pytest.mark.parametrize(("names", "cure"), [("a", "pydag.untie"), ("ab", "one object at both")])
def test_a_tie_within_an_updated_argument(names: str, cure: str) -> None:
    """One that is cut, and one that is made, raise an error that says what helps in that case."""
    w = jnp.ones(2)
    tree = {"a": w, "b": w} if names == "a" else {"a": w, "b": w + 1}

    def write(tree: Any) -> None:
        new = 2 * tree["a"]
        tree.update(dict.fromkeys(names, new))

    with pytest.raises(SharingError, match=f"what is shared in it(.|\n)*{cure}"):
        pj.jit(write, update_argnums=0)(tree)
