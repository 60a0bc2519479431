# SPDX-License-Identifier: Apache-2.0
"""Which registration of a class counts where."""

from typing import Any

import optree
import pytest

import pydag


class Pair:
    """A class to register; each test makes a subclass of its own."""

    def __init__(self, x: Any = 1, y: Any = 2) -> None:
        self.x, self.y = x, y


def flatten(pair: Any) -> Any:
    return (pair.x, pair.y), None


def fresh() -> Any:
    """A class that nobody has seen."""
    return type("Fresh", (Pair,), {})


def register(cls: Any, **options: Any) -> None:
    """By functions; the unflatten function gives the class whatever it gets."""
    pydag.register_pydag_node(cls, flatten, lambda _, items: cls(*items), **options)


@pytest.mark.parametrize("cls", BUILTIN)
def test_builtin_containers_are_taken(cls: Any) -> None:
    """The builtin containers can't be registered, nor unregistered."""
    for work in (
        lambda: register(cls),
        lambda: register(cls, namespace="some"),
        lambda: pydag.unregister_pydag_node(cls),
    ):
        with pytest.raises(ValueError, match="built-in type"):
            work()


def test_registered_twice() -> None:
    """A class can be registered once in each namespace, by either way of registering."""
    cls = fresh()
    register(cls)
    with pytest.raises(ValueError, match="already registered in the global namespace"):
        register(cls)
    with pytest.raises(ValueError, match="already registered in the global namespace"):
        pydag.register_fields(cls)
    register(cls, namespace="some")
    with pytest.raises(ValueError, match="already registered in namespace 'some'"):
        pydag.register_fields(cls, namespace="some")


def test_not_registered() -> None:
    """What isn't registered can't be unregistered; a registration of optree's is not pydag's."""
    cls = fresh()
    optree.register_pytree_node(cls, flatten, lambda _, items: cls(*items), namespace="theirs")
    for namespace in ("", "theirs"):
        with pytest.raises(ValueError, match="not registered"):
            pydag.unregister_pydag_node(cls, namespace=namespace)


@pytest.mark.parametrize("bad", [7, "Pair", None, Pair()])
def test_no_class(bad: Any) -> None:
    """Only classes can be registered."""
    with pytest.raises(TypeError, match="Expected a class"):
        register(bad)
    with pytest.raises(TypeError, match="Expected a class"):
        pydag.unregister_pydag_node(bad)


def test_bad_arguments() -> None:
    """Functions must be callable, entry types entry types, namespaces strings."""
    cls = fresh()
    with pytest.raises(TypeError):
        pydag.register_pydag_node(cls, 1, lambda *_: None)  # type: ignore[arg-type]  # meant
    with pytest.raises(TypeError):
        pydag.register_pydag_node(cls, flatten, None)  # type: ignore[arg-type]  # meant
    with pytest.raises(TypeError):
        register(cls, path_entry_type=int)
    with pytest.raises(TypeError, match="namespace"):
        register(cls, namespace=1)
    with pytest.raises(TypeError, match="namespace"):
        pydag.dag_flatten([1], namespace=None)  # type: ignore[arg-type]  # meant
    register(cls)  # nothing was left half done


def test_what_unregistering_returns() -> None:
    """Unregistering gives back what was registered, and the class is a leaf again."""
    cls = fresh()
    unflatten = lambda _, items: cls(*items)  # noqa: E731  # compared below
    pydag.register_pydag_node(cls, flatten, unflatten, namespace="some")
    entry = pydag.unregister_pydag_node(cls, namespace="some")
    assert entry == (cls, flatten, unflatten, optree.AutoEntry, "some")
    node = cls()
    assert pydag.dag_leaves(node, namespace="some") == [node]


def test_specs_outlive_their_registration() -> None:
    """A spec keeps working when its class is unregistered, or registered otherwise."""
    cls = fresh()
    register(cls)
    spec = pydag.dag_structure([cls(1, 2)])
    pydag.unregister_pydag_node(cls)
    pydag.register_pydag_node(cls, lambda p: ((p.x,), None), lambda _, items: cls(*items))
    back = pydag.dag_unflatten(spec, [3, 4])[0]
    assert (back.x, back.y) == (3, 4)
    assert spec != pydag.dag_structure([cls(1, 2)])
    assert spec.paths() == [(0, 0), (0, 1)]
    assert repr(spec) == "PyDagSpec([CustomTreeNode(Fresh[None], [*, *])])"
    with pytest.raises(ValueError, match="Custom node type mismatch"):
        spec.flatten_up_to([cls()])


def test_late_registration() -> None:
    """A class registered after it was seen as a leaf is a node from then on, and back."""
    cls = fresh()
    node = cls()
    for _ in range(3):
        assert pydag.dag_leaves([node]) == [node]
        register(cls)
        assert pydag.dag_leaves([node]) == [1, 2]
        pydag.unregister_pydag_node(cls)


@pytest.mark.parametrize("namespace", ["", "late"])
def test_late_registration_with_optree(namespace: str) -> None:
    """The same for a class that is registered with optree only."""
    cls = fresh()
    node = cls()
    theirs: Any = namespace or optree.registry.__dict__["__GLOBAL_NAMESPACE"]
    for _ in range(3):
        assert pydag.dag_leaves([node], namespace=namespace) == [node]
        optree.register_pytree_node(cls, flatten, lambda _, c: cls(*c), namespace=theirs)
        leaves, spec = pydag.dag_flatten([node, node], namespace=namespace)
        assert (leaves, spec.num_shared) == ([1, 2], 1)
        optree.unregister_pytree_node(cls, namespace=theirs)
        assert spec.unflatten([3, 4])[0].y == 4


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
