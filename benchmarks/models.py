# SPDX-License-Identifier: Apache-2.0
"""The nine models of optree's published benchmark, as nested containers without weights.

`torch_models.json.gz` has their skeletons, read off from torchvision: for each module its class,
the names of its parameters and buffers, and its children. A container module (Sequential,
ModuleList) becomes a list, any other one a mapping of its children and, as the published benchmark
has it, of its tensors twice: once in sequences, once by name.
"""

import gzip
import json
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MAPPINGS: dict[str, type[dict[str, Any]]] = {"dict": dict, "OrderedDict": OrderedDict}

# What optree's README says, leaves included, None too.
NODE_COUNTS = {
    "TinyMLP": 53,
    "AlexNet": 188,
    "ResNet18": 698,
    "ResNet34": 1242,
    "ResNet50": 1702,
    "ResNet101": 3317,
    "ResNet152": 4932,
    "ViT-H/14": 3420,
    "Swin-B": 2881,
}

Tensors = namedtuple("Tensors", "parameters buffers")
Containers = namedtuple("Containers", "parameters buffers")

Skeleton = dict[str, Any]


def skeletons() -> dict[str, Skeleton]:
    """The skeleton of each model."""
    with gzip.open(Path(__file__).with_name("torch_models.json.gz")) as file:
        return dict(json.load(file))


def array() -> Any:
    """A new array, of no size: pytree libraries look at its class only."""
    import numpy as np  # not needed where leaves are something else

    return np.empty(0, np.float32)


def fresh_key(key: str) -> str:
    """An equal string that nobody has seen (CPython has only one of each single letter)."""
    return "".join(list(key))


@dataclass
class Builder:
    """Makes trees of skeletons.

    Args:
        mapping: The class of mappings.
        leaf: Makes a leaf.
        key: Gives the key for a name, once for each place where the name stands.
        shared: Put an earlier module in the place of a later one of the same class and size, until
            a tenth of the modules are such repetitions.
    """

    mapping: type[dict[str, Any]] = dict
    leaf: Callable[[], Any] = array
    key: Callable[[str], str] = str
    shared: bool = False
    modules: int = 0
    repeated: int = 0
    _known: dict[tuple[str, int], Any] = field(default_factory=dict)

    def module(self, skeleton: Skeleton) -> Any:
        """The tree of a module, or an earlier tree in its place."""
        if not self.shared:
            return self._built(skeleton)
        size = _size(skeleton)
        kind = skeleton["class"], size
        if kind in self._known and 10 * self.repeated < self.modules:
            self.modules += size
            self.repeated += size
        else:
            self.modules += 1
            # Known when it is complete, so that no module comes to stand in itself.
            self._known[kind] = self._built(skeleton)
        return self._known[kind]

    def _built(self, skeleton: Skeleton) -> Any:
        children = skeleton["children"]
        if skeleton["kind"] == "list":
            return [self.module(child) for child in children.values()]
        tree = self.mapping(
            (self.key(name), self.module(child)) for name, child in children.items()
        )
        parameters, buffers = skeleton["parameters"], skeleton["buffers"]
        tree[self.key("tensors")] = Tensors(
            tuple(self._unnamed(parameters)), self._unnamed(buffers)
        )
        tree[self.key("containers")] = Containers(self._named(parameters), self._named(buffers))
        return tree

    def _unnamed(self, tensors: dict[str, Any]) -> list[Any]:
        return [self.leaf() for tensor in tensors.values() if tensor is not None]

    def _named(self, tensors: dict[str, Any]) -> dict[str, Any]:
        return self.mapping(
            (self.key(name), None if tensor is None else self.leaf())
            for name, tensor in tensors.items()
        )


def _size(skeleton: Skeleton) -> int:
    """The number of modules in a module, itself included."""
    return 1 + sum(map(_size, skeleton["children"].values()))
