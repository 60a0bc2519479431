# SPDX-License-Identifier: Apache-2.0
"""The state of an optimizer, and errors about a gradient or a model that doesn't fit it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

import pydag._core as _core
from pydag.errors import SharingError
from pydag.jaxinterop.content.dag import LeafKey
from pydag.jaxinterop.content.leaves import copied, is_like_array
from pydag.jaxinterop.naming import plain_trace
from pydag.registry.fields import register_fields
from pydag.typing import Leaf

from .nested import Trained


@register_fields(data_fields=["inner"], meta_fields=["trained"])
class OptimizerState:
    """Optax's state of nested dicts; this object forwards attributes and items to it."""

    def __init__(self, inner: Any, trained: Trained) -> None:
        self.inner, self.trained = inner, trained

    def __getattr__(self, name: str) -> Any:
        if name in ("inner", "trained") or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)
        return getattr(self.inner, name)

    def __getitem__(self, item: Any) -> Any:
        return self.inner[item]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.inner)

    def __len__(self) -> int:
        return len(self.inner)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return repr(self.inner)

    def _replace(self, **fields: Any) -> "OptimizerState":
        return OptimizerState(self.inner._replace(**fields), self.trained)


jax.tree_util.register_pytree_with_keys(  # to JAX the paths are those of optax's state
    OptimizerState,
    lambda state: ([(LeafKey(""), state.inner)], state.trained),
    lambda trained, parts: OptimizerState(next(iter(parts)), trained),
    lambda state: ((state.inner,), state.trained),
)


def separated(state: Any, elsewhere: Sequence[Leaf]) -> Any:
    """A state of optax with each array at one place, and no array that is also elsewhere.

    So it can be donated, and has one structure in all steps. (Its dicts have their keys in order,
    in whichever order a transformation fills them.)
    """
    leaves, structure = jax.tree.flatten(state)
    met = set(map(id, elsewhere))
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, jax.Array | np.ndarray):
            if id(leaf) in met:
                leaves[i] = copied(leaf)
            met.add(id(leaf))
    return jax.tree.unflatten(structure, leaves)


def untied(summary: str, difference: object) -> SharingError:
    """The error about trees that are shared in two ways, with what may have untied one of them."""
    cure = (
        "Plain functions of JAX and optax untie what is one object. Take pydag.jaxinterop's grad, "
        "jit and apply_updates, pydag.jaxinterop.optimizer(tx) in the place of tx alone, and "
        "pj.tree.map in the place of jax.tree.map; pydag.retie ties again.\n  If a part of the "
        "model was assigned or tied since, make a new state: state = opt.init(model)."
    )
    return SharingError(f"{summary}\n{difference}\n  {plain_trace() or cure}")


def other_gradient(error: ValueError) -> ValueError:
    """The error about a gradient that isn't structured as the model is."""
    if isinstance(error, SharingError):
        return untied("the gradient is shared in another way than the model", error)
    error.add_note(
        "The optimizer's state is for a model of another structure than this gradient. For a new "
        "model make a state: state = opt.init(model)."
    )
    return error


def no_gradient(trained: Trained, gradients: Sequence[Leaf]) -> ValueError:
    """The error about something that is trained and has no gradient."""
    pairs = zip(trained.paths("updates"), gradients, strict=True)
    path = next(path for path, gradient in pairs if gradient is None)
    return ValueError(
        f"the gradient is None at {path}, which the optimizer trains\n  Give both the same "
        "selection, grad(loss, wrt=where) and optimizer(tx, wrt=where); or let a gradient of zeros "
        "stand there."
    )


def other_model(known: _core.PyDagSpec, given: _core.PyDagSpec) -> ValueError:
    """The error about a model that isn't of the structure that the state is for."""
    shown = (
        "  (first: the model that it is for, second: the model now)\n"
        f"{_core.explain(known, given, roots='params')}"
    )
    if known.num_paths == given.num_paths and (known.is_prefix(given) or given.is_prefix(known)):
        return untied("the optimizer's state is for a model that is shared in another way", shown)
    return ValueError(
        "the optimizer's state is for a model of another structure\n"
        f"{shown}\n  The gradient comes first, the model last: update(gradient, state, model). For "
        "a new model make a state: state = opt.init(model)."
    )


@contextmanager
def about_models(trained: Trained, values: Sequence[Leaf]) -> Iterator[None]:
    """Adds to errors of optax in which form it sees a model, of which it trains some values."""
    note = (
        "optax sees a model as a nested dict of the arrays that are trained, such as {'layers': "
        "{0: {'weight': ...}}}. A mask, or labels, that are a tree like the model: "
        "pydag.jaxinterop.mask(tree); a selection: pydag.jaxinterop.mask(model, where)."
    )
    try:
        yield
    except Exception as error:
        others = [i for i, x in enumerate(values) if not is_like_array(x)]
        if others:
            i = others[0]
            raise TypeError(
                f"optax can't train {trained.paths('params')[i]}, of type "
                f"{jax.typeof(values[i])}\n  {type(error).__name__}: {error}\n  Leave it out by "
                "optimizer(tx, wrt=...), and apply its gradient in the training step; or take a "
                "transformation that its type can do, such as optax.sgd."
            ) from error
        if isinstance(error, AttributeError):
            raise TypeError(f"{error}\n  {note}") from error
        if isinstance(error, TypeError | ValueError | KeyError):
            error.add_note(note)
        raise
