# SPDX-License-Identifier: Apache-2.0
"""A class to register, the usual way of registering it, and one that is registered."""

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


class Box:
    """A node with any children, which functions open and build."""

    def __init__(self, *children: Any) -> None:
        self.children = children


pydag.register_pydag_node(Box, lambda box: (box.children, "aux"), lambda _, items: Box(*items))
