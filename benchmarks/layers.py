# SPDX-License-Identifier: Apache-2.0
"""One model, N layers of three arrays and a name each, in the classes of several libraries."""

import dataclasses
from collections.abc import Callable
from typing import Any

from peers import Peers

import pydag

Array = Callable[[], Any]  # makes one
Layered = Callable[[int, Array], Any]  # makes a model of so many layers


@pydag.register_fields(meta_fields=("name",))
class Layer:
    """With a `__dict__`."""

    def __init__(self, weight: Any, bias: Any, scale: Any, name: str) -> None:
        self.weight, self.bias, self.scale, self.name = weight, bias, scale, name


@pydag.register_fields(meta_fields=("name",))
class SlottedLayer:
    """With `__slots__`."""

    __slots__ = ("bias", "name", "scale", "weight")

    def __init__(self, weight: Any, bias: Any, scale: Any, name: str) -> None:
        self.weight, self.bias, self.scale, self.name = weight, bias, scale, name


@pydag.register_fields
@dataclasses.dataclass
class DataLayer:
    """A dataclass, as for `jax.tree_util.register_dataclass`."""

    weight: Any
    bias: Any
    scale: Any
    name: str = dataclasses.field(metadata={"static": True})


@pydag.register_fields
@dataclasses.dataclass
class Model:
    """What holds the layers, whichever class they are of."""

    layers: list[Any]


def of_dicts(count: int, array: Array) -> Any:
    """As plain dicts. There is no place for a name that isn't a leaf."""
    return {
        "layers": [{"weight": array(), "bias": array(), "scale": array()} for _ in range(count)]
    }


def _of(model: Callable[[list[Any]], Any], layer: Callable[..., Any]) -> Layered:
    def make(count: int, array: Array) -> Any:
        return model([layer(array(), array(), array(), "layer") for _ in range(count)])

    return make


of_fields = _of(Model, Layer)
of_slotted_fields = _of(Model, SlottedLayer)
of_data_fields = _of(Model, DataLayer)


def of_jax_dataclasses(peers: Peers) -> Layered:
    """Of dataclasses that JAX knows."""
    register = peers["jax"].tree_util.register_dataclass

    @dataclasses.dataclass
    class JaxLayer:
        weight: Any
        bias: Any
        scale: Any
        name: str

    @dataclasses.dataclass
    class JaxModel:
        layers: list[Any]

    register(JaxLayer, data_fields=["weight", "bias", "scale"], meta_fields=["name"])
    register(JaxModel, data_fields=["layers"], meta_fields=[])
    return _of(JaxModel, JaxLayer)


def of_equinox_modules(peers: Peers) -> Layered:
    """Of equinox modules."""
    equinox = peers["equinox"]
    base: Any = equinox.Module

    class EquinoxLayer(base):  # type: ignore[misc]  # equinox may be missing, so its types are too
        weight: Any
        bias: Any
        scale: Any
        name: str = equinox.field(static=True)

    class EquinoxModel(base):  # type: ignore[misc]  # as above
        layers: list[Any]

    return _of(EquinoxModel, EquinoxLayer)


def of_nnx_modules(peers: Peers) -> Layered:
    """Of Flax NNX modules."""
    nnx = peers["flax"]
    base: Any = nnx.Module

    class NnxLayer(base):  # type: ignore[misc]  # flax may be missing, so its types are too
        def __init__(self, weight: Any, bias: Any, scale: Any, name: str) -> None:
            self.weight, self.bias, self.scale = map(nnx.Param, (weight, bias, scale))
            self.name = name

    class NnxModel(base):  # type: ignore[misc]  # as above
        def __init__(self, layers: list[Any]) -> None:
            self.layers = nnx.List(layers) if hasattr(nnx, "List") else layers

    return _of(NnxModel, NnxLayer)
