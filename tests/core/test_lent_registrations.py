# SPDX-License-Identifier: Apache-2.0
"""A walk keeps the registration by which it opens an instance, whatever happens to the class."""

import gc
import threading
from collections.abc import Callable
from typing import Any

import optree
import pytest

import pydag

SPACE = "lent"
JUNK: list[Any] = []


class Part:
    def __init__(self, children: Any) -> None:
        self.children = children


def build(aux: Any, children: Any) -> Any:
    return ("built", aux, *children)


def fill() -> None:
    """Uses the memory that was freed, also for registrations with other functions."""
    gc.collect()
    for _ in range(40):
        pydag.register_pydag_node(type("Other", (), {}), lambda _: ((), None), lambda *_: "wrong")
    JUNK.append([bytes(size) for size in range(40, 600)])


def clear(_: type) -> None:
    pydag.clear_caches()


def register_others(_cls: type) -> None:
    """As the import of a library does, which then uses pydag."""
    for _ in range(20):
        cls = type("Imported", (), {})
        optree.register_pytree_node(cls, lambda _: ((), None), build, namespace="imported")
    pydag.dag_leaves([])


def unregister(cls: type) -> None:
    optree.unregister_pytree_node(cls, namespace=SPACE)
    pydag.dag_leaves([], namespace=SPACE)


LOST: list[Callable[[type], None]] = [clear, register_others, unregister]


@pytest.fixture
def other_library() -> Callable[[Callable[[type], None]], type]:
    """Registers a class with optree, whose flatten function has pydag forget what it looked up."""

    def make(forget: Callable[[type], None]) -> type:
        cls = type("Mine", (Part,), {})

        def flatten(part: Any) -> Any:
            forget(cls)
            fill()
            return part.children, "aux"

        optree.register_pytree_node(cls, flatten, build, namespace=SPACE)
        return cls

    return make


WALKS: dict[str, Callable[[Any], Any]] = {
    "map": lambda tree: pydag.dag_map(lambda x: x, tree, namespace=SPACE),
    "copy": lambda tree: pydag.dag_copy(tree, namespace=SPACE),
    "flatten": lambda tree: pydag.dag_unflatten(*pydag.dag_flatten(tree, namespace=SPACE)[::-1]),
    "is_leaf": lambda tree: pydag.dag_map(
        lambda x: x, tree, is_leaf=lambda _: False, namespace=SPACE
    ),
}


@pytest.mark.parametrize("forget", LOST)
@pytest.mark.parametrize("walk", WALKS)
def test_flatten_function_that_has_its_class_forgotten(
    walk: str, forget: Callable[[type], None], other_library: Callable[..., type]
) -> None:
    """An instance is built by the functions by which it was opened."""
    cls = other_library(forget)
    assert WALKS[walk]([cls([1, 2])]) == [("built", "aux", 1, 2)]


def test_flatten_function_that_registers_its_class_anew() -> None:
    """Each instance is built by the registration that opened it, as in optree."""
    count = [0]

    def make(number: int) -> Callable[..., Any]:
        return lambda aux, children: (number, *children)

    def flatten(part: Any) -> Any:
        count[0] += 1
        pydag.unregister_pydag_node(Part)
        pydag.register_pydag_node(Part, flatten, make(count[0]))
        return part.children, None

    pydag.register_pydag_node(Part, flatten, make(0))
    try:
        out = pydag.dag_map(lambda x: x, [Part([1]), Part([2])])
    finally:
        pydag.unregister_pydag_node(Part)
    assert out == [(0, 1), (1, 2)]


def test_flatten_function_during_which_another_thread_registers() -> None:
    """The same where another thread has the class forgotten while the flatten function waits."""
    inside, done = threading.Event(), threading.Event()

    def flatten(part: Any) -> Any:
        inside.set()
        done.wait(60)
        return part.children, "aux"

    cls = type("Waiting", (Part,), {})
    optree.register_pytree_node(cls, flatten, build, namespace=SPACE)

    def other() -> None:
        inside.wait(60)
        register_others(cls)
        fill()
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    out = pydag.dag_map(lambda x: x, [cls([1])], namespace=SPACE)
    thread.join()
    assert out == [("built", "aux", 1)]
