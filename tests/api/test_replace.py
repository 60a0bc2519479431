# SPDX-License-Identifier: Apache-2.0
"""`dag_replace` by something that holds parts of the tree: what is shared stays one object."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import reference as plain_ref
import reference_surgery as ref
import specimens as sp
import strategies
from agreement import Options, known, outcome
from hypothesis import given
from hypothesis import strategies as st
from isomorphism import difference
from operations import doubled
from reference_kinds import has_identity
from registering import Box

import pydag
from pydag import dag_replace


@pydag.register_module
class Norm:
    """Has a state, which each use changes."""

    def __init__(self) -> None:
        self.mean = np.zeros(2)


@pydag.register_module
class Block:
    """A layer with a norm."""

    def __init__(self, norm: Any) -> None:
        self.norm, self.w = norm, np.eye(2)


@pydag.register_module
class Adapter:
    """What stands in the place of a layer, and holds it."""

    def __init__(self, base: Any, *more: Any) -> None:
        self.base, self.a, self.more = base, np.zeros((2, 2)), more


def net() -> dict[str, Any]:
    """Two blocks with one norm."""
    norm = Norm()
    return {"one": Block(norm), "two": Block(norm), "head": [np.ones(2)]}


def test_an_adapter_leaves_a_shared_norm_one_object() -> None:
    """The norm of the adapted block is that of the other block; the argument is as it was."""
    model = net()
    norm, one, two = model["one"].norm, model["one"], model["two"]
    adapter = Adapter(one)
    new = dag_replace(model, one, adapter)
    assert new["one"] is adapter
    assert adapter.base is one
    assert new["one"].base.norm is new["two"].norm is norm
    assert new["two"] is not two
    assert new["head"] is not model["head"]
    assert (model["one"], model["two"], two.norm) == (one, two, norm)


# What a replacement of model["one"] may be, and where the norm is in it.
HOLDERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "a new block": (lambda m: Block(m["one"].norm), lambda new: new.norm),
    "a list": (lambda m: [m["one"].norm], lambda new: new[0]),
    "a tuple": (lambda m: ((m["one"].norm,), 1), lambda new: new[0][0]),
    "a dict": (lambda m: {"z": 1, "a": m["two"].norm}, lambda new: new["a"]),
    "a callback node": (lambda m: Box(m["one"].norm, 2), lambda new: new.children[0]),
    "the norm itself": (lambda m: m["one"].norm, lambda new: new),
    "the other block": (lambda m: m["two"], lambda new: new.norm),
    "an adapter of both": (lambda m: Adapter(m["one"], m["two"]), lambda new: new.more[0].norm),
    "itself": (lambda m: m["one"], lambda new: new.norm),
    "an adapter twice": (lambda m: Adapter(Adapter(m["one"])), lambda new: new.base.base.norm),
}


@pytest.mark.parametrize("identity", ["all", "nodes"])
@pytest.mark.parametrize("name", HOLDERS)
def test_whatever_holds_it(name: str, identity: Any) -> None:
    """In a replacement of any kind, what it holds of the tree is what the new tree has there."""
    model = net()
    make, norm_of = HOLDERS[name]
    new = make(model)
    out = dag_replace(model, model["one"], new, identity=identity)
    assert out["one"] is new
    assert norm_of(out["one"]) is out["two"].norm is model["two"].norm


def test_as_a_rewrite_does() -> None:
    """The structure is that of `dag_rewrite`."""
    model = net()
    new = Adapter(model["one"], model["two"].norm, [model["head"]])
    rewritten = pydag.dag_rewrite(lambda part: new if part is model["one"] else part, model)
    assert pydag.dag_structure(dag_replace(model, model["one"], new)) == pydag.dag_structure(
        rewritten
    )


def test_a_leaf_in_what_replaces_it() -> None:
    """An array that is derived from one of the tree: the array is replaced, and stands inside."""
    w, bias = np.ones(2), [np.zeros(2)]
    out: Any = dag_replace({"in": w, "out": (w, bias), "b": bias}, w, {"low": w, "bias": bias})
    assert out["in"] is out["out"][0]
    assert out["in"]["low"] is w
    assert out["in"]["bias"] is out["out"][1] is out["b"] is bias


def test_a_replacement_that_is_there_already() -> None:
    """The replacement is one object at its own places and at those of the old one."""
    old, new = [1], [2]
    out: Any = dag_replace([old, new, {"x": new}, old], old, new)
    assert out[0] is out[1] is out[2]["x"] is out[3] is new


@pytest.mark.parametrize(
    ("make", "where"),
    [
        (lambda tree: tree, "tree"),
        (lambda tree: (1, [tree["layers"]]), r"tree\['layers'\]"),
        (lambda tree: Box(tree["layers"][1]), r"tree\['layers'\]\[1\]"),
    ],
)
def test_a_replacement_that_holds_what_holds_the_old_one(make: Any, where: str) -> None:
    """The result would hold itself: CycleError with the path, and `dag_rewrite` as the cure."""
    w = np.ones(2)
    tree: Any = {"layers": [[1], {"w": w}]}
    with pytest.raises(pydag.CycleError, match=rf"new holds {where}, (.|\n)*dag_rewrite"):
        dag_replace(tree, w, make(tree))
    assert tree["layers"][1]["w"] is w
    new = make(tree)
    out = pydag.dag_rewrite(lambda part: new if part is w else part, tree)
    assert out["layers"][1]["w"] is new


def test_a_tuple_that_holds_the_old_one() -> None:
    """A tuple has no identity: the one in the replacement keeps the old object."""
    one, two = [1], [2]
    out: Any = dag_replace({"layers": (one, two)}, one, ["sequence", (one, two)])
    assert out["layers"][0][1][0] is one
    assert out["layers"][0][1][1] is out["layers"][1] is two


def test_a_replacement_with_a_cycle() -> None:
    """The error says that the cycle is in `new`."""
    new: list[Any] = [[]]
    new[0].append(new)
    tree = [[1]]
    with pytest.raises(pydag.CycleError, match=r"new\[0\]\[0\] is the list at new"):
        dag_replace(tree, tree[0], new)


def test_a_predicate_is_not_asked_about_what_is_replaced_or_kept() -> None:
    """A predicate gets each object once, and never the old one; a container is replaced as well."""
    shared, old = [np.ones(2)], [1]
    asked: list[Any] = []

    def is_leaf(x: Any) -> bool:
        asked.append(x)
        return False

    out: Any = dag_replace([old, shared], old, {"s": shared}, is_leaf)
    assert out[0]["s"] is out[1] is shared
    assert [x is shared for x in asked].count(True) == 1
    assert not any(x is old for x in asked)
    whole = dag_replace([old, [shared]], old, 2, lambda x: x is shared)
    assert whole == [2, [shared]]


@strategies.thorough
@given(strategies.dags(), st.data(), strategies.options)
def test_agrees(dag: Any, data: st.DataObject, options: Options) -> None:
    """Random parts of the tree in the replacement give the same result, or the same error."""
    given_options = known(options)
    parts = [n.obj for n in plain_ref.distinct(plain_ref.flatten(dag, **given_options)[1].root)]
    old = data.draw(st.sampled_from(parts))
    held = data.draw(st.lists(st.sampled_from(parts), max_size=4))
    make: list[Callable[[], Any]] = [
        *(lambda: list(held), lambda: sp.Box(*held, (old,)), lambda: sp.Module(x=held, y=old)),
        *(lambda: (held[-1:],), lambda: (held or [1])[0], lambda: {"k": [old, *held[:1]]}),
    ]
    new = data.draw(st.sampled_from(make))()
    expected, _, refusal = outcome(lambda: ref.replace(dag, old, new, **given_options))
    got, _, error = outcome(lambda: dag_replace(dag, old, new, **options))
    assert error == refusal
    if error:
        return
    assert difference(got, expected) == ""
    ours, theirs = (
        [node.obj for node in plain_ref.distinct(plain_ref.flatten(x, **given_options)[1].root)]
        for x in (got, expected)
    )
    kept = [x for x in (*parts, new) if has_identity(x, given_options["registry"])]
    for one, other in zip(ours, theirs, strict=True):
        assert one is other or not any(other is x for x in kept)


def test_linear_on_sixtyfold_sharing() -> None:
    """2**60 paths in the tree and in the replacement: the time is that of the objects."""
    w = np.ones(2)
    below = doubled(60, w)
    tree = [below, [w], old := [1]]
    out = dag_replace(tree, old, [below, old, [tree[1]]])
    assert out[2][0] is out[0] is below
    assert out[2][2][0] is out[1] is tree[1]
