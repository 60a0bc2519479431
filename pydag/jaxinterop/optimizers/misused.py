# SPDX-License-Identifier: Apache-2.0
"""Errors for what an optimizer is given by mistake."""

from typing import Any

from pydag.structure.text import short_repr

from .state import OptimizerState


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


def check_order(state: Any, params: Any) -> None:
    """Checks that `update` got its state and its model in their places.

    Raises:
        TypeError: They are swapped, or the state is all that `update` returned.
    """
    if type(params) is OptimizerState and type(state) is not OptimizerState:
        raise TypeError("update takes the state before the model: update(updates, state, params)")
    if type(state) is tuple and any(type(part) is OptimizerState for part in state):
        raise TypeError(
            "update got a tuple as the state, with a state in it\n"
            "  `update` returns two things: updates, state = opt.update(gradient, state, model)"
        )
