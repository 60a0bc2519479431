# SPDX-License-Identifier: Apache-2.0
"""What a type checker knows of an optimizer for DAGs."""

from typing import Any, Protocol, TypeVar

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
