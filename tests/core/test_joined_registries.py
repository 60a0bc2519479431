# SPDX-License-Identifier: Apache-2.0
"""What is registered with optree, by whichever of its ways, is a node here as well, and as long."""

import dataclasses
import sys
from typing import Any

import optree
import optree.dataclasses
import optree.functools
import pytest
import specimens as sp
from registering import Pair, flatten, fresh, register

import pydag
import pydag.dag
import pydag.dataclasses
import pydag.functools

EVERY: Any = optree.registry.__dict__["__GLOBAL_NAMESPACE"]
W = sp.Opaque()


def by_functions(namespace: Any) -> Any:
    cls = fresh()
    build = lambda _, items: cls(*items)  # noqa: E731  # one line is enough
    return cls, lambda: optree.register_pytree_node(cls, flatten, build, namespace=namespace)


def by_methods(namespace: Any) -> Any:
    class Node(Pair):
        def tree_flatten(self) -> Any:
            return (self.x, self.y), None

        @classmethod
        def tree_unflatten(cls, _: Any, items: Any) -> Any:
            return cls(*items)

    register_class: Any = optree.register_pytree_node_class
    return Node, lambda: register_class(Node, namespace=namespace)


def by_fields(namespace: Any) -> Any:
    @dataclasses.dataclass
    class Node:
        x: Any = 1
        y: Any = 2

    return Node, lambda: optree.dataclasses.register_node(Node, namespace=namespace)


def by_attrs(namespace: Any) -> Any:
    attrs = pytest.importorskip("attrs")
    integration = pytest.importorskip("optree.integrations.attrs")

    @attrs.define
    class Node:
        x: Any = 1
        y: Any = 2

    return Node, lambda: integration.register_node(Node, namespace=namespace)


WAYS = [by_functions, by_methods, by_fields, by_attrs]


@pytest.mark.parametrize("namespace", ["joined", EVERY])
@pytest.mark.parametrize("way", WAYS)
def test_classes_of_optree_are_nodes_as_long_as_they_are_there(way: Any, namespace: Any) -> None:
    """Registered after pydag saw the class as a leaf, it is a node; unregistered, a leaf again."""
    cls, do_register = way(namespace)
    node = cls(W, W)
    options = {} if namespace is EVERY else {"namespace": namespace}
    for _ in range(2):
        assert pydag.dag_leaves([node], **options) == [node]
        assert pydag.dag_is_leaf(node, **options)
        assert pydag.register_pydag_node.get(cls, **options) is None
    do_register()
    try:
        assert pydag.dag_leaves([node, node], **options) == [W]
        out = pydag.dag_map(lambda x: [x], [node, node], **options)
        assert out[0] is out[1]
        assert out[0].x is out[0].y
        entry = pydag.register_pydag_node.get(cls, **options)
        theirs = optree.register_pytree_node.get(cls, namespace=options.get("namespace", ""))
        assert theirs is not None
        assert entry is not None
        for name in set(entry._fields) - {"unflatten_func"}:  # the boundary wraps it
            assert getattr(entry, name) == getattr(theirs, name)
        if options:
            assert pydag.dag_is_leaf(node)
    finally:
        optree.unregister_pytree_node(cls, namespace=namespace)
    assert pydag.dag_leaves([node], **options) == [node]
    assert pydag.register_pydag_node.get(cls, **options) is None


def test_partial_is_a_node() -> None:
    """`partial` holds its arguments as children; it calls as the standard library's does."""
    bound = pydag.functools.partial(divmod, W, end=W)
    assert pydag.functools.partial is optree.functools.partial
    assert pydag.dag_leaves([bound, bound]) == [W]
    assert pydag.dag_map(lambda x: 7, pydag.functools.partial(divmod, 2))(2) == (3, 1)
    assert pydag.functools.reduce is pydag.dag_reduce
    assert pydag.dag_paths(bound) == [("args", 0)]


def test_dataclasses_of_pydag_are_optrees() -> None:
    """One decorator makes a node of both libraries; what is static is part of the structure."""
    module: Any = pydag.dataclasses

    @module.dataclass(namespace="joined dataclasses")
    class Layer:
        w: Any
        units: int = module.field(default=3, pytree_node=False)

    make: Any = Layer
    model: Any = [make(W), make(W)]
    out = pydag.dag_map(lambda x: [x], model, namespace="joined dataclasses")
    assert out[0].w is out[1].w
    assert out[0].units == 3
    assert optree.tree_leaves(model, namespace="joined dataclasses") == [W, W]


def test_attrs_classes_of_pydag_are_optrees() -> None:
    """One decorator makes a class of attrs a node of both libraries, too."""
    pytest.importorskip("attrs")
    attrs: Any = pytest.importorskip("pydag.integrations.attrs")

    @attrs.define(namespace="joined attrs")
    class Layer:
        w: Any
        units: int = attrs.field(default=3, pytree_node=False)

    make: Any = Layer
    out = pydag.dag_map(lambda x: [x], [make(W), make(W)], namespace="joined attrs")
    assert out[0].w is out[1].w
    assert out[0].units == 3
    theirs: Any = pytest.importorskip("optree.integrations.attrs")
    assert set(attrs.__all__) == set(theirs.__all__)


def test_a_copy_of_the_module_with_a_namespace() -> None:
    """`reexport` makes a module whose functions have another default namespace."""
    cls = fresh()
    register(cls, namespace="joined copy")
    module: Any = pydag.dag.reexport(namespace="joined copy", module="joined_copy.tree")
    assert sys.modules["joined_copy.tree"] is module
    assert module.leaves(cls(1, [2])) == [1, 2]
    assert len(module.leaves(cls(1, 2), namespace="")) == 1
    assert module.replace_nones(0, [cls(None, 1)])[0].x == 0
    assert module.register_node.get(cls) is not None
    assert module.functools.reduce(max, cls(3, 4)) == 4

    @module.dataclasses.dataclass
    class Layer:
        w: Any

    make: Any = Layer
    assert module.leaves(make([1])) == [1]
    assert module.reduce.__name__ == "dag_reduce"
    assert "leaves" in dir(module)
    assert not hasattr(module, "reexport")
    with pytest.raises(ValueError, match="already exists"):
        pydag.dag.reexport(namespace="joined copy", module="joined_copy.tree")
    with pytest.raises(ValueError, match="invalid module name"):
        pydag.dag.reexport(namespace="joined copy", module="no name")
    with pytest.raises(TypeError, match="must be a string"):
        pydag.dag.reexport(namespace=1)  # type: ignore[arg-type]  # meant
    module = pydag.dag.reexport(namespace=EVERY)
    assert module.__name__ == f"{__name__}.dag"
    assert module.leaves([1, [2]]) == [1, 2]


def test_all_entries() -> None:
    """Without a class there is an entry for each; a namespace is a string, or the global one."""
    entries = pydag.register_pydag_node.get(None)
    assert entries[list] is pydag.register_pydag_node.get(list)
    assert {dict, tuple} <= set(entries)
    get: Any = pydag.register_pydag_node.get
    assert get(list, namespace=optree.registry.__GLOBAL_NAMESPACE) == get(list)
    with pytest.raises(TypeError, match="Expected a class or None, got 3"):
        get(3)
