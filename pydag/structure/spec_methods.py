# SPDX-License-Identifier: Apache-2.0
"""Methods of `PyDagSpec` that are written in Python. The core looks them up when it is imported.

The modules that do the work don't exist then, so a method imports them when it is called.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydag._core import PyDagSpec


def to_json(spec: "PyDagSpec") -> str:
    """`PyDagSpec.to_json`."""
    from .json import to_json

    return to_json(spec)


def from_json(text: str, namespace: str | None) -> "PyDagSpec":
    """`PyDagSpec.from_json`."""
    from .json import from_json

    return from_json(text, namespace)
