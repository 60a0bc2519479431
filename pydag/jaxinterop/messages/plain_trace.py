# SPDX-License-Identifier: Apache-2.0
"""Which plain function of JAX's traces the code that runs: it unties what is one object."""

import os
import sys
from pathlib import Path

import jax

_PACKAGE = f"{Path(__file__).parents[2]}{os.sep}"
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
    """What of JAX's traces the user's code, and the wrapper that keeps ties; None if ours does.

    The innermost code of JAX's or ours that called the user's code tells.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    found = None
    is_inside = False
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_PACKAGE):
            break  # JAX's function was handed to ours as it is, or it is ours that calls
        if file.startswith(_JAX):
            is_inside = True
            found = _WRAPPERS.get(frame.f_code.co_name, found)
        elif is_inside and found is not None:
            break
        frame = frame.f_back  # type: ignore[assignment]  # None ends the loop
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
