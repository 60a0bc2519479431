# SPDX-License-Identifier: Apache-2.0
"""A class to register, and the usual way of registering it."""

from typing import Any

import pydag


class Pair:
    """A class to register; each test makes a subclass of its own."""

    def __init__(self, x: Any = 1, y: Any = 2) -> None:
        self.x, self.y = x, y


def flatten(pair: Any) -> Any:
    return (pair.x, pair.y), None


def fresh() -> Any:
    """A class that nobody has seen."""
    return type("Fresh", (Pair,), {})


def register(cls: Any, **options: Any) -> None:
    """By functions; the unflatten function gives the class whatever it gets."""
    pydag.register_pydag_node(cls, flatten, lambda _, items: cls(*items), **options)
