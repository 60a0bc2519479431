# SPDX-License-Identifier: Apache-2.0
"""What methods of `PyDagSpec` do in Python. The core looks these functions up when it is made.

It is made before the modules that do the work: they are imported when a method is called.
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
