# SPDX-License-Identifier: Apache-2.0
"""The type of an optimizer for DAGs, and errors for what it is given by mistake."""

from typing import Any, Protocol, TypeVar

from pydag.jaxinterop.static.untraced import Untraced
from pydag.public.swapped import MISSING, refuse_class
from pydag.structure.text import short_repr
from pydag.typing import Dag

from .state import OptimizerState

U = TypeVar("U")


class Optimizer(Protocol):
    """What `pydag.jaxinterop.optimizer` returns: optax's functions, for DAGs."""

    @property
    def init(self) -> "Init":
        """Makes the state for a model."""

    @property
    def update(self) -> "Update":
        """Makes updates of a gradient."""


class Init(Protocol):
    """`init` of an optimizer."""

    def __call__(self, params: Dag) -> OptimizerState:
        """The state for a model."""


class Update(Protocol):
    """`update` of an optimizer."""

    def __call__(
        self, updates: U, state: OptimizerState, params: Dag | None = None, **extra: Any
    ) -> tuple[U, OptimizerState]:
        """The updates, in the form of the gradient, and the next state."""


def check_transformation(tx: Any) -> None:
    """Checks what `optimizer` is made of.

    Raises:
        TypeError: It is no transformation of optax's.
    """
    if not callable(getattr(tx, "init", None)) or not callable(getattr(tx, "update", None)):
        cure = "Call it: optimizer(optax.adam(1e-3))." if callable(tx) else ""
        raise TypeError(
            "optimizer takes a transformation of optax's, such as optax.adam(1e-3), not "
            f"{short_repr(tx)}" + (f"\n  {cure}" if cure else "")
        )


def check_model(params: Any) -> None:
    """Checks what `init` is given.

    Raises:
        TypeError: It is a text, such as a selection of leaves, or a class.
    """
    refuse_class(params, "init takes a model", "Make the model first: init({}(...)).")
    if isinstance(params, str):
        raise TypeError(
            f"init takes the model, got {short_repr(params)}\n"
            "  The selection of leaves is an option of the optimizer: optimizer(tx, wrt=...)."
        )


def check_order(updates: Any, state: Any, params: Any) -> None:
    """Checks that `update` got the gradient, its state and its model in their places.

    Raises:
        TypeError: The gradient or the state is missing, two arguments are swapped, or the state is
            all that `update` returned.
    """
    if type(updates) is OptimizerState:
        raise TypeError(
            "update takes the gradient before the state: update(updates, state, params)"
        )
    if updates is MISSING or state is MISSING:
        what = "a gradient and the state" if updates is MISSING else "the state, which init returns"
        raise TypeError(
            f"update needs {what}\n  updates, state = opt.update(gradient, state, model)"
        )
    if type(params) is OptimizerState and type(state) is not OptimizerState:
        raise TypeError("update takes the state before the model: update(updates, state, params)")
    if type(state) is tuple and any(type(part) is OptimizerState for part in state):
        raise TypeError(
            "update got a tuple as the state, with a state in it\n"
            "  `update` returns two things: updates, state = opt.update(gradient, state, model)"
        )


def note_other_state(error: Exception, state: Any, lacking: str | None) -> None:
    """Adds the cure where the state isn't this optimizer's.

    Args:
        lacking: A leaf that is trained, and of which the state has nothing.
    """
    if type(state) is not OptimizerState:
        error.add_note("The state must be what `init` of this very optimizer gave.")
    elif lacking is not None:
        error.add_note(
            f"The state has nothing for {lacking}, which is trained now: it was made by an "
            "optimizer with another wrt=, or for a model that had None there.\n"
            "  Make a state for what is trained now: state = opt.init(model)."
        )


def note_swapped(error: ValueError, state: Untraced, updates: Untraced) -> None:
    """Adds the cure where the gradient has the structure of the model that the state is for."""
    if state.spec == updates.spec and state.positions == updates.positions:
        error.add_note("The gradient comes first, the model last: update(gradient, state, model).")
