# SPDX-License-Identifier: Apache-2.0
"""A class to register, the usual way of registering it, and classes that are registered."""

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


@pydag.register_fields
class Part:
    """A node with the attributes that it is given, in that order."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)


@pydag.register_fields(meta_fields=("name",))
class Layer(Part):
    """A part whose name is configuration."""

    def __init__(self, name: Any = "layer", **attributes: Any) -> None:
        super().__init__(name=name, **attributes)


@pydag.register_fields(data_fields=("weight", "bias"))
class Linear:
    """A layer with a weight and a bias, in this order."""

    def __init__(self, weight: Any, bias: Any) -> None:
        self.weight, self.bias = weight, bias
