# SPDX-License-Identifier: Apache-2.0
"""What a function closed over dies with the last reference to it, without the garbage collector."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
import pytest
from small_models import tied_under
from wrappers import APART, WRAPPERS

import pydag
from pydag import jaxinterop as pj

EVERY = WRAPPERS | APART


class Data:
    """Something that a function closes over, and no code of JAX's keeps."""


@pytest.fixture(autouse=True)
def _no_garbage_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def closing_over(data: Any) -> Callable[[Any], Any]:
    """A function of a tree."""

    def f(tree: Any) -> Any:
        assert data is not None
        return pydag.dag_map(lambda x: 2 * x, tree)

    return f


tied = tied_under("a", "b", lambda: jnp.ones((2, 2, 2)))


@pytest.mark.parametrize("name", EVERY)
def test_nothing_is_in_a_cycle(name: str) -> None:
    """Neither the wrapper, once and again, nor what was made for the function."""
    data = Data()
    f = closing_over(data)
    wrapped = EVERY[name](f)
    wrapped(tied())
    wrapped(tied())
    EVERY[name](f)(tied())
    alive = weakref.ref(data)
    del data, f, wrapped
    assert alive() is None


def test_of_other_structures_and_static_content() -> None:
    """Nor do plans for several structures, static leaves, options or errors."""
    data = Data()
    f = pj.jit(closing_over(data), static=int)
    f({**tied(), "name": 3})
    f({"a": jnp.ones(2), "name": 4})
    f(({"name": 5}, 2.0))
    f.lower({**tied(), "name": 3}).compile()
    f.trace({**tied(), "name": 3})
    with pytest.raises(TypeError):
        f({**tied(), "name": 3, "mark": bytearray()})
    alive = weakref.ref(data)
    del data, f
    assert alive() is None
