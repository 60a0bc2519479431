# SPDX-License-Identifier: Apache-2.0
"""A note to what optax raises where it was given a model of ours: which function takes models."""

from types import FrameType
from typing import Any

_ADVICE = {
    "apply_updates": "An update is None where nothing is trained, such as the numbers of modules, "
    "and optax.apply_updates adds it all the same. pydag.jaxinterop.apply_updates keeps such "
    "leaves, and ties.",
    "update": "A gradient is None where nothing is differentiated, such as the numbers of modules, "
    "and an optimizer of optax's alone takes each leaf of the model for a parameter, tied ones "
    "twice. pydag.jaxinterop.optimizer(tx) takes models.",
}
_THEIRS = ("optax", "jax", "jaxlib")
_NAMES = {"apply_updates": "apply_updates", "update": "update", "update_fn": "update"}


def advise_plain(error: Exception) -> None:
    """Adds the note, if the user's own code called optax, which raised the error."""
    notes = getattr(error, "__notes__", ())
    found, before = None, ""
    trace = error.__traceback__
    while trace is not None:
        name = _root(trace.tb_frame)
        if name == "optax" and before not in _THEIRS:
            is_ours = before == "pydag"
            found = None if is_ours else _NAMES.get(trace.tb_frame.f_code.co_name)
        elif name not in _THEIRS:
            found = None  # what optax called raised it: not a matter of the model's form
        before = name
        trace = trace.tb_next
    if found is not None and _ADVICE[found] not in notes:
        error.add_note(_ADVICE[found])


def _root(frame: FrameType) -> str:
    """The package of the code."""
    module: Any = frame.f_globals.get("__name__")
    return module.partition(".")[0] if isinstance(module, str) else ""
