# SPDX-License-Identifier: Apache-2.0
"""Optax's optimizers for DAGs: `optimizer` and `apply_updates`."""

from collections.abc import Sequence
from typing import Any, TypeVar

import jax.numpy as jnp

from pydag.errors import SharingError
from pydag.jaxinterop import jax_private
from pydag.jaxinterop.boundary.dag import rebuilt
from pydag.jaxinterop.boundary.derivatives import Structures, derivative
from pydag.jaxinterop.messages.plain_trace import plain_trace_advice
from pydag.jaxinterop.static.differentiable import is_differentiable, is_ref
from pydag.jaxinterop.static.untraced import Options, Untraced
from pydag.typing import Dag as AnyDag
from pydag.typing import Identity, Leaf, Where

from .optimizer_view import (
    NoUpdate,
    OptimizerView,
    Parts,
    check_state,
    dags_in,
    keep_moments,
    matched,
    matched_gradient,
    orderly,
    which_are_trained,
    with_contents,
)
from .state import OptimizerState, Structure

T = TypeVar("T")


class _Optimizer:
    """A transformation of optax's, for DAGs."""

    def __init__(self, tx: Any, takes_extra: bool, wrt: Where | None, options: Options) -> None:
        self.tx, self.takes_extra, self.wrt, self.options = tx, takes_extra, wrt, options

    def init(self, params: AnyDag) -> OptimizerState:
        if _is_placeholder(params):
            return OptimizerState(self.tx.init(params), Structure(None))
        _, untraced, leaves, _ = Parts.of(params, self.options, "params")
        active = which_are_trained(untraced, leaves, self.wrt, must_match=bool(leaves))
        if self.wrt is not None and leaves and not any(active):
            raise TypeError(
                "there is nothing to train: wrt selects no number or array of a type that has a "
                "derivative"
            )
        leaves = with_contents(leaves, active)
        inner = self.tx.init(OptimizerView(untraced, active, leaves).dag(leaves))
        return OptimizerState(orderly(inner, leaves), Structure(untraced))

    def update(
        self, updates: AnyDag, state: Any, params: AnyDag | None = None, **extra: Any
    ) -> tuple[AnyDag, OptimizerState]:
        given = Parts.of(updates, self.options, "updates")
        shown = given if params is None else Parts.of(params, self.options, "params")
        before = state.inner if type(state) is OptimizerState else state
        untraced = _structure_of(state) or shown.untraced
        values = None
        if params is not None:
            check_state(untraced, shown.untraced, "params")
            values = matched(untraced, params, "the model", "params")
        gradients = matched_gradient(untraced, updates)
        model, has_gradient, values = self._divided(untraced, values, gradients)
        if self.takes_extra:
            extra = {name: model.argument(name, value) for name, value in extra.items()}
        else:
            extra = {}
        found, after = self.tx.update(
            model.dag(gradients),
            model.without(before),
            None if values is None else model.dag(values),
            **extra,
        )
        leaves = found._take_apart()[1]
        changes = [leaf if has else None for leaf, has in zip(leaves, has_gradient, strict=True)]
        elsewhere = [*gradients, *leaves, *(values or ())]
        after = orderly(keep_moments(before, after, has_gradient), elsewhere)
        changed = _shown(untraced, changes, shown, given.is_dag, params is not None)
        return changed, OptimizerState(after, Structure(untraced))

    def _divided(
        self, untraced: Untraced, values: list[Leaf] | None, gradients: list[Leaf]
    ) -> tuple[OptimizerView, list[bool], list[Leaf] | None]:
        """What takes part, and which leaves have a gradient, which is set to zero for the others.

        And the values, with contents for refs that take part.

        Without the model there are no zeros of the right form: then those don't take part.
        """
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


def _structure_of(state: Any) -> Untraced | None:
    """The structure that a state is for; None where it knows none."""
    if type(state) is OptimizerState and state.structure.untraced is not None:
        return state.structure.untraced
    dags = dags_in(state)
    return dags[0]._take_apart()[0] if dags else None


def _is_placeholder(params: Any) -> bool:
    """Whether optax asks for a state that shows where parameters would stand."""
    cls = type(params)
    return cls.__name__ == "_ParamsPlaceholder" and cls.__module__.partition(".")[0] == "optax"


def _shown(
    untraced: Untraced, changes: Sequence[Leaf], like: Parts, is_dag: bool, is_model: bool
) -> AnyDag:
    """The updates in the form of another DAG, which is structured alike."""
    if like.untraced != untraced:
        changes = matched(like.untraced, derivative(untraced, changes), "the updates", "updates")
    if not is_dag:
        return derivative(like.untraced, changes, Structures.of(like.tree, like.untraced))
    if is_model:
        pairs = zip(changes, like.leaves, strict=True)
        changes = [NoUpdate() if x is None and p is not None else x for x, p in pairs]
    return rebuilt(like.untraced, changes)


def optimizer(
    tx: Any, wrt: Where | None = None, *, namespace: str = "", identity: Identity = "all"
) -> Any:
    """An optax transformation whose `init` and `update` take and return DAGs.

    A shared array is one parameter: it has one moment, one decay, one share of a norm. What has no
    derivative, such as integers, flags and random keys, and what `wrt` doesn't select has no
    moment, and its update is None. An update with a gradient of a part, None elsewhere, leaves the
    moments of the rest as they are.

    A mask or a label function in `tx` gets a `Dag`, of which `pydag.dag_mask`, `pydag.dag_map` and
    JAX's tree functions make another one. So everything of optax's goes inside: what is put around
    the result sees the model as plain JAX does. Given Dags, `update` returns a Dag, which
    `optax.apply_updates` takes; so a `TrainState` can hold them.

    Args:
        tx: Any transformation of optax's.
        wrt: Which leaves are trained: a predicate, a class or several, a pattern of the path, a
            prefix of booleans, or a list of such, as in `pydag.dag_mask`. Left out: all that can
            be differentiated by.
        namespace: Not JAX's. Classes registered in this namespace are nodes, too.
        identity: Not JAX's. "nodes": only containers and modules have identity, arrays don't.

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
    if hasattr(tx, "gradient_transformation"):  # MultiSteps is none, and makes one
        tx = optax.GradientTransformationExtraArgs(tx.init, tx.update)
    takes_extra = isinstance(tx, optax.GradientTransformationExtraArgs)
    made = _Optimizer(tx, takes_extra, wrt, Options(namespace, identity))
    return optax.GradientTransformationExtraArgs(made.init, made.update)


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
        namespace: Not JAX's. Classes registered in this namespace are nodes, too.
        identity: Not JAX's. "nodes": only containers and modules have identity, arrays don't.

    Raises:
        SharingError: There are two updates for one leaf.
        ValueError: The updates are structured in another way.

    >>> w, change = jnp.ones(2), jnp.full(2, -0.5)
    >>> new = apply_updates({"a": w, "b": w, "n": 3}, {"a": change, "b": change, "n": None})
    >>> new["a"] is new["b"], new["a"].tolist(), new["n"]
    (True, [0.5, 0.5], 3)
    """
    parts = Parts.of(params, Options(namespace, identity), "params")
    try:
        found = matched(parts.untraced, updates, "the updates", "updates")
    except SharingError as error:
        advice = plain_trace_advice() or _UPDATES_ADVICE
        raise SharingError(f"there are two updates for one leaf\n{error}\n  {advice}") from None
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
    return new
