# SPDX-License-Identifier: Apache-2.0
"""Further arguments of `update`, such as `value_fn`, in the form in which optax sees models."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax

import pydag._core as _core
from pydag.errors import SharingError
from pydag.jaxinterop.content.leaves import is_number, is_traced
from pydag.typing import Leaf

from .nested import Trained


class View:
    """Turns further arguments of `update` into the form that optax sees.

    Args:
        leaves: All leaves of the model.
    """

    def __init__(self, trained: Trained, leaves: Sequence[Leaf]) -> None:
        self._trained, self._leaves = trained, leaves

    def seen(self, value: Any) -> Any:
        """A tree like the model as a nested dict, a function of models as one of such dicts."""
        if value is None or is_traced(value) or is_number(value):
            return value
        try:
            found = self._trained.pick(self._trained.match(value, "argument"))
        except SharingError:
            raise
        except ValueError:
            if callable(value):
                return self._function(value)
            return tuple(map(self.seen, value)) if type(value) is tuple else value
        return self._trained.nested(found)

    def _function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function, updated=())  # optax reads the names of its parameters
        def of_dicts(*args: Any, **kwargs: Any) -> Any:
            named = {name: self._model(value) for name, value in kwargs.items()}
            return self.seen(function(*map(self._model, args), **named))

        return of_dicts

    def _model(self, value: Any) -> Any:
        """The model that a nested dict stands for; any other value itself."""
        trained = self._trained
        shown: Any = jax.tree.structure(trained.nested(trained.positions))
        if jax.tree.structure(value) != shown:
            return value
        leaves = list(self._leaves)
        for position, leaf in zip(trained.positions, trained.values(value), strict=True):
            leaves[position] = leaf
        return _core.unflatten(trained.spec, leaves)
