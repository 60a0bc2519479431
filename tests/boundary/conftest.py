# SPDX-License-Identifier: Apache-2.0
"""Lets `pydag.jaxinterop` be `pydag._boundary` in this process.

Until the new boundary takes the old one's name, its tests import what they will import then, and so
they can't run in one process with the tests of the old one. `make test-boundary` runs them.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType

import pydag

OLD, NEW = "pydag.jaxinterop", "pydag._boundary"


class _NewForOld(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the new boundary's modules under the old one's names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        is_old = fullname == OLD or fullname.startswith(f"{OLD}.")
        return importlib.util.spec_from_loader(fullname, self) if is_old else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return importlib.import_module(spec.name.replace(OLD, NEW, 1))

    def exec_module(self, module: ModuleType) -> None:
        """The module ran when it was imported under its own name."""


if OLD in sys.modules:
    raise ImportError("tests of the new boundary run alone: make test-boundary")
sys.meta_path.insert(0, _NewForOld())
sys.modules[OLD] = importlib.import_module(NEW)
vars(pydag)["jaxinterop"] = sys.modules[OLD]
