# SPDX-License-Identifier: Apache-2.0
"""Pairs of arrays that were already reported."""


class Pairs:
    """Unordered pairs of names.

    Attributes:
        copies: The arrays that are stored again though metadata or the configuration tie them to
            another one, which they equal: that other one by name. It may be a copy itself.
    """

    def __init__(self) -> None:
        self._known: set[frozenset[str]] = set()
        self.copies: dict[str, str] = {}

    def add(self, one: str, other: str) -> None:
        """Adds a pair."""
        self._known.add(frozenset((one, other)))

    def add_copy(self, one: str, copy: str) -> None:
        """Adds a pair of arrays that are tied and equal."""
        self.add(one, copy)
        self.copies.setdefault(copy, one)

    def __contains__(self, pair: object) -> bool:
        return isinstance(pair, tuple) and frozenset(pair) in self._known

    def left(self, names: list[str]) -> list[str]:
        """The names of a group, without those that were reported in a pair with another name."""
        kept: list[str] = []
        for name in names:
            if not any((name, other) in self for other in kept):
                kept.append(name)
        return kept
