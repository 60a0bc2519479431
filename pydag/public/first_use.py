# SPDX-License-Identifier: Apache-2.0
"""Names of a package that are imported at their first use.

A program doesn't pay for parts that it doesn't use: files, views, rarer operations, wrappers.
"""

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from .hints import missing


def at_first_use(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Makes `__getattr__` and `__dir__` for a package.

    Args:
        package: Its name.
        modules: Maps each such name to the module that defines it; a module's name to itself.
    """

    def find(name: str) -> Any:
        if name not in modules:
            raise missing(package, name)
        module = importlib.import_module(f"{package}.{modules[name]}")
        # A module may have imported another library's module of the same name.
        value = module if name == modules[name] else getattr(module, name, module)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return find, names
