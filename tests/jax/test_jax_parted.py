# SPDX-License-Identifier: Apache-2.0
"""What is known of the last trees of a structure is used for trees with such leaves alone."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pydag.jaxinterop as pj


class Held(pj.Module):
    """A module of two things."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


shape: Any = jax.ShapeDtypeStruct

# What may be a leaf; whether it is data in a dict, and in a module.
LEAVES: list[tuple[Callable[[], Any], bool, bool]] = [
    (lambda: jnp.ones(2), True, True),
    (lambda: np.ones(2), True, True),
    (lambda: np.ones(2, "float16"), True, True),
    (lambda: jax.new_ref(jnp.ones(2)), True, True),
    (lambda: shape((2,), "float32"), True, True),
    (lambda: np.float32(1.0), True, False),
    (lambda: 1.5, True, False),
    (lambda: True, True, False),
    (lambda: "text", False, False),
    (lambda: b"bytes", False, False),
    (lambda: len, False, False),
]


@pytest.mark.parametrize("make", [lambda a, b: {"a": a, "b": b}, Held], ids=["dict", "module"])
def test_one_structure_with_leaves_of_other_classes(make: Any) -> None:
    """What is static is found by the leaves of each tree, whatever the last trees had."""
    column = 1 + (make is Held)
    for _ in range(2):
        for row in LEAVES:
            for other in LEAVES:
                leaves = row[0](), other[0]()
                tree = make(*leaves)
                flags = row[column], other[column]
                expected = [x for x, is_data in zip(leaves, flags, strict=True) if is_data]
                assert list(map(id, pj.tree.leaves(tree))) == list(map(id, expected))
                if all(isinstance(x, jax.Array | np.ndarray) for x in expected):
                    assert len(jax.tree.leaves(pj.Dag(tree))) == len(expected)
