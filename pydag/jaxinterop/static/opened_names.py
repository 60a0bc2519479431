# SPDX-License-Identifier: Apache-2.0
"""Classes of ours whose objects name their children without JAX's keys, which are slow to make."""

from collections.abc import Callable, Sequence
from typing import Any

from pydag.registry.weak_table import WeakTable

OpenWithNames = Callable[[Any], tuple[Sequence[Any], Any, Sequence[Any]]]
"""Gives the children of an object, its aux_data, and attributes (text) or indices (numbers)."""

opens_with_names: WeakTable[OpenWithNames] = WeakTable()
"""How objects of a class are opened; the names are those that the class's keys have, too."""
