# SPDX-License-Identifier: Apache-2.0
"""Optax's transformations for DAGs: `optimizer`."""

from collections.abc import Sequence
from itertools import compress
from typing import Any, cast

import jax.numpy as jnp
import numpy as np

import pydag._core as _core
from pydag.jaxinterop.content.content import Content
from pydag.jaxinterop.content.dag import Dag as PackedDag
from pydag.jaxinterop.content.dag import dag_of
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.selection import derivative, is_differentiable, selected
from pydag.jaxinterop.content.static import static_positions
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.help import with_wrapper_options
from pydag.jaxinterop.typed import T
from pydag.structure.text import short_repr
from pydag.typing import Dag, Identity, Leaf, Where

from .nested import Trained, apart, shown_to_optax
from .state import OptimizerState, about_models, no_gradient, other_gradient, other_model, separated


class _Optimizer:
    """A transformation of optax, as the user gave it, for models."""

    def __init__(self, given: Any, wrt: Where | None, options: Options) -> None:
        import optax

        self._given, self._wrt, self._options = given, wrt, options
        if not isinstance(given, optax.GradientTransformation):  # `MultiSteps`
            given = optax.GradientTransformationExtraArgs(given.init, given.update)
        self._tx = optax.with_extra_args_support(given)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Optimizer, (self._given, self._wrt, self._options)

    def init(self, params: Dag) -> OptimizerState:
        """The state for a model."""
        if type(params).__module__.partition(".")[0] == "optax":
            raise TypeError(
                f"the optimizer takes a model, got {type(params).__name__} of optax's\n  "
                "optax.lookahead and its pairs of models don't work with models of pydag's. For "
                "optax.tree_map_params, give it what you gave to pydag.jaxinterop.optimizer, and "
                "state.inner, which is optax's own state."
            )
        leaves, content = apart(params, self._options, keeps_variables=True)
        if content.values and _core.is_leaf(params, namespace=self._options.namespace):
            raise TypeError(
                f"init takes the model, got {short_repr(params)}\n  What is trained of it is "
                "selected by optimizer(tx, wrt=...)."
            )
        everything = content.all_leaves(leaves)
        picked = self._picked(content, leaves)
        trained = Trained(apart(params, self._options)[1].spec, picked)
        values = list(map(jax_private.read, trained.pick(everything)))
        with about_models(trained, values):
            inner = self._tx.init(trained.nested(values))
        return OptimizerState(separated(inner, values), trained)

    def _picked(self, content: Content, leaves: Sequence[Leaf]) -> tuple[int, ...]:
        """The positions of the leaves that are trained, given the traced ones."""
        positions, wrt = content.traced_positions(), self._wrt
        able = list(map(is_differentiable, leaves))
        for i in jax_private.ref_positions(leaves) if wrt is not None else ():
            able[i] = bool(jnp.issubdtype(leaves[i].dtype, np.inexact))
        flags = selected(wrt, content, leaves, able, "params", self._options)
        each = zip(positions, able, flags, strict=True)
        found = tuple(i for i, can_be, is_chosen in each if can_be and is_chosen)
        if wrt is not None and leaves and not found:
            paths = list(compress(content.paths("params"), able))[:4]
            raise TypeError(
                "there is nothing to train: wrt= selects no array or number that has a derivative"
                f"\n  Some that have one: {', '.join(paths) or 'none'}"
            )
        return found

    def update(
        self, updates: T, state: OptimizerState, params: Dag | None = None, **extra: Any
    ) -> tuple[T, OptimizerState]:
        """The updates of a model, given its gradient, and the next state."""
        if not isinstance(state, OptimizerState):
            raise TypeError(
                "update(gradient, state, model) takes a state that init of a pydag.jaxinterop."
                f"optimizer made, got {short_repr(state)}\n  Write state = opt.init(model). Where "
                "it is a state of optax's for the same dicts: state.inner = ..."
            )
        trained, everything, values = state.trained, None, list[Leaf]()
        if params is not None:
            leaves, content = apart(params, self._options)
            if content.spec != trained.spec:
                raise other_model(trained.spec, content.spec)
            everything = content.all_leaves(leaves)
            values = list(map(jax_private.read, trained.pick(everything)))
        try:
            given = trained.match(updates, "updates")
        except ValueError as error:
            raise other_gradient(error) from None
        gradients = trained.pick(given)
        if any(gradient is None for gradient in gradients):
            raise no_gradient(trained, gradients)
        if everything is None:
            positions, shown = static_positions(given, trained.spec, "updates"), None
            content = Content(trained.spec, positions, tuple(given[i] for i in positions))
        else:
            shown = trained.nested(values)
            extra = {name: shown_to_optax(x, trained, everything) for name, x in extra.items()}
        with about_models(trained, values):
            found, inner = self._tx.update(trained.nested(gradients), state.inner, shown, **extra)
        new = trained.values(found)
        made = dict(zip(trained.positions, new, strict=True))
        model = updates if params is None else params
        changes: Dag
        if isinstance(model, PackedDag):  # in which JAX sees no configuration
            changes = dag_of(content, map(made.get, content.traced_positions()), model._options)
        else:
            changes = derivative(content, made)
        inner = separated(inner, [*gradients, *values, *new])
        return changes, OptimizerState(inner, trained)


@with_wrapper_options
def optimizer(
    tx: Any, wrt: Where | None = None, *, namespace: str = "", identity: Identity = "all"
) -> _Optimizer:
    """An optax transformation whose `init` and `update` take and return models, DAGs of all kinds.

    A shared array is one parameter: it has one moment, one decay, one share of a norm. What has no
    derivative, such as integers and random keys, and what `wrt` doesn't select has no moment, and
    its update is None.

    optax sees a nested dict of the arrays that are trained, such as `{"layers": {0: {"weight":
    ...}}}`: attribute names, keys and indices, each array once, at the first of its paths. Masks
    and functions that make masks or labels get this dict. `mask` makes such a function of a tree
    like the model, or of a selection.

    Args:
        tx: Any transformation of optax that works on a dict of arrays.
        wrt: Which leaves are trained, as in `pydag.dag_mask`. By default all that have a
            derivative, but for what NNX holds in Variables that are no `nnx.Param`.

    Returns:
        An `optax.GradientTransformationExtraArgs`. Its state has the attributes and items of the
        state of `tx`, and knows which arrays of the model it is for.

    Raises:
        ValueError: In `init`: no path matches a pattern of `wrt`. In `update`: the gradient or the
            model is structured differently, or the gradient is None where the optimizer trains.
        SharingError: In `update`: the gradient or the model is shared differently.
        TypeError: In `init`: `wrt` selects nothing to train; or `tx` wants more than a dict.

    >>> import optax
    >>> w = jnp.ones(2)
    >>> model = {"encoder": w, "decoder": w, "steps": 3}
    >>> momentum = optimizer(optax.sgd(0.25, momentum=0.9))
    >>> state = momentum.init(model)
    >>> state[0].trace["decoder"].tolist(), len(jax.tree.leaves(state))
    ([0.0, 0.0], 1)
    """
    try:
        import optax
    except ImportError as error:
        raise ImportError(
            "optimizer needs optax, which is not installed: pip install optax"
        ) from error
    if not (callable(getattr(tx, "init", None)) and callable(getattr(tx, "update", None))):
        raise TypeError(
            "optimizer takes a transformation of optax's, such as optax.adam(1e-3), got "
            f"{short_repr(tx)}"
        )
    own = _Optimizer(tx, wrt, Options(namespace, identity))
    return cast(_Optimizer, optax.GradientTransformationExtraArgs(own.init, own.update))
