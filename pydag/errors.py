# SPDX-License-Identifier: Apache-2.0
"""The exceptions of the library; both are `ValueError`s."""

from ._core import CycleError as CycleError
from ._core import SharingError as SharingError
