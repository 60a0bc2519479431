# SPDX-License-Identifier: Apache-2.0
"""Which registration of a class counts where."""

import enum
from typing import Any

import optree
import pytest
from registering import fresh, register

import pydag


def test_order_of_namespaces() -> None:
    """pydag in the namespace, optree in it, pydag's global registration, optree's, none."""
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


def test_one_class_in_two_namespaces() -> None:
    """A class that two namespaces open differently gives unequal specs, each with its own way."""
    cls = fresh()
    register(cls, namespace="one")
    pydag.register_fields(cls, ("x",), namespace="two")
    one, two = (pydag.dag_structure([cls()], namespace=n) for n in ("one", "two"))
    assert (one.num_leaves, two.num_leaves, one == two) == (2, 1, False)
    assert (one.namespace, two.namespace) == ("one", "two")
    with pytest.raises(ValueError, match="Custom node type mismatch"):
        pydag.dag_structure([cls()], namespace="one").flatten_up_to([1])


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


@pytest.mark.parametrize("first", ["text", "member"])
def test_namespace_that_is_an_enum_member(first: str) -> None:
    """A string of another class is the namespace that its text says, and specs hold the text."""
    text = f"the namespace after {first}"
    functional: Any = enum.Enum
    member = functional("Names", {"ONE": text}, type=str).ONE

    class Node:
        def __init__(self) -> None:
            self.x = 1

    if first == "text":
        pydag.dag_structure(1, namespace=text)
    pydag.register_fields(Node, namespace=member)
    for namespace in (member, text):
        spec = pydag.dag_structure([Node()], namespace=namespace)
        assert repr(spec) == f"PyDagSpec([Node(x=*)], namespace={text!r})"
        assert type(spec.namespace) is str
    pydag.unregister_pydag_node(Node, namespace=text)
