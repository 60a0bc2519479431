# SPDX-License-Identifier: Apache-2.0
"""Classes of ours whose objects name their children without JAX's keys, which are slow to make."""

from collections.abc import Callable, Sequence
from typing import Any

from pydag.registry.weak_table import WeakTable

Names = Callable[[Any], Sequence[Any]]
"""Gives attributes (text) or indices (numbers) of an object that was just opened."""

child_names: WeakTable[Names] = WeakTable()
"""The names of the children, by class; those that the class's keys have, too."""
