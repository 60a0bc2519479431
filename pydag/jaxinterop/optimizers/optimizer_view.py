# SPDX-License-Identifier: Apache-2.0
"""A model as an optimizer sees it: a `Dag` of all of it, with None for what isn't trained.

So parameters, gradients, moments, masks and labels are of one structure, whatever is frozen.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple

import jax
import numpy as np

from pydag._core import PyDagSpec
from pydag.errors import SharingError
from pydag.jaxinterop.boundary.argnums import select_among
from pydag.jaxinterop.messages.at_call import warn_at_call
from pydag.jaxinterop.messages.path_texts import path_texts
from pydag.jaxinterop.notices.parallel_copies import SharedSelectionWarning, divided
from pydag.jaxinterop.packed.dag import Dag, rebuilt
from pydag.jaxinterop.refs.access import is_top_level
from pydag.jaxinterop.static.differentiable import is_differentiable, is_ref, shape_of
from pydag.jaxinterop.static.state_variables import are_state
from pydag.jaxinterop.static.untraced import Options, Untraced, take_apart
from pydag.typing import Dag as AnyDag
from pydag.typing import Leaf, Where

from .matching import leaves_or_none

_OF_THE_MODEL = ("grad", "params", "updates")


class Parts(NamedTuple):
    """A DAG taken apart."""

    tree: AnyDag
    untraced: Untraced
    leaves: Sequence[Leaf]
    is_dag: bool  # whether it was given as a `Dag`

    @classmethod
    def of(cls, tree: AnyDag, options: Options, root: str) -> "Parts":
        if type(tree) is Dag:
            return cls(tree, *tree._take_apart(), True)
        return cls(tree, *take_apart(tree, options, root), False)

    def build(self, leaves: Sequence[Leaf]) -> AnyDag:
        """A DAG like this one, with other leaves."""
        return rebuilt(self.untraced, leaves) if self.is_dag else self.untraced.build(leaves)


def is_dag(x: Any) -> bool:
    """Whether JAX's walk shall stop here."""
    return isinstance(x, Dag)


def dags_in(state: Any) -> list[Dag]:
    """The Dags in the state of a transformation."""
    return [x for x in jax.tree.leaves(state, is_leaf=is_dag) if is_dag(x)]


def _shape_in(leaf: Any) -> Any:
    """For a ref the shape and type of its content."""
    return shape_of(leaf) if is_ref(leaf) else leaf


def with_contents(leaves: Sequence[Leaf], active: Sequence[bool]) -> list[Leaf]:
    """The leaves, with contents for the refs that are trained."""
    pairs = zip(leaves, active, strict=True)
    return [leaf[...] if on and is_ref(leaf) else leaf for leaf, on in pairs]


def which_are_trained(
    untraced: Untraced, leaves: Sequence[Leaf], wrt: Where | None, must_match: bool = False
) -> list[bool]:
    """Whether each traced leaf is selected, and can be trained; of refs only what `wrt` selects."""
    if wrt is None:
        can = [leaf is not None and is_differentiable(leaf) for leaf in leaves]
        state = are_state(untraced.spec, untraced.traced_positions())
        return [a and not b for a, b in zip(can, state, strict=True)]
    can = [leaf is not None and is_differentiable(_shape_in(leaf)) for leaf in leaves]
    found = select_among(untraced, leaves, can, wrt, must_match=must_match)
    return [a and b for a, b in zip(found, can, strict=True)]


def tell_divided(
    told: set[PyDagSpec], wrt: Where | None, untraced: Untraced, leaves: Sequence[Leaf]
) -> None:
    """Warns where `wrt` takes a leaf in one of several parallel copies.

    Args:
        told: The structures for which that was said; changed.
        leaves: The traced ones.
    """
    spec = untraced.spec
    if wrt is None or not spec.num_shared or (spec in told and is_top_level()):
        return
    told.add(spec)
    can = [False] * spec.num_leaves
    for position, leaf in zip(untraced.traced_positions(), leaves, strict=True):
        can[position] = leaf is not None and is_differentiable(_shape_in(leaf))
    found = divided(wrt, spec, can, 0, ["params"])
    if found is not None:
        warn_at_call(found.text("wrt"), SharedSelectionWarning)


class OptimizerView:
    """The structure of a model, and which of its leaves take part.

    Args:
        active: Whether each traced leaf does.
        leaves: Of the model, also those that don't; None where they aren't known.
    """

    def __init__(
        self, untraced: Untraced, active: Sequence[bool], leaves: Sequence[Leaf] | None
    ) -> None:
        self.untraced, self.active, self.leaves = untraced, active, leaves

    def dag(self, leaves: Sequence[Leaf]) -> Dag:
        """The Dag of these leaves; None for those that don't take part."""
        pairs = zip(leaves, self.active, strict=True)
        return rebuilt(self.untraced, [leaf if on else None for leaf, on in pairs])

    def argument(self, name: str, value: Any) -> Any:
        """An argument in the form in which a transformation should see it.

        What is structured as the model is becomes a Dag, a function of the model a function of such
        a Dag.
        """
        if name in _OF_THE_MODEL or not self.untraced.spec.is_leaf():
            try:
                return self.dag(leaves_or_none(self.untraced, value, name, name))
            except SharingError:
                raise
            except ValueError:
                pass  # it is something else
        return self._function(value) if callable(value) else value

    def _function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function, updated=())  # optax reads the names of its parameters
        def of_dags(*args: Any, **kwargs: Any) -> Any:
            return function(*map(self._tree, args), **{k: self._tree(v) for k, v in kwargs.items()})

        return of_dags

    def _tree(self, value: Any) -> Any:
        """The model that a Dag stands for."""
        if type(value) is not Dag or value._untraced != self.untraced:
            return value
        leaves = value._take_apart()[1]
        rows = zip(leaves, self.leaves or leaves, self.active, strict=True)
        return self.untraced.build([leaf if on else own for leaf, own, on in rows])

    def lacking(self, state: Any) -> str | None:
        """The path of a leaf that takes part, and of which a state has no moment."""
        spec, positions = self.untraced.spec, self.untraced.traced_positions()
        for dag in dags_in(state):
            own, moments = dag._take_apart()
            if own.spec == spec and own.positions == self.untraced.positions:
                rows = zip(positions, moments, self.active, strict=True)
                missing = [position for position, moment, on in rows if on and moment is None]
                if missing:
                    return path_texts(spec, "params")[missing[0]]
        return None

    def without(self, state: Any) -> Any:
        """A state in which None stands for the moments of leaves that don't take part."""
        if all(self.active):
            return state
        return jax.tree.map(self._without, state, is_leaf=is_dag)

    def _without(self, x: Any) -> Any:
        if type(x) is not Dag:
            return x
        pairs = zip(x._take_apart()[1], self.active, strict=True)
        # The marks that optax puts for leaves that it leaves out stay.
        leaves = [None if not on and _is_array(leaf) else leaf for leaf, on in pairs]
        return rebuilt(x._untraced, leaves)


def _is_array(leaf: Leaf) -> bool:
    return bool(jax.tree_util.all_leaves([leaf]))


def keep_moments(before: Any, after: Any, has_gradient: Sequence[bool]) -> Any:
    """A state in which leaves without a gradient have the moments that they had before."""
    if all(has_gradient):
        return after

    def kept(old: Any, new: Any) -> Any:
        if not (type(old) is Dag and type(new) is Dag):
            return new
        rows = zip(old._take_apart()[1], new._take_apart()[1], has_gradient, strict=True)
        return rebuilt(new._untraced, [b if has else a for a, b, has in rows])

    return jax.tree.map(kept, before, after, is_leaf=is_dag)


def orderly(state: Any, elsewhere: Sequence[Leaf] = ()) -> Any:
    """A state with each array at one place, and with dicts in the order of their keys.

    A transformation may start two moments as one array, and fill a dict in another order when it
    updates. A function that was compiled for its first state would then be compiled again for the
    second one, and no loop could carry them.

    Args:
        elsewhere: Arrays of the model, which the new state may hold, and gets copies of.
    """
    leaves, structure = jax.tree.flatten(state)
    seen = set(map(id, elsewhere))
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, (jax.Array, np.ndarray)):
            if id(leaf) in seen:
                leaves[i] = leaf.copy()
            seen.add(id(leaf))
    return jax.tree.unflatten(structure, leaves)
