# SPDX-License-Identifier: Apache-2.0
"""Modules that need another library: `attrs`, `jax`, `numpy`, `torch`; imported on first use."""

import importlib
from types import ModuleType

SUBMODULES = frozenset({"attrs", "jax", "numpy", "torch"})


def __dir__() -> list[str]:
    return ["SUBMODULES", *sorted(SUBMODULES)]


def __getattr__(name: str) -> ModuleType:
    if name not in SUBMODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")
