# SPDX-License-Identifier: Apache-2.0
"""The exceptions of the library, both of which are `ValueError`s, and the warning of all rooms."""

from ._core import CycleError as CycleError
from ._core import SharingError as SharingError


class LostTieWarning(UserWarning):
    """One object became two: in the result of a function, or in a PyTorch module."""
