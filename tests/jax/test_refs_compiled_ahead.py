# SPDX-License-Identifier: Apache-2.0
"""Functions that are compiled for descriptions of refs, and called with refs."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy
HERE = jax.sharding.SingleDeviceSharding(jax.devices()[0])  # else JAX 0.12 can't write it


def described() -> Any:
    return jax.ShapeDtypeStruct((2,), jnp.float32, sharding=HERE, is_ref=True)


try:
    ROW = described()
except TypeError:
    pytest.skip("this JAX describes no refs", allow_module_level=True)

from ref_writes import add_to

from pydag import jaxinterop as pj


def ref(*values: float) -> Any:
    return jax.new_ref(jax.device_put(np.array(values, np.float32), HERE))


def add_one(counter: Any) -> None:
    add_to(counter, 1.0)


def test_what_was_compiled_takes_the_ref() -> None:
    """It writes into the refs that it is called with, and reads others: as in JAX."""

    def step(model: Any, x: Any) -> Any:
        add_one(model["count"])
        return x * model["w"][...] + model["count"][...]

    x = jax.ShapeDtypeStruct((2,), jnp.float32)
    compiled = pj.jit(step).lower({"count": described(), "w": described()}, x).compile()
    model, other = ({"count": ref(n, n), "w": ref(2.0, 3.0)} for n in (0.0, 5.0))
    assert compiled(model, jnp.ones(2)).tolist() == [3.0, 4.0]
    assert compiled(model, jnp.ones(2)).tolist() == [4.0, 5.0]
    assert compiled(other, jnp.ones(2)).tolist() == [8.0, 9.0]
    assert model["count"][...].tolist() == [2.0, 2.0]
    assert model["w"][...].tolist() == [2.0, 3.0]


def read(m: Any) -> Any:
    return m["r"][...] + 1.0


ORDINARY, OTHER = "a ref", "an array, or a ref with a kind or a memory space of its own"
OTHERS: dict[str, tuple[Any, Callable[[], Any], str, str]] = {
    "a ref for an array": (jnp.ones(2), lambda: ref(1.0, 2.0), OTHER, ORDINARY),
    "an array for a ref": (ROW, lambda: jnp.ones(2), ORDINARY, OTHER),
    "a ref of a kind": (ROW, lambda: jax.new_ref(jnp.ones(2), kind="no_grad"), ORDINARY, OTHER),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_refs_than_compiled_for(case: str) -> None:
    """The error says where there is a ref, and where there was one when it was compiled."""
    compiled_for, called_with, first, second = OTHERS[case]
    compiled = pj.jit(read).lower({"r": compiled_for}).compile()
    text = f"args[0]['r']\n  first:  {first}\n  second: {second}\n"
    with pytest.raises(TypeError, match=re.escape(text)):
        compiled({"r": called_with()})
