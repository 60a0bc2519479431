# SPDX-License-Identifier: Apache-2.0
"""Which registration of a class counts where."""

import contextlib
from typing import Any, NamedTuple

import optree
import pytest
from registering import fresh, register

import pydag


def test_order_of_namespaces() -> None:
    """The order is: pydag there, optree there, pydag globally, optree globally, none."""
    cls = fresh()
    node = cls()

    def answer(name: str) -> Any:
        return (lambda _: ((name,), None)), (lambda *_: None)

    def seen(namespace: str = "here") -> Any:
        return pydag.dag_leaves(node, namespace=namespace)

    every = optree.registry.__dict__["__GLOBAL_NAMESPACE"]
    assert seen() == [node]
    optree.register_pytree_node(cls, *answer("optree"), namespace=every)
    assert seen() == ["optree"]
    pydag.register_pydag_node(cls, *answer("pydag"))
    assert seen() == ["pydag"]
    optree.register_pytree_node(cls, *answer("optree here"), namespace="here")
    assert (seen(), seen("there")) == (["optree here"], ["pydag"])
    pydag.register_pydag_node(cls, *answer("pydag here"), namespace="here")
    assert (seen(), seen("there"), seen("")) == (["pydag here"], ["pydag"], ["pydag"])
    pydag.unregister_pydag_node(cls, namespace="here")
    assert seen() == ["optree here"]
    pydag.unregister_pydag_node(cls)
    assert seen("there") == ["optree"]


def test_namespace_of_specs() -> None:
    """A spec has a namespace only where a registered class is in it; equality knows that."""
    cls = fresh()
    register(cls, namespace="here")
    plain = [pydag.dag_structure(t, namespace="here") for t in (1, None, [1], {"a": (1,)})]
    assert [spec.namespace for spec in plain] == ["", "", "", ""]
    assert plain == [pydag.dag_structure(t) for t in (1, None, [1], {"a": (1,)})]
    spec = pydag.dag_structure([cls()], namespace="here")
    assert spec.namespace == "here"
    assert "namespace='here'" in repr(spec)
    assert hash(spec) == hash(pydag.dag_structure([cls()], namespace="here"))


EVERY = optree.registry.__dict__["__GLOBAL_NAMESPACE"]
TREES: list[Any] = [
    1,
    None,
    [1],
    (),
    {},
    {"a": 1},
    {"a": 1, "b": 2},
    {"b": 1, "a": 2},
    {2: 0, 1: 0},
]


def _ordered(*namespaces: Any) -> contextlib.ExitStack:
    stack = contextlib.ExitStack()
    for namespace in namespaces:
        stack.enter_context(optree.dict_insertion_ordered(True, namespace=namespace))
    return stack


@pytest.mark.parametrize(
    ("ordered", "namespace", "expected"),
    [
        ((), "here", ""),
        (("here",), "here", "here"),
        (("here",), "there", ""),
        (("here",), "", ""),
        ((EVERY,), "here", ""),
        ((EVERY,), "", ""),
        ((EVERY, "here"), "here", "here"),
        ((EVERY, "here"), "there", ""),
    ],
)
def test_namespace_of_ordered_dicts(ordered: Any, namespace: str, expected: str) -> None:
    """A namespace that itself keeps the order of dicts is that of all its specs; and of no others.

    So has optree it. It makes no difference what was flattened before, and under which setting.
    """
    for before in [*TREES, *TREES[::-1]]:
        for setting in ((), ("here",), (EVERY,)):
            with _ordered(*setting):
                pydag.dag_structure(before, namespace=namespace)
                pydag.dag_leaves(before, namespace=namespace)
            with _ordered(*ordered):
                for tree in TREES:
                    spec = pydag.dag_structure(tree, namespace=namespace)
                    plain = optree.tree_structure(tree, namespace=namespace)
                    assert spec.namespace == plain.namespace == expected
                    assert spec.paths() == plain.paths()
                    walked = pydag.dag_structure(tree, lambda _: False, namespace=namespace)
                    assert (walked.namespace, walked.paths()) == (expected, plain.paths())
                    assert walked == spec


class Point(NamedTuple):
    x: Any
    y: Any


def test_namespace_that_is_left_and_used_again() -> None:
    """A namespace knows its classes whatever other ones there were since, also within a walk."""
    cls = fresh()
    node = cls()
    pydag.register_pydag_node(cls, lambda _: ((1, 2), None), lambda *_: None, namespace="here")
    spec = pydag.dag_structure([node], namespace="here")

    def elsewhere(_: Any) -> bool:
        for i in range(300):
            pydag.dag_leaves([Point(1, node)], namespace=f"other {i}")
        return False

    for is_leaf in (None, elsewhere, None):
        elsewhere(None)
        leaves, again = pydag.dag_flatten([node, Point(node, 3)], is_leaf, namespace="here")
        assert leaves == [1, 2, 3]
        assert again.namespace == "here"
        assert pydag.dag_structure([node], namespace="here") == spec
        assert spec.flatten_up_to([node]) == [1, 2]
    pydag.unregister_pydag_node(cls, namespace="here")
    assert pydag.dag_leaves([node], namespace="here") == [node]


def test_specs_of_two_namespaces() -> None:
    """Specs of one class are unequal; `explain` shows it, and no collection holds both."""

    class Local:
        w: Any

    specs = []
    for name in ("of specs", "of others"):
        pydag.register_fields(Local, namespace=name)
        node = Local()
        node.w = 1
        specs.append(pydag.dag_structure(node, namespace=name))
    one, other = specs
    assert (one == other, one != other) == (False, True)
    assert pydag.explain(one, other).startswith(
        "the namespace\n  first:  'of specs'\n  second: 'of others'\n"
    )
    with pytest.raises(ValueError, match=r"same namespace, got 'of specs' vs\. 'of others'"):
        pydag.dagspec_list([one, other], namespace="of specs")
    with pytest.raises(ValueError, match="with namespace 'of others', got 'of specs'"):
        pydag.dagspec_list([one], namespace="of others")
    with pytest.raises(ValueError, match=r"same namespace, got 'of specs' vs\. 'of others'"):
        one.compose(other)
    with pytest.raises(ValueError, match="with namespace 'of specs', got 'of others'"):
        one.transform(None, lambda _: other)
