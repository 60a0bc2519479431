# SPDX-License-Identifier: Apache-2.0
"""Which function of plain JAX traces the user's code: it unties the arguments that it is given."""

import sys
from types import FrameType

from .source import JAX_FOLDER, PACKAGE_FOLDER

_WRAPPERS = {  # by the names of JAX's functions that call the user's
    "cache_miss": "jax.jit",
    "vmap_f": "jax.vmap",
    "fun_remat": "jax.checkpoint",
    "grad_f": "jax.grad",
    "grad_f_aux": "jax.grad",
    "value_and_grad_f": "jax.value_and_grad",
    "make_jaxpr_f": "jax.make_jaxpr",
    "eval_shape": "jax.eval_shape",
    "shard_map": "jax.shard_map",
} | {
    name: f"jax.lax.{name}"
    for name in ("scan", "while_loop", "fori_loop", "cond", "switch", "map", "associative_scan")
}


def plain_trace() -> str:
    """Which wrapper of pydag to use instead; "" if a wrapper traces the code, or nothing does.

    The innermost frame of JAX's or of pydag's that called the user's code decides.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE_FOLDER):
        frame = frame.f_back
    found, is_inside = "", False
    while frame is not None and not frame.f_code.co_filename.startswith(PACKAGE_FOLDER):
        if frame.f_code.co_filename.startswith(JAX_FOLDER):
            is_inside = True
            found = _WRAPPERS.get(frame.f_code.co_name, found)
        elif is_inside and found:
            return (
                f"It is called in a function that plain {found} traces, which unties what is one "
                "object (a plain wrapper around it, such as equinox's, does the same). "
                f"pydag.jaxinterop.{found.rpartition('.')[2]} keeps ties."
            )
        frame = frame.f_back
    return ""
