# SPDX-License-Identifier: Apache-2.0
"""`flax.serialization` of Dags and optimizer states: flax gets to know them once it is loaded."""

import sys
from collections.abc import Callable
from typing import Any

# What flax hasn't been told of yet: a class, what makes a state of it, and what restores one.
_waiting: list[tuple[type, Callable[[Any], Any], Callable[[Any, Any], Any]]] = []


def serialized_by_flax(
    cls: type, to_state: Callable[[Any], Any], from_state: Callable[[Any, Any], Any]
) -> None:
    """Says what `to_state_dict` and `from_state_dict` do with instances of a class.

    Args:
        to_state: Gives containers of arrays for an instance.
        from_state: Gets an instance and such containers, and gives another instance.
    """
    _waiting.append((cls, to_state, from_state))
    tell_flax()


def tell_flax() -> None:
    """Tells flax what it hasn't been told, if it is loaded. Called where Dags are made."""
    if not _waiting:
        return
    register = getattr(sys.modules.get("flax.serialization"), "register_serialization_state", None)
    while register is not None and _waiting:
        register(*_waiting.pop(), override=True)


def to_state(x: Any) -> Any:
    """What flax makes of it; called by flax alone, which is loaded then."""
    return sys.modules["flax.serialization"].to_state_dict(x)


def from_state(like: Any, state: Any, name: str) -> Any:
    """What flax restores; called by flax alone, which is loaded then.

    Args:
        name: Of the part, for errors.
    """
    return sys.modules["flax.serialization"].from_state_dict(like, state, name=name)
