# SPDX-License-Identifier: Apache-2.0
"""What is traced, and what a static leaf may be."""

import jax.numpy as jnp

import pydag.jaxinterop as pj


def test_the_new_boundary_has_the_name() -> None:
    """In this process `pydag.jaxinterop` is the new boundary."""
    assert pj.jit.__module__.startswith("pydag._boundary")
    assert pj.jit(jnp.sin)(0.0) == 0
