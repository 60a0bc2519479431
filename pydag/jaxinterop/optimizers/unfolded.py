# SPDX-License-Identifier: Apache-2.0
"""A model as a function that makes masks or labels gets it: the model itself, with no ties.

Each place of a shared object has an object of its own there, so each function that goes through the
model, of JAX's or of pydag's, sees each place, by its path.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import tree_util

import pydag._core as _core
from pydag.jaxinterop.packed.dag import rebuilt
from pydag.jaxinterop.static.leaves import is_number, is_traced
from pydag.jaxinterop.static.untraced import Options, Untraced, take_apart
from pydag.ops.select import joined_flags
from pydag.structure.listing import Listing
from pydag.typing import Dag, Leaf

_PLACES = 1000  # for each leaf: there may be astronomically many


def is_leaf(x: Any) -> bool:
    """Whether JAX takes an object for a leaf; None and optax's marks for masked leaves are none."""
    return bool(tree_util.all_leaves([x]))


class _Model(NamedTuple):
    untraced: Untraced
    leaves: Sequence[Leaf]


_model: ContextVar[_Model | None] = ContextVar("pydag_model", default=None)
_ties: ContextVar[dict[int, tuple[Leaf, Leaf]] | None] = ContextVar("pydag_ties", default=None)


@contextmanager
def shown_to_functions(untraced: Untraced, leaves: Sequence[Leaf] | None) -> Iterator[None]:
    """In it, functions that make masks or labels get this model.

    Args:
        leaves: The traced ones; None where the model isn't known.
    """
    token = _model.set(None if leaves is None else _Model(untraced, tuple(leaves)))
    try:
        yield
    finally:
        _model.reset(token)


class Unfolded(NamedTuple):
    """A model in which each place of a shared object has an object of its own.

    Args:
        ties: For each array that has copies, and each copy, that array: by id, with the copy.
    """

    tree: Dag
    ties: dict[int, tuple[Leaf, Leaf]]

    def ask(self, function: Callable[[Dag], Any]) -> Any:
        """What a function says of it. To `dag_mask` the copies of an array are one leaf."""
        token = _ties.set(self.ties)
        try:
            return function(self.tree)
        finally:
            _ties.reset(token)


def _join(leaves: Sequence[Leaf], flags: list[bool]) -> list[bool]:
    ties = _ties.get()
    if not ties:
        return flags
    originals = [id(ties[id(leaf)][1]) if id(leaf) in ties else None for leaf in leaves]
    selected = {one for one, flag in zip(originals, flags, strict=True) if flag}
    selected.discard(None)
    return [flag or one in selected for one, flag in zip(originals, flags, strict=True)]


joined_flags.append(_join)


def models_for_functions(untraced: Untraced, leaves: Sequence[Leaf]) -> Iterator[Unfolded]:
    """The model as a function gets it; and then in forms in which it may go through it.

    It is the model itself; with None for its configuration, where JAX would take that for leaves;
    or a `Dag` of it, where it has nodes that JAX doesn't know, or that refuse to hold answers.

    Args:
        leaves: What optax has for each traced leaf; its marks stand for what takes no part.
    """
    known = _model.get()
    is_whole = known is not None and known.untraced.content == untraced.content
    all_leaves = known.leaves if known is not None and is_whole else leaves
    model, without = _unfolded(untraced, all_leaves), untraced.without_statics()
    if model is None:  # JAX's functions would never come to an end in it
        yield Unfolded(rebuilt(untraced, all_leaves), {})
        yield Unfolded(untraced.build(all_leaves), {})
        return
    as_dag = Unfolded(rebuilt(*take_apart(model.tree, untraced.options)), model.ties)
    if _shows_data_alone(model.tree, untraced.options):
        yield model
    else:
        with suppress(Exception):  # a class may refuse None
            bare = _unfolded(without, all_leaves)
            if bare is not None and _shows_data_alone(bare.tree, untraced.options):
                yield bare
        yield as_dag
        yield model
    with suppress(Exception):
        bare = _unfolded(without, [x if is_leaf(x) else None for x in leaves])
        if bare is not None:
            yield bare
    yield as_dag


def _unfolded(untraced: Untraced, leaves: Sequence[Leaf]) -> Unfolded | None:
    """The model; None if it has too many places, or is too deep."""
    if sum(Listing.of(untraced.spec).num_ways()) > _PLACES * (1 + len(leaves)):
        return None
    unfolding = _Unfolding(untraced.options)
    try:
        return Unfolded(unfolding.copy(untraced.build(leaves)), unfolding.ties)
    except RecursionError:
        return None


def _shows_data_alone(tree: Dag, options: Options) -> bool:
    """Whether JAX takes for leaves just what pydag does, and no configuration."""
    shown = sorted(map(id, jax.tree.leaves(tree)))
    return shown == sorted(id(leaf) for leaf in take_apart(tree, options)[1])


class _Unfolding:
    """Copies a tree, with an object of its own at each place."""

    def __init__(self, options: Options) -> None:
        self.namespace = options.namespace
        self.seen: set[int] = set()
        self.ties: dict[int, tuple[Leaf, Leaf]] = {}

    def copy(self, node: Dag) -> Dag:
        if _core.is_leaf(node, namespace=self.namespace):
            return self._leaf(node)
        children, _, spec = _core.open_one_level(node, namespace=self.namespace)
        return spec.unflatten([self.copy(child) for child in children])

    def _leaf(self, leaf: Leaf) -> Leaf:
        if id(leaf) not in self.seen:
            self.seen.add(id(leaf))
            return leaf
        if not is_leaf(leaf) or is_number(leaf) or not is_traced(leaf):
            return leaf
        copy = jnp.copy(leaf)
        self.ties[id(leaf)], self.ties[id(copy)] = (leaf, leaf), (copy, leaf)
        return copy
