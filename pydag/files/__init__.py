# SPDX-License-Identifier: Apache-2.0
"""DAGs in files: ordinary safetensors files, in which each array is written once.

Needs the extra `files`: `pip install "pydag-tree[files]"`.
"""

from .check import check as check
from .load import load as load
from .save import save as save

__all__ = ["check", "load", "save"]
