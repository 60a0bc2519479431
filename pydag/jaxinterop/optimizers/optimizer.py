# SPDX-License-Identifier: Apache-2.0
"""Optax's optimizers for DAGs: `optimizer` and `apply_updates`."""

from collections.abc import Sequence
from typing import Any, TypeVar

import jax.numpy as jnp

from pydag._core import PyDagSpec
from pydag.errors import SharingError
from pydag.jaxinterop.foreign import jax_private, optax_private
from pydag.jaxinterop.foreign.flax_private import as_values, is_state
from pydag.jaxinterop.messages.plain_functions import plain_trace_advice
from pydag.jaxinterop.notices.running import note_new
from pydag.jaxinterop.options import with_wrapper_options
from pydag.jaxinterop.packed.dag import rebuilt
from pydag.jaxinterop.packed.derivatives import Structures, derivative
from pydag.jaxinterop.static.differentiable import is_differentiable, is_ref
from pydag.jaxinterop.static.untraced import Options, Untraced
from pydag.public.swapped import MISSING
from pydag.typing import Dag as AnyDag
from pydag.typing import Identity, Leaf, Where

from .masks import fitted, refusing_masks
from .matching import NoUpdate, check_state, leaves_or_none, matched_gradient
from .optimizer_view import (
    OptimizerView,
    Parts,
    dags_in,
    keep_moments,
    orderly,
    tell_divided,
    which_are_trained,
    with_contents,
)
from .state import OptimizerState, Structure
from .transformation import (
    Optimizer,
    check_model,
    check_order,
    check_transformation,
    note_other_state,
    note_swapped,
)
from .unfolded import shown_to_functions

T = TypeVar("T")


class _Optimizer:
    """A transformation of optax's, for DAGs.

    Args:
        tx: The transformation as it was given; it is pickled as such.
    """

    def __init__(self, tx: Any, wrt: Where | None, options: Options) -> None:
        import optax

        self.given, self.wrt, self.options = tx, wrt, options
        if hasattr(tx, "gradient_transformation"):  # `MultiSteps` is none, and makes one
            tx = optax.GradientTransformationExtraArgs(tx.init, tx.update)
        self.takes_extra = isinstance(tx, optax.GradientTransformationExtraArgs)
        self.tx: Any = optax_private.WithTrees(fitted, refusing_masks)(tx)
        self.told: set[PyDagSpec] = set()  # the structures that a warning was about

    def __reduce__(self) -> tuple[Any, ...]:
        return _Optimizer, (self.given, self.wrt, self.options)

    def init(self, params: AnyDag) -> OptimizerState:
        check_model(params)
        if optax_private.is_placeholder(params):
            return OptimizerState(self.tx.init(params), Structure(None))
        given, slow = params, None
        slow_leaves: list[Leaf] = []
        if optax_private.is_lookahead(given):
            params, slow = given.fast, given.slow
        _, untraced, leaves, _ = Parts.of(as_values(params), self.options, "params")
        chosen = self._chosen_variables(params, len(leaves))
        active = chosen or which_are_trained(untraced, leaves, self.wrt, must_match=bool(leaves))
        tell_divided(self.told, self.wrt, untraced, leaves)
        if self.wrt is not None and leaves and not any(active):
            raise TypeError(
                "there is nothing to train: wrt selects no number or array of a type that has a "
                "derivative"
            )
        leaves = with_contents(leaves, active)
        view = OptimizerView(untraced, active, leaves)
        values: Any = view.dag(leaves)
        if slow is not None:
            slow_leaves = leaves_or_none(untraced, slow, "the slow model", "params.slow")
            slow_leaves = with_contents(slow_leaves, active)
            values = type(given)(fast=values, slow=view.dag(slow_leaves))
        with shown_to_functions(untraced, leaves):
            state = orderly(self.tx.init(values), [*leaves, *slow_leaves])
        return OptimizerState(state, Structure(untraced, None if chosen is None else tuple(chosen)))

    def _chosen_variables(self, params: AnyDag, count: int) -> list[bool] | None:
        """Which values are trained, where `wrt` selects by the classes of NNX's variables.

        Args:
            count: Of the values.
        """
        if self.wrt is None or as_values(params) is params:
            return None
        _, untraced, leaves, _ = Parts.of(params, self.options, "params")
        chosen = which_are_trained(untraced, leaves, self.wrt)
        return chosen if any(chosen) and len(chosen) == count else None

    def update(
        self,
        updates: AnyDag = MISSING,
        state: Any = MISSING,
        params: AnyDag | None = None,
        **extra: Any,
    ) -> tuple[AnyDag, OptimizerState]:
        check_order(updates, state, params)
        pair = params if optax_private.is_lookahead(params) else None
        if pair is not None:
            params = pair.fast
        like, updates = updates if params is None else params, as_values(updates)
        params = as_values(params)
        given = Parts.of(updates, self.options, "updates")
        shown = given if params is None else Parts.of(params, self.options, "params")
        before = state.inner if type(state) is OptimizerState else state
        structure = _structure_of(state)
        untraced = structure.untraced or shown.untraced
        values = None
        if params is not None:
            try:
                check_state(untraced, shown.untraced, "params")
            except ValueError as error:
                note_swapped(error, untraced, given.untraced)
                raise
            values = leaves_or_none(untraced, params, "the model", "params")
        gradients = matched_gradient(untraced, updates)
        model, has_gradient, values = self._divided(untraced, values, gradients, structure)
        if self.takes_extra:
            extra = {name: model.argument(name, value) for name, value in extra.items()}
        else:
            extra = {}
        elsewhere = [*gradients, *(values or ())]
        seen: Any = None if values is None else model.dag(values)
        if pair is not None:
            slow = leaves_or_none(untraced, pair.slow, "the slow model", "params.slow")
            elsewhere += slow
            seen = type(pair)(fast=seen, slow=model.dag(slow))
        try:
            with shown_to_functions(untraced, values):
                found, after = self.tx.update(
                    model.dag(gradients), model.without(before), seen, **extra
                )
        except (TypeError, ValueError, AttributeError) as error:
            note_other_state(error, state, model.lacking(before))
            raise

        def changed(dag: Any) -> AnyDag:
            leaves = dag._take_apart()[1]
            elsewhere.extend(leaves)
            changes = [x if has else None for x, has in zip(leaves, has_gradient, strict=True)]
            if as_values(like) is not like:
                return Parts.of(like, self.options, "params").build(changes)
            return _shown(untraced, changes, shown, given.is_dag, params is not None)

        both = optax_private.is_lookahead(found)
        changes: Any = type(found)(*map(changed, found)) if both else changed(found)
        after = orderly(keep_moments(before, after, has_gradient), elsewhere)
        return changes, OptimizerState(after, Structure(untraced, structure.chosen))

    def _divided(
        self,
        untraced: Untraced,
        values: list[Leaf] | None,
        gradients: list[Leaf],
        structure: Structure,
    ) -> tuple[OptimizerView, list[bool], list[Leaf] | None]:
        """The view of what takes part, which leaves have a gradient, and the values.

        A leaf without a gradient takes part with a gradient of zeros. Without the model there are
        no zeros of the right form, and it doesn't take part. In the values, contents stand for the
        refs that take part.
        """
        if structure.chosen is not None:
            active = list(structure.chosen)
        else:
            active = which_are_trained(untraced, gradients if values is None else values, self.wrt)
        if values is not None:
            values = with_contents(values, active)
        has_gradient = [
            on and gradient is not None and is_differentiable(gradient)
            for on, gradient in zip(active, gradients, strict=True)
        ]
        if values is not None:
            for i, (on, has) in enumerate(zip(active, has_gradient, strict=True)):
                if on and not has:
                    gradients[i] = jnp.zeros_like(values[i])
        return OptimizerView(untraced, active, values), has_gradient, values


def _structure_of(state: Any) -> Structure:
    """The structure that a state is for; unknown where it knows none."""
    if type(state) is OptimizerState and state.structure.untraced is not None:
        return state.structure
    dags = dags_in(state)
    return Structure(dags[0]._take_apart()[0] if dags else None)


def _shown(
    untraced: Untraced, changes: Sequence[Leaf], like: Parts, is_dag: bool, is_model: bool
) -> AnyDag:
    """The updates in the form of another DAG, which is structured alike."""
    if like.untraced != untraced:
        changes = leaves_or_none(
            like.untraced, derivative(untraced, changes), "the updates", "updates"
        )
    is_added_by_optax = is_dag or is_state(like.tree)
    if is_model and is_added_by_optax:
        pairs = zip(changes, like.leaves, strict=True)
        changes = [NoUpdate() if x is None and p is not None else x for x, p in pairs]
    if is_dag:
        return rebuilt(like.untraced, changes)
    return derivative(like.untraced, changes, Structures.of(like.tree, like.untraced))


@with_wrapper_options
def optimizer(
    tx: Any, wrt: Where | None = None, *, namespace: str = "", identity: Identity = "all"
) -> Optimizer:
    """An optax transformation whose `init` and `update` take and return DAGs.

    A shared array is one parameter: it has one moment, one decay, one share of a norm. What has no
    derivative, such as integers, flags and random keys, and what `wrt` doesn't select has no
    moment, and its update is None. An update with a gradient of a part, None elsewhere, leaves the
    moments of the rest as they are.

    Masks and labels in `tx` are trees like the model, prefixes of one, or functions. A function
    gets the model itself, in which each place of a shared object has a copy of its own: functions
    of JAX's and of pydag's see a shared leaf at each of its paths. A mask that a function makes
    selects a leaf by any of its paths, and warns where they differ; any other two answers for one
    leaf are a `SharingError`. Everything of optax's goes inside: what is put around the result sees
    the model as plain JAX does.

    Given Dags, `update` returns a Dag, which `optax.apply_updates` takes; so a `TrainState` can
    hold them. The parameters of `optax.lookahead` are its `LookaheadParams` of two models.

    Args:
        tx: Any transformation of optax's.
        wrt: Which leaves are trained: a predicate, a class or several, a pattern of the path, a
            prefix of booleans, or a list of such, as in `pydag.dag_mask`. Left out: all that can
            be differentiated by, but for what NNX holds in Variables that are no `nnx.Param`.

    Returns:
        An `optax.GradientTransformationExtraArgs`. Its state has the attributes and items of that
        of `tx`, with a Dag for each tree, and knows what the model shares.

    Raises:
        ValueError: In `init`: no path matches a pattern of `wrt`. In `update`: the gradient or the
            state is for another structure.
        SharingError: In `update`: for one that is shared in another way.
        TypeError: In `init`: `wrt` selects nothing that can be trained.

    >>> import optax
    >>> w = jnp.ones(2)
    >>> model = {"encoder": w, "decoder": w, "steps": 3}
    >>> momentum = optimizer(optax.sgd(0.25, momentum=0.9))
    >>> state = momentum.init(model)
    >>> len(jax.tree.leaves(state))
    1
    >>> gradient = {"encoder": 2 * w, "decoder": None, "steps": None}
    >>> gradient["decoder"] = gradient["encoder"]
    >>> updates, state = momentum.update(gradient, state, model)
    >>> updates["encoder"] is updates["decoder"], updates["steps"]
    (True, None)
    >>> apply_updates(model, updates)["decoder"].tolist()
    [0.5, 0.5]
    """
    try:
        import optax  # who has an optimizer has optax
    except ImportError as error:
        raise ImportError(
            "optimizer needs optax, which is not installed: pip install optax"
        ) from error
    check_transformation(tx)
    made = _Optimizer(tx, wrt, Options(namespace, identity))
    result: Optimizer = optax.GradientTransformationExtraArgs(made.init, made.update)
    return result


def _added(parameter: Leaf, update: Leaf) -> Leaf:
    """The sum, of the dtype of the parameter, and weakly typed where that is."""
    old = jnp.asarray(parameter)
    new = jnp.asarray(parameter + update).astype(old.dtype)
    if old.weak_type and not new.weak_type:
        new = jax_private.convert_element_type(new, old.dtype, weak_type=True)
    return new


_UPDATES_ADVICE = (
    "An optimizer of optax's alone, or plain jax.tree.map, unties updates. Make it "
    "pydag.jaxinterop.optimizer(tx), or map with pydag.dag_map."
)


@with_wrapper_options
def apply_updates(
    params: T, updates: AnyDag, *, namespace: str = "", identity: Identity = "all"
) -> T:
    """A model with updates added to it; as `optax.apply_updates`, and what is shared stays shared.

    The leaves keep their types. Where the update is None stands the very leaf of the model. A ref
    that has an update gets a new content, and the new model holds the same ref.

    Args:
        params: The model, a DAG; or a `Dag` of it, which gives a Dag.
        updates: What `update` of an `optimizer` gives; or any DAG of this structure. It may share
            more, and must not share less.

    Raises:
        SharingError: There are two updates for one leaf.
        ValueError: The updates are structured in another way.

    >>> w, change = jnp.ones(2), jnp.full(2, -0.5)
    >>> new = apply_updates({"a": w, "b": w, "n": 3}, {"a": change, "b": change, "n": None})
    >>> new["a"] is new["b"], new["a"].tolist(), new["n"]
    (True, [0.5, 0.5], 3)
    """
    if optax_private.is_lookahead(params):
        pair: Any = params
        pairs = zip(pair, updates, strict=True)
        both = [apply_updates(p, u, namespace=namespace, identity=identity) for p, u in pairs]
        made: T = type(pair)(*both)
        return made
    parts = Parts.of(params, Options(namespace, identity), "params")
    try:
        found = leaves_or_none(parts.untraced, updates, "the updates", "updates")
    except SharingError as error:
        advice = plain_trace_advice() or _UPDATES_ADVICE
        raise SharingError(f"there are two updates for one leaf\n{error}\n  {advice}") from None
    except ValueError as error:
        error.add_note("Pass the model and its updates: apply_updates(model, updates).")
        raise
    leaves = list(parts.leaves)
    contents: list[tuple[Any, Any]] = []
    for i, (leaf, update) in enumerate(zip(parts.leaves, found, strict=True)):
        if update is not None and is_ref(leaf):
            contents.append((leaf, _added(leaf[...], update)))
        elif update is not None:
            leaves[i] = _added(leaf, update)
    new: T = parts.build(leaves)
    for ref, content in contents:
        ref[...] = content
    note_new(params, new)
    return new
