# SPDX-License-Identifier: Apache-2.0
"""Accessors, the steps that they are made of: optree's classes."""

from optree.accessors import *  # noqa: F403  # all of its `__all__`
from optree.accessors import __all__ as __all__
