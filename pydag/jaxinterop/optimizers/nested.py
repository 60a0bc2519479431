# SPDX-License-Identifier: Apache-2.0
"""The nested dict that optax sees of a model: the arrays that are trained, each at one place.

It looks as flax's parameters do. Keys are attribute names, keys of dicts and indices; an array that
is at several places is at its anchor's, and a Variable of NNX is the array in it.
"""

import dataclasses
import functools
import sys
from collections.abc import Sequence
from typing import Any

import jax

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.errors import SharingError
from pydag.jaxinterop.content.content import Content, take_apart
from pydag.jaxinterop.content.derivative import variable_classes
from pydag.jaxinterop.content.leaves import is_number, is_traced
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.paths import path_texts
from pydag.jaxinterop.packed.dag import Dag as PackedDag
from pydag.registry.class_table import inherits
from pydag.structure.listing import Listing
from pydag.typing import Dag, Leaf, Path


def tree_of(tree: Dag, *, keeps_variables: bool = False) -> Dag:
    """The tree of a `Dag`, the values of a state of NNX, any other tree itself.

    `nnx.Optimizer` begins with a state of Variables, and updates by values.
    """
    nnx: Any = sys.modules.get("flax.nnx")
    if isinstance(tree, PackedDag):
        return tree.tree
    is_state = nnx is not None and isinstance(tree, nnx.State) and not keeps_variables
    return nnx.as_pure(tree) if is_state else tree


def apart(
    tree: Dag, options: Options, *, keeps_variables: bool = False
) -> tuple[Sequence[Leaf], Content]:
    """The traced leaves of a model, given as in `tree_of`, and its content."""
    if isinstance(tree, PackedDag):
        return tree.parts()
    return take_apart(tree_of(tree, keeps_variables=keeps_variables), options, "params")


@dataclasses.dataclass(frozen=True)
class Trained:
    """Which arrays of a model an optimizer trains: what its state knows, beside optax's."""

    spec: PyDagSpec  # of the model
    positions: tuple[int, ...]  # of the arrays, among its leaves

    def __repr__(self) -> str:
        return f"Trained({len(self.positions)} of {self.spec._brief_repr()})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Trained, (self.spec, self.positions)

    @functools.cached_property
    def _ways(self) -> list[Path]:
        """The keys that lead to each array in the nested dict."""
        listing = Listing.of(self.spec)
        records, parents = listing.records, listing.parents
        ways: list[Path] = [
            tuple(
                records[step].entry
                for step in listing.way(listing.leaves[i])
                if not is_variable_class(records[parents[step]].type)
            )
            for i in self.positions
        ]
        keys: dict[Path, dict[Any, Any]] = {}
        for way in ways:
            for depth, key in enumerate(way):
                keys.setdefault(way[:depth], {})[key] = key
        if len(set(ways)) < len(ways):
            raise TypeError(
                "two arrays of the model have the same path: its class gives two children one name"
            )
        names = {above: _sortable(list(below)) for above, below in keys.items()}
        return [tuple(names[way[:i]][key] for i, key in enumerate(way)) for way in ways]

    def nested(self, values: Sequence[Any]) -> Any:
        """The nested dict of one value for each array."""
        root: dict[Any, Any] = {}
        for way, value in zip(self._ways, values, strict=True):
            if not way:
                return value  # the model is one array
            node = root
            for key in way[:-1]:
                node = node.setdefault(key, {})
            node[way[-1]] = value
        return root

    def values(self, nested: Any) -> list[Any]:
        """The values in such a dict."""
        return [functools.reduce(lambda node, key: node[key], way, nested) for way in self._ways]

    def match(self, tree: Dag, root: str) -> list[Any]:
        """What a tree of the model's form has for each leaf of the model."""
        return _core.match_at(self.spec, tree_of(tree), root)

    def pick(self, leaves: Sequence[Leaf]) -> list[Leaf]:
        """What is trained of all leaves."""
        return [leaves[i] for i in self.positions]

    def paths(self, root: str) -> list[str]:
        """The path of each array in the model."""
        return self.pick(path_texts(self.spec, root))


def is_variable_class(cls: object) -> bool:
    """Whether instances of a class are a variable, which stands for what it holds."""
    return isinstance(cls, type) and any(inherits(cls, known) for known, _ in variable_classes)


def _sortable(keys: list[Any]) -> dict[Any, Any]:
    """The names of keys in a dict that JAX has to sort."""
    try:
        sorted(keys)
        return dict(zip(keys, keys, strict=True))
    except TypeError:
        texts = list(map(str, keys))
    return dict(zip(keys, texts if len(set(texts)) == len(keys) else map(repr, keys), strict=True))


def shown_to_optax(value: Any, trained: Trained, leaves: Sequence[Leaf]) -> Any:
    """A further argument of `update`: a tree like the model, or a function of such, by dicts."""
    if value is None or is_traced(value) or is_number(value):
        return value
    try:
        return trained.nested(trained.pick(trained.match(value, "argument")))
    except SharingError:
        raise
    except ValueError:
        if not callable(value):
            is_tuple = type(value) is tuple
            return tuple(shown_to_optax(x, trained, leaves) for x in value) if is_tuple else value

    def model_of(nested: Any) -> Any:
        """The model that a nested dict stands for; any other value itself."""
        shown: Any = jax.tree.structure(trained.nested(trained.positions))
        if jax.tree.structure(nested) != shown:
            return nested
        filled = list(leaves)
        for position, leaf in zip(trained.positions, trained.values(nested), strict=True):
            filled[position] = leaf
        return _core.unflatten(trained.spec, filled)

    @functools.wraps(value, updated=())  # optax reads the names of its parameters
    def of_dicts(*args: Any, **kwargs: Any) -> Any:
        named = {name: model_of(given) for name, given in kwargs.items()}
        return shown_to_optax(value(*map(model_of, args), **named), trained, leaves)

    return of_dicts
