# SPDX-License-Identifier: Apache-2.0
"""A value that goes along with what JAX compares, and takes no part in the comparison."""

from typing import Any


class Carried:
    """Carries a value along with a key without being part of it: all instances are equal."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Carried)

    def __hash__(self) -> int:
        return 0
