# SPDX-License-Identifier: Apache-2.0
"""A write into a ref as an expression, for functions that are lambdas."""

from typing import Any


def add_to(ref: Any, value: Any) -> Any:
    """Adds to the content of a ref."""
    ref[...] = ref[...] + value
