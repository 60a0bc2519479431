# SPDX-License-Identifier: Apache-2.0
"""Rows of the table of cliffs: classes that come and go; classes of JAX's registry."""

import gc
from collections import namedtuple
from collections.abc import Callable
from typing import Any

from models import Builder, skeletons
from peers import Peers
from rows import USUAL, Race, Row, at_least, at_most, steady
from timing import Effort, Work, prepared_contest

import pydag

Registers = Callable[[type], Any]


def rows(peers: Peers, effort: Effort) -> list[Row]:
    """All of them."""
    found = [
        at_most("flatten after another class was registered", 1.3, _after(_register)),
        at_most("flatten after the class of a leaf died", 1.3, _after(_leaf_dies)),
        at_most("flatten after the class of a node died", 1.3, _after(_node_dies)),
        at_least("first sight of the class of a leaf", 1.0, _first_sight(peers, _leaf_class)),
        at_least("first sight of a namedtuple", 1.0, _first_sight(peers, _tuple_class)),
        at_least("first sight of a registered class", 1.0, _first_sight(peers, _node_class)),
    ]
    return found + (_jax_rows(peers) if "jax" in peers else [])


def _nothing() -> None:
    type("Other", (), {})


def _register() -> None:
    pydag.register_pydag_node(type("Other", (), {}), lambda x: ((), None), lambda _, c: None)


def _leaf_dies() -> None:
    pydag.dag_leaves([type("Other", (), {})()])
    gc.collect()


def _node_dies() -> None:
    cls: Any = namedtuple("cls", "a b")
    pydag.dag_leaves([cls(1, 2)])
    del cls
    gc.collect()


def _after(happens: Callable[[], None]) -> Race:
    """The flatten of a model after something happened; usually only a class is made."""
    model = Builder().module(skeletons()["ResNet18"])
    pydag.dag_flatten(model)

    def prepare(happens: Callable[[], None]) -> Callable[[], Any]:
        def prepared() -> Any:
            happens()
            return model

        return prepared

    flatten = pydag.dag_flatten
    return lambda effort: prepared_contest(
        {"pydag": (prepare(happens), flatten), USUAL: (prepare(_nothing), flatten)}, effort
    )


def _registers(peers: Peers) -> dict[str, tuple[Any, Callable[..., None]]]:
    """For each library its flatten and how a class is registered with it."""
    found: dict[str, tuple[Any, Callable[..., None]]] = {
        "pydag": (pydag.dag_flatten, pydag.register_pydag_node)
    }
    if "optree" in peers:
        optree = peers["optree"]

        def register(cls: type, flatten: Any, unflatten: Any) -> None:
            optree.register_pytree_node(cls, flatten, unflatten, namespace="benchmark")

        found["optree"] = (lambda x: optree.tree_flatten(x, namespace="benchmark"), register)
    if "jax" in peers:
        tree_util = peers["jax"].tree_util
        found["jax"] = tree_util.tree_flatten, tree_util.register_pytree_node
    return found


def _first_sight(peers: Peers, make: Callable[[Callable[..., None]], Any]) -> Race:
    def contender(flatten: Any, register: Callable[..., None]) -> tuple[Any, Any]:
        return (lambda: [make(register)] * 2), flatten

    contenders = {name: contender(*own) for name, own in _registers(peers).items()}
    return lambda effort: prepared_contest(contenders, effort)


def _leaf_class(_: Callable[..., None]) -> Any:
    return type("Leaf", (), {})()


def _tuple_class(_: Callable[..., None]) -> Any:
    cls: Any = namedtuple("cls", "a b")
    return cls(1, 2)


def _node_class(register: Callable[..., None]) -> Any:
    cls = type("Node", (), {"a": 1.0})
    register(cls, lambda x: ((x.a,), None), lambda _, children: None)
    return cls()


class Keyed:
    """A node of two children that JAX calls by keys."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


class Static:
    """A node without children."""


def _jax_rows(peers: Peers) -> list[Row]:
    jax = peers["jax"]
    tree_util = jax.tree_util
    if not tree_util.all_leaves([Keyed(1, 2)]):
        return []
    keys = tree_util.GetAttrKey("a"), tree_util.GetAttrKey("b")
    tree_util.register_pytree_with_keys(
        Keyed,
        lambda x: (((keys[0], x.a), (keys[1], x.b)), None),
        lambda _, children: Keyed(*children),
        lambda x: ((x.a, x.b), None),
    )
    tree_util.register_static(Static)
    trees = {
        "register_pytree_with_keys": [Keyed(jax.numpy.ones(2), 1.0) for _ in range(50)],
        "register_static": [[Static(), 1.0] for _ in range(50)],
    }
    if "flax" in peers:
        trees["NNX State"] = peers["flax"].state(_nnx_model(peers))
    register_with_optree(peers, list(trees.values()))
    found = []
    for name, tree in trees.items():
        for work in ("flatten", "map"):
            found.append(at_least(f"{name}: {work}", 1.5, steady(_jax_works(peers, tree, work))))
        found.append(at_least(f"{name}: jit", 1.0, _jit_race(jax, tree)))
    return found


def _nnx_model(peers: Peers) -> Any:
    nnx = peers["flax"]
    rngs: Any = nnx.Rngs(0)
    return nnx.List([nnx.Linear(2, 2, rngs=rngs) for _ in range(20)])


def _same(x: Any) -> Any:
    return x


INSIDE = {"namespace": "benchmark"}


def register_with_optree(peers: Peers, tree: Any) -> None:
    """Registers the classes of the nodes that JAX alone knows, with the same functions."""
    if "optree" not in peers:
        return
    from jax._src.tree_util import _registry

    def is_node(x: Any) -> bool:
        return not isinstance(x, list) and type(x) in _registry

    while nodes := [node for node in peers["optree"].tree_leaves(tree, **INSIDE) if is_node(node)]:
        entry = _registry[type(nodes[0])]
        peers["optree"].register_pytree_node(
            type(nodes[0]), entry.to_iter, entry.from_iter, **INSIDE
        )


def _jax_works(peers: Peers, tree: Any, work: str) -> dict[str, Work]:
    """Flatten or map, by each library."""
    jax, optree = peers["jax"].tree_util, peers.modules.get("optree")
    if work == "flatten":
        found = {"pydag": Work(pydag.dag_flatten, tree), "jax": Work(jax.tree_flatten, tree)}
        if optree:
            found["optree"] = Work(lambda x: optree.tree_flatten(x, **INSIDE), tree)
        return found
    found = {"pydag": Work(pydag.dag_map, _same, tree), "jax": Work(jax.tree_map, _same, tree)}
    if optree:
        found["optree"] = Work(lambda x: optree.tree_map(_same, x, **INSIDE), tree)
    return found


def _jit_race(jax: Any, tree: Any) -> Race:
    import pydag.jaxinterop as pj

    return steady({"pydag": Work(pj.jit(_same), tree), "jax": Work(jax.jit(_same), tree)})
