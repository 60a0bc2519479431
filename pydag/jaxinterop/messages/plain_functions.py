# SPDX-License-Identifier: Apache-2.0
"""A note to what optax raises where it was given a model of ours: which function takes models."""

import os
from pathlib import Path
from types import FrameType
from typing import Any

import jax

from .at_call import is_of_pydag, user_frame

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


_JAX = f"{Path(jax.__file__).parent}{os.sep}"

_WRAPPERS = {  # by the names of the functions that JAX runs: what the user calls, and what of ours
    "cache_miss": ("jax.jit", "jit"),
    "scan": ("jax.lax.scan", "scan"),
    "while_loop": ("jax.lax.while_loop", "while_loop"),
    "fori_loop": ("jax.lax.fori_loop", "fori_loop"),
    "cond": ("jax.lax.cond", "cond"),
    "switch": ("jax.lax.switch", "switch"),
    "map": ("jax.lax.map", "map"),
    "associative_scan": ("jax.lax.associative_scan", "associative_scan"),
    "vmap_f": ("jax.vmap", "vmap"),
    "fun_remat": ("jax.checkpoint", "checkpoint"),
    "grad_f": ("jax.grad", "grad"),
    "grad_f_aux": ("jax.grad", "grad"),
    "value_and_grad_f": ("jax.value_and_grad", "value_and_grad"),
    "make_jaxpr_f": ("jax.make_jaxpr", "make_jaxpr"),
    "eval_shape": ("jax.eval_shape", "eval_shape"),
    "shard_map": ("jax.shard_map", "shard_map"),
}


def plain_trace() -> tuple[str, str] | None:
    """The function of JAX's that traces the user's code, and the wrapper that would keep ties.

    None if a wrapper traces it. The innermost frame of JAX's or of ours that called the user's code
    decides.
    """
    frame: FrameType | None = user_frame()[0]
    found = None
    is_inside = False
    while frame is not None:
        if is_of_pydag(frame):
            break  # JAX's function was handed to ours as it is, or it is ours that calls
        if frame.f_code.co_filename.startswith(_JAX):
            is_inside = True
            found = _WRAPPERS.get(frame.f_code.co_name, found)
        elif is_inside and found is not None:
            break
        frame = frame.f_back
    return found


def plain_trace_advice() -> str:
    """What to do where a plain trace untied an argument; "" where there is none."""
    found = plain_trace()
    if found is None:
        return ""
    plain, ours = found
    return (
        f"It is called in a function that plain {plain} traces, which unties what is one object "
        f"(a plain wrapper around it, such as equinox's, does the same). "
        f"pydag.jaxinterop.{ours} keeps ties."
    )
