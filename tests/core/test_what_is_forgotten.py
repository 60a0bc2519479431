# SPDX-License-Identifier: Apache-2.0
"""What is remembered of structures outlives what has nothing to do with them, and nothing else."""

import gc
import sys
import sysconfig
import weakref
from collections import namedtuple
from collections.abc import Callable
from random import Random
from typing import Any

import optree
import pytest

import pydag


def plain() -> type:
    return type("Plain", (), {})


def register() -> None:
    pydag.register_pydag_node(plain(), lambda x: ((), None), lambda aux, _: aux)


def unregister() -> None:
    cls = plain()
    pydag.register_fields(cls)
    pydag.unregister_pydag_node(cls)


def register_with_optree() -> None:
    if sys.version_info < (3, 12):
        pytest.skip("only dict watchers tell which class it was")
    cls: Any = plain()
    optree.register_pytree_node(cls, lambda x: ((), None), lambda _, c: cls(), namespace="other")


def leaf_dies() -> None:
    pydag.dag_leaves([plain()()])
    gc.collect()


def node_dies() -> None:
    cls: Any = namedtuple("cls", "a b")
    pydag.dag_leaves([cls(1, 2)])
    del cls
    gc.collect()


EVENTS: list[Callable[[], None]] = [
    register, unregister, register_with_optree, leaf_dies, node_dies
]  # fmt: skip


@pytest.mark.parametrize("event", EVENTS)
def test_another_class(event: Callable[[], None]) -> None:
    """A class that is in no node of a structure comes and goes; the structure is found again."""
    tree = {"a": [1, {"b": 2}], "c": (3,)}
    spec = pydag.dag_structure(tree)
    event()
    if event not in (leaf_dies, node_dies) and sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip(
            "there each thread forgets all, since it hears only how often it was registered"
        )
    assert pydag.dag_structure(tree) is spec


class Bag:
    """An object of attributes."""


pydag.register_fields(Bag, ["a", "b", "c", "x"], ["m"])


class Asked:
    """A node that Python functions open and build."""

    def __init__(self, children: Any, aux: Any = None) -> None:
        self.children, self.aux, self.calls = children, aux, 0


def open_asked(node: Asked) -> tuple[Any, Any]:
    node.calls += 1
    if isinstance(node.aux, Exception):
        raise node.aux
    return node.children() if callable(node.children) else node.children, node.aux


pydag.register_pydag_node(Asked, open_asked, lambda aux, children: Asked(tuple(children), aux))


def described(tree: Any) -> tuple[list[int], str]:
    leaves, spec = pydag.dag_flatten(tree)
    return [id(x) for x in leaves], repr(spec)


def afresh(tree: Any) -> tuple[list[int], str]:
    pydag.clear_caches()
    return described(tree)


@pydag.register_fields
class Fields:
    """An instance with an attribute for each child."""

    def __init__(self, children: list[Any]) -> None:
        for i, child in enumerate(children):
            setattr(self, f"child{i}", child)


def leads_to(tree: Any, node: Any) -> bool:
    """Whether a node is in a tree."""
    return any(x is node for x in pydag.dag_leaves(tree, is_leaf=lambda x: x is node))


@pytest.mark.parametrize("change", ["number", "kind", "later", "alias", "error"])
def test_no_node_is_asked_twice(change: str) -> None:
    """Where a tree isn't as it was, each node is asked once all the same."""
    shared = object()
    nodes = [Asked((object(), shared)) for _ in range(3)]
    tree: Any = [[object()], *nodes, [object(), (object(), object())]]
    for _ in range(4):
        pydag.dag_leaves(tree)
    if change == "number":
        nodes[1].children = (object(),)
    elif change == "kind":
        nodes[1].children = ([object()], shared)
    elif change == "later":
        tree[4][1] = [object(), object()]
    elif change == "alias":
        nodes[2].children = (nodes[0].children[0], shared)
    else:
        nodes[1].aux = ValueError("asked")
    for node in nodes:
        node.calls = 0
    if change == "error":
        with pytest.raises(ValueError, match="asked") as raised:
            pydag.dag_leaves(tree)
        assert "[2]" in "".join(raised.value.__notes__)
        assert [node.calls for node in nodes] == [1, 1, 0]
        return
    found = described(tree)
    assert [node.calls for node in nodes] == [1, 1, 1]
    assert found == afresh(tree)


@pytest.mark.parametrize("seed", range(60))
def test_nodes_give_anything_of_the_tree(seed: int) -> None:
    """Leaves and containers of all kinds are shared wherever a node gives them once more."""
    random = Random(seed)
    things: list[Any] = []

    def made(depth: int) -> Any:
        kind = random.choice("ldtfao") if depth else "o"
        if kind == "o":
            thing: Any = object()
        elif kind == "a":
            thing = Asked(tuple(made(depth - 1) for _ in range(random.randrange(3))))
            asked.append(thing)
        else:
            children = [made(depth - 1) for _ in range(random.randrange(4))]
            thing = {
                "l": children,
                "d": {str(i): child for i, child in enumerate(children)},
                "t": tuple(children),
                "f": Fields(children),
            }[kind]
        things.append(thing)
        return thing

    asked: list[Asked] = []
    tree = [made(4) for _ in range(random.choice([2, 6]))]
    for _ in range(4):
        described(tree)
    for node in random.sample(asked, min(len(asked), random.choice([1, 2, 30]))):
        safe = [x for x in things if not leads_to(x, node)]
        node.children = tuple(
            random.choice(safe) if safe and random.random() < 0.7 else child
            for child in node.children
        )
        assert described(tree) == described(tree) == afresh(tree)


def test_a_node_moves_what_was_passed() -> None:
    """A leaf that a node takes out of where it was met, and gives itself, is still one leaf."""
    for number in (1, 2, 30):
        first: list[Any] = [[object()] for _ in range(number)]
        nodes = [Asked(lambda: (object(),)) for _ in range(number)]
        tree = [first, *nodes]
        for _ in range(4):
            assert pydag.dag_structure(tree).num_shared == 0
        for holder, node in zip(first, nodes, strict=True):
            node.children = lambda holder=holder: (holder.pop(),)
        # Shared, or met where it was moved to, depending on when the lists are read.
        assert len(pydag.dag_leaves(tree)) == number


def test_a_node_that_empties_the_tree() -> None:
    """What was taken out of the nodes around one that is asked is visited, whatever it does."""

    def take_apart() -> tuple[Any, ...]:
        if armed:
            inner.clear()
            tree.clear()
        return ()

    armed = False
    inner: Any = [Asked(take_apart), [object()], {"a": object()}]
    tree: Any = [inner, (object(), object()), [object()]]
    for _ in range(4):
        pydag.dag_leaves(tree)
    objects = [*inner[1], inner[2]["a"], *tree[1], *tree[2]]
    armed = True
    assert pydag.dag_leaves(tree) == objects


def test_class_that_a_node_unregisters() -> None:
    """What a node that is asked does to the registry counts for the nodes behind it."""
    cls: Any = plain()
    pydag.register_fields(cls)
    instance = cls()
    instance.w = object()
    armed = False

    def unregister() -> tuple[Any, ...]:
        if armed:
            pydag.unregister_pydag_node(cls)
        return ()

    node = Asked(unregister)
    tree = [node, instance]
    for _ in range(4):
        assert pydag.dag_leaves(tree) == [instance.w]
    armed = True
    assert pydag.dag_leaves(tree) == [instance]


@pytest.mark.parametrize("times", [1, 2, 4])
def test_aux_data_that_changes(times: int) -> None:
    """Of a remembered structure a node that is asked gives its own aux_data, whatever it was."""
    node = Asked((object(), [object()]), "first")
    tree = {"a": [object()], "node": node, "z": (object(), object())}
    for aux in ["first", None, ("second",), [3], [3], None]:
        node.aux = aux
        expected = afresh(tree)
        assert [described(tree) for _ in range(times)] == [expected] * times
        assert pydag.dag_unflatten(*pydag.dag_flatten(tree)[::-1])["node"].aux == aux


def test_answers_are_not_kept() -> None:
    """Nothing that a node said outlives the spec, even if the structure is kept."""

    class Value:
        pass

    value, key = Value(), Value()
    references = [weakref.ref(value), weakref.ref(key)]
    tree: Any = [Asked((1, 2), value), {key: 3, "b": 4}, [5]]
    for _ in range(4):
        pydag.dag_leaves(tree)
        pydag.dag_flatten(tree)
    del tree, value, key
    gc.collect()
    assert [reference() for reference in references] == [None, None]
