# SPDX-License-Identifier: Apache-2.0
"""Arrays in meta fields: an error with the path, whatever was looked at before."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pydag
import pydag.jaxinterop as pj


class Record:
    def __init__(self, scale: Any) -> None:
        self.w = jnp.ones(2)
        self.scale = scale


pydag.register_fields(Record, data_fields=["w"], meta_fields=["scale"])


def loss(tree: Any) -> Any:
    return jnp.sum(tree["net"].w)


@pytest.mark.parametrize("scale", [jnp.zeros(()), np.zeros(()), (1, (np.ones(2),))])
def test_an_array_is_refused_after_a_number(scale: Any) -> None:
    """A number that the array is equal to was taken before; the array is an error all the same."""
    for number in (0.0, 0, 0.0):
        assert pj.grad(loss)({"net": Record(number)})["net"].w.tolist() == [1.0, 1.0]
    for _ in range(2):
        with pytest.raises(TypeError, match=r"\['net'\]\.scale is a meta field of .*Record"):
            pj.grad(loss)({"net": Record(scale)})


def test_in_a_trace() -> None:
    """A tracer in a meta field is refused."""
    with pytest.raises(TypeError, match=r"\['net'\]\.scale is a meta field of .*Record"):
        jax.jit(lambda x: pj.grad(loss)({"net": Record(x)}))(1.0)
