# SPDX-License-Identifier: Apache-2.0
"""`dag_rewrite`: objects replaced, children first; what nothing changed in stays as it is."""

import gc
import math
from collections import deque, namedtuple
from collections.abc import Callable
from typing import Any

import pytest
import reference as plain_ref
import reference_fold as ref
import specimens as sp
import strategies
from agreement import Options, known, outcome
from hypothesis import given
from hypothesis import strategies as st
from isomorphism import difference
from strategies import thorough

import pydag

Point = namedtuple("Point", "x y")

# What a function may do with a node, and how its result relates to it.
ACTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "keep": lambda node, other: node,
    "None": lambda node, other: None,
    "wrap": lambda node, other: [node],
    "other": lambda node, other: other,
    "again": lambda node, other: (*node,) if type(node) is tuple else node,
    "number": lambda node, other: float(f"{node!r}") if type(node) is float else node,
    "negative": lambda node, other: -node if type(node) in (int, float) else node,
}


def acting(actions: list[str], other: Any) -> Callable[[Any], Any]:
    """A function that does one thing after the other, whatever it is asked."""
    waiting = list(actions)

    def f(node: Any) -> Any:
        sp.EVENTS.append(("f", node))
        return ACTIONS[waiting.pop(0) if waiting else "keep"](node, other)

    return f


@thorough
@given(
    strategies.dags(),
    st.lists(st.sampled_from(list(ACTIONS)), max_size=20),
    strategies.options,
)
def test_agrees(dag: Any, actions: list[str], options: Options) -> None:
    """The same calls, and a result of the same objects, old and new, shared alike."""
    other = sp.Opaque()
    expected, events, refusal = outcome(
        lambda: ref.rewrite(acting(actions, other), dag, **known(options))
    )
    got, calls, error = outcome(lambda: pydag.dag_rewrite(acting(actions, other), dag, **options))
    assert error == refusal
    assert difference(calls, events) == ""
    if not error:
        assert difference(got, expected) == ""
        assert (got is dag) is (expected is dag)


@thorough
@given(strategies.dags(strategies.BUILTIN + strategies.FIELDS), st.data())
def test_what_did_not_change_is_the_same_object(dag: Any, data: st.DataObject) -> None:
    """Where one leaf is replaced, only what it lies below is built anew."""
    nodes = [n.obj for n in plain_ref.distinct(plain_ref.flatten(dag, **ALL)[1].root)]
    chosen = data.draw(st.sampled_from(nodes))

    def f(node: Any) -> Any:
        return new if node is chosen else node

    new = sp.Opaque()
    got = pydag.dag_rewrite(f, dag, namespace=sp.NAMESPACE)
    expected = ref.rewrite(f, dag, **ALL)
    pairs = zip(
        *(plain_ref.distinct(plain_ref.flatten(x, **ALL)[1].root) for x in (got, expected)),
        strict=True,
    )
    for ours, theirs in pairs:
        is_old = any(theirs.obj is node for node in nodes)
        assert (ours.obj is theirs.obj) or not is_old


ALL: Options = {"registry": sp.REGISTRIES[sp.NAMESPACE], "namespace": sp.NAMESPACE}


def test_identity_gives_the_very_tree() -> None:
    """A function that changes nothing gives the argument back, and builds nothing."""
    tree = [sp.Box(1, [2]), {"k": (None, 3.5)}, deque([sp.Module(w=sp.Opaque())])]
    sp.EVENTS.clear()
    assert pydag.dag_rewrite(lambda node: node, tree) is tree
    assert [event[0] for event in sp.EVENTS] == ["flatten"]
    assert pydag.dag_rewrite({}, tree) is tree
    assert pydag.dag_rewrite({complex: lambda _: 1 / 0}, tree) is tree


EQUAL: dict[str, tuple[Any, Callable[[], Any]]] = {
    "int": (7, lambda: int("7")),
    "big int": (10**30, lambda: int("1" + 30 * "0")),
    "float": (2.5, lambda: float("2.5")),
    "nan": (math.nan, lambda: float("nan")),
    "str": ("text", lambda: "".join(["t", "ext"])),
    "bytes": (b"b", lambda: bytes([98])),
    "complex": (1 + 2j, lambda: complex(1, 2)),
    "range": (range(3), lambda: range(3)),
    "tuple": ((1, 2.5), lambda: (1, float("2.5"))),
    "namedtuple": (Point(1, 2), lambda: Point(1, 2)),
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal_values_change_nothing(name: str) -> None:
    """A fresh value of the same type that is equal rebuilds nothing."""
    value, make = EQUAL[name]
    tree = [value]
    out = pydag.dag_rewrite(lambda node: make() if type(node) is type(value) else node, tree)
    assert out is tree
    assert out[0] is value


@pytest.mark.parametrize(
    ("old", "new"),
    [(1, True), (1, 1.0), (0.0, -0.0), (0j, -0j), ((1,), (True,)), (2.5, 3.5), ((0.0,), [0.0])],
)
def test_equal_values_of_two_types_are_a_change(old: Any, new: Any) -> None:
    """1 and True, 0.0 and -0.0 aren't the same: what the function gave is there."""
    tree = [old]
    out = pydag.dag_rewrite(lambda node: new if node is old else node, tree)
    assert out is not tree
    assert repr(out) == repr([new])


def test_objects_are_compared_by_identity() -> None:
    """An equal list, or an object that says it equals everything, is a change; no `==` runs."""

    class Agreeable:
        def __eq__(self, other: object) -> bool:
            raise AssertionError

        __hash__ = None  # type: ignore[assignment]  # not hashable, on purpose

    old: list[Any] = [Agreeable()]
    out = pydag.dag_rewrite({Agreeable: lambda _: Agreeable()}, old)
    assert out is not old
    inner = [1]
    tree = (inner, inner)
    out = pydag.dag_rewrite({list: lambda x: list(x)}, tree)
    assert out[0] is out[1] is not inner


def test_exceptions_pass_through() -> None:
    """What the function raises comes out as the same object, and the tree is as it was."""
    error = KeyError("own")

    def f(node: Any) -> Any:
        if node == 3:
            raise error
        return node

    tree = {"a": [1, (2, 3)]}
    with pytest.raises(KeyError) as info:
        pydag.dag_rewrite(f, tree)
    assert info.value is error
    assert error.__notes__ == ["raised while rewriting tree['a'][1][1]"]
    assert tree == {"a": [1, (2, 3)]}


@pytest.mark.parametrize("kind", [list, tuple, dict, float, sp.Box, sp.Module])
def test_a_function_that_forgets_to_return(kind: type) -> None:
    """None for a node that wasn't None is a TypeError with the path; None itself may stay."""
    tree: Any = {"a": [None, (2.5, sp.Box(1)), {}, sp.Module(w=None)]}
    with pytest.raises(TypeError, match=r"returned None for (.|\n)*`return`(.|\n)*at tree"):
        pydag.dag_rewrite({kind: lambda _: None}, tree["a"])
    assert pydag.dag_rewrite(lambda node: node, tree) is tree
    assert pydag.dag_rewrite({type(None): lambda _: None}, tree) is tree


def test_node_put_into_itself() -> None:
    """A function that puts a node into itself gets an error; one that wraps a node may."""

    def append_itself(node: Any) -> Any:
        if isinstance(node, list):
            node.append([node])
        return node

    with pytest.raises(pydag.CycleError, match="an object contains itself") as info:
        pydag.dag_rewrite(append_itself, {"a": [1]})
    assert "what the function made of it" in info.value.__notes__[0]
    assert pydag.dag_rewrite(lambda node: [node], [1]) == [[[1]]]
    w = sp.Opaque()
    tree: list[Any] = [w]
    out = pydag.dag_rewrite({sp.Opaque: lambda _: tree}, tree)
    assert out is not tree
    assert out[0] is tree


def test_changed_meanwhile() -> None:
    """A function may change what is still to come: the parts are those that were there before."""
    tree: Any = [[1, 2], {"k": 3}]

    def f(node: Any) -> Any:
        tree.clear()
        gc.collect()
        return node + 10 if isinstance(node, int) else node

    assert pydag.dag_rewrite(f, tree) == [[11, 12], {"k": 13}]
    assert tree == []
