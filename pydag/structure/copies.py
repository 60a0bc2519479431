# SPDX-License-Identifier: Apache-2.0
"""Who hands on what is known of the objects in a tree to those that are made of them."""

from collections.abc import Callable
from typing import Any

copy_listeners: list[Callable[[Any, Any], object]] = []
"""Functions that get a tree and what `dag_map` or `dag_copy` made of it.

They are called only where the tree has None in it, and an instance of a registered class.
"""
