# SPDX-License-Identifier: Apache-2.0
"""Where the user's own code is in the stack, for warnings."""

import sys

_OTHERS = ("pydag", "optax", "jax", "contextlib", "functools")


def level_of_caller() -> int:
    """How many frames above the caller of this the first one of the user's is."""
    level, frame = 0, sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    return level


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in _OTHERS
