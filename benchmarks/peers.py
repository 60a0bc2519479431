# SPDX-License-Identifier: Apache-2.0
"""The competitors: which are installed, and how each does what the tables are about."""

import copy
import importlib
import importlib.metadata
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from timing import Work

import pydag

WORKS = (
    "flatten",
    "unflatten",
    "flatten with path",
    "copy",
    "map",
    "map of three trees",
    "map with path",
    "map of three trees with path",
)

# The name in the tables: its module, and what pip calls it.
WANTED = {
    "optree": ("optree", "optree"),
    "jax": ("jax", "jax"),
    "dm-tree": ("tree", "dm-tree"),
    "torch": ("torch.utils._pytree", "torch"),
    "equinox": ("equinox", "equinox"),
    "flax": ("flax.nnx", "flax"),
    "pytools": ("pytools", "pytools"),
    "sympy": ("sympy", "sympy"),
    "UFL": ("ufl", "fenics-ufl"),
    "copium": ("copium", "copium"),
    "safetensors": ("safetensors", "safetensors"),
    "orbax": ("orbax.checkpoint", "orbax-checkpoint"),
}

TREE_LIBRARIES = ("optree", "jax", "dm-tree", "torch")


@dataclass
class Peers:
    """The modules of those that are installed, and a message for each one that isn't."""

    modules: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)

    def __contains__(self, name: str) -> bool:
        return name in self.modules

    def __getitem__(self, name: str) -> Any:
        return self.modules[name]


def find_peers(wanted: dict[str, tuple[str, str]] = WANTED) -> Peers:
    """Import what there is of the competitors."""
    peers = Peers()
    for name, (module, distribution) in wanted.items():
        try:
            peers.modules[name] = importlib.import_module(module)
            peers.versions[name] = importlib.metadata.version(distribution)
        except ImportError as error:
            peers.modules.pop(name, None)
            peers.missing.append(
                f"{name} can't be imported, and is left out: {error} (pip install {distribution})"
            )
    return peers


def one(x: Any) -> Any:
    """What is mapped over one tree."""
    return x


def three(x: Any, y: Any, z: Any) -> Any:
    """What is mapped over three trees."""
    return x


def path_and_one(path: Any, x: Any) -> Any:
    """What is mapped over the paths and leaves of one tree."""
    return x


def path_and_three(path: Any, x: Any, y: Any, z: Any) -> Any:
    """What is mapped over the paths and leaves of three trees."""
    return x


def pydag_works(tree: Any, rests: tuple[Any, ...]) -> dict[str, Work]:
    """How pydag does it."""
    leaves, spec = pydag.dag_flatten(tree)
    return {
        "flatten": Work(pydag.dag_flatten, tree),
        "unflatten": Work(pydag.dag_unflatten, spec, leaves),
        "flatten with path": Work(pydag.dag_flatten_with_path, tree),
        "copy": Work(pydag.dag_copy, tree),
        "map": Work(pydag.dag_map, one, tree),
        "map of three trees": Work(pydag.dag_map, three, tree, *rests),
        "map with path": Work(pydag.dag_map_with_path, path_and_one, tree),
        "map of three trees with path": Work(pydag.dag_map_with_path, path_and_three, tree, *rests),
    }


def _alike(module: Any, tree: Any, rests: tuple[Any, ...]) -> dict[str, Work]:
    """optree and JAX have the same functions. Neither has a copy of its own."""
    flatten, unflatten = module.tree_flatten, module.tree_unflatten
    leaves, spec = flatten(tree)
    return {
        "flatten": Work(flatten, tree),
        "unflatten": Work(unflatten, spec, leaves),
        "flatten with path": Work(module.tree_flatten_with_path, tree),
        "copy": Work(lambda x: unflatten(*flatten(x)[::-1]), tree),
        "map": Work(module.tree_map, one, tree),
        "map of three trees": Work(module.tree_map, three, tree, *rests),
        "map with path": Work(module.tree_map_with_path, path_and_one, tree),
        "map of three trees with path": Work(
            module.tree_map_with_path, path_and_three, tree, *rests
        ),
    }


def _torch(module: Any, tree: Any, rests: tuple[Any, ...]) -> dict[str, Work]:
    """torch has them too, but its `tree_unflatten` takes the leaves first."""
    leaves, spec = module.tree_flatten(tree)
    return {
        **_alike(module, tree, rests),
        "unflatten": Work(module.tree_unflatten, leaves, spec),
        "copy": Work(lambda x: module.tree_unflatten(*module.tree_flatten(x)), tree),
    }


def _dm_tree(module: Any, tree: Any, rests: tuple[Any, ...]) -> dict[str, Work]:
    """dm-tree has no structure apart from the tree itself: its flatten makes a list only."""
    leaves = module.flatten(tree)
    return {
        "flatten": Work(module.flatten, tree),
        "unflatten": Work(module.unflatten_as, tree, leaves),
        "flatten with path": Work(module.flatten_with_path, tree),
        "copy": Work(lambda x: module.unflatten_as(x, module.flatten(x)), tree),
        "map": Work(module.map_structure, one, tree),
        "map of three trees": Work(module.map_structure, three, tree, *rests),
        "map with path": Work(module.map_structure_with_path, path_and_one, tree),
        "map of three trees with path": Work(
            module.map_structure_with_path, path_and_three, tree, *rests
        ),
    }


_MAKERS: dict[str, Callable[[Any, Any, tuple[Any, ...]], dict[str, Work]]] = {
    "optree": _alike,
    "jax": lambda jax, tree, rests: _alike(jax.tree_util, tree, rests),
    "dm-tree": _dm_tree,
    "torch": _torch,
}


def works(peers: Peers, tree: Any, *rests: Any) -> dict[str, dict[str, Work]]:
    """What each library that is installed does: library -> work -> call."""
    others = {name: _MAKERS[name](peers[name], tree, rests) for name in _MAKERS if name in peers}
    return {"pydag": pydag_works(tree, rests), **others}


def flattens(peers: Peers) -> dict[str, Callable[[Any], Any]]:
    """The flatten function of each library that is installed."""
    functions: dict[str, Callable[[Any], Any]] = {"pydag": pydag.dag_flatten}
    for name in TREE_LIBRARIES:
        if name in peers:
            module = peers[name].tree_util if name == "jax" else peers[name]
            functions[name] = module.flatten if name == "dm-tree" else module.tree_flatten
    return functions


def standard_works(tree: Any) -> dict[str, dict[str, Work]]:
    """The two ways of the standard library that keep what is shared. Both copy the leaves too."""
    data = pickle.dumps(tree, pickle.HIGHEST_PROTOCOL)
    return {
        "copy.deepcopy": {"copy": Work(copy.deepcopy, tree)},
        "pickle": {
            "flatten": Work(pickle.dumps, tree, pickle.HIGHEST_PROTOCOL),
            "unflatten": Work(pickle.loads, data),
            "copy": Work(lambda x: pickle.loads(pickle.dumps(x, pickle.HIGHEST_PROTOCOL)), tree),
        },
    }
