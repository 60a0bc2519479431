# SPDX-License-Identifier: Apache-2.0
"""What is wrong with what an optimizer is given."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import jax

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.errors import SharingError
from pydag.jaxinterop.content.leaves import is_like_array
from pydag.jaxinterop.notices.source import plain_trace
from pydag.typing import Leaf

from .nested import Trained


def untied(summary: str, difference: object) -> SharingError:
    """The error about trees that are shared in two ways, with what may have untied one of them."""
    cure = (
        "Plain functions of JAX and optax untie what is one object. Take pydag.jaxinterop's grad, "
        "jit and apply_updates, pydag.jaxinterop.optimizer(tx) in the place of tx alone, and "
        "pj.tree.map in the place of jax.tree.map; pydag.retie ties again."
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


def other_model(known: PyDagSpec, given: PyDagSpec) -> ValueError:
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
