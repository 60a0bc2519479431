# SPDX-License-Identifier: Apache-2.0
"""JAX without types, which its refs lack, and a write into a ref as an expression."""

import importlib
from typing import Any

jax: Any = importlib.import_module("jax")
jnp: Any = jax.numpy


def add_to(ref: Any, value: Any) -> Any:
    """Adds to the content of a ref."""
    ref[...] = ref[...] + value
