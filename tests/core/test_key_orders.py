# SPDX-License-Identifier: Apache-2.0
"""Keys that the core sorts by itself come in the order in which `sorted` puts them."""

import random
from typing import Any

import pytest

import pydag

RUNS: dict[str, list[Any]] = {
    "texts with a common beginning": [f"layer {i}" for i in range(12)],
    "texts longer than a word": [f"{'x' * 9}{i}{'y' * i}" for i in range(14)],
    "texts that begin others": ["", "a", "ab", "abc", "a" * 8, "a" * 9, "a" * 16],
    "texts with zeros": ["a", "a\0", "a\0\0", "\0", "", "a\0b"],
    "texts of the upper half of a byte": ["\xff", "\x7f", "\x80", "z", "\xe4", "\xe4a"],
    "texts of more than a byte": ["\u0100", "\xff", "z", "\U0001f600", "\uffff", "\u0100a", ""],
    "many texts": [str(i) for i in range(300)],
    "ints": [5, -1, 0, 3, -7, 255, 256, 2**31, -(2**31)],
    "ints of 64 bits": [2**63 - 1, -(2**63), 0, 2**62, -1],
    "ints of more": [2**63, -(2**63) - 1, 0, 2**200, -(2**200), 1],
    "many ints": list(range(-200, 200)),
    "tuples": [(i % 3, f"k{i}") for i in range(9)],
    "tuples that begin others": [(), (1,), (1, 2), (1, 2, 3), (0, 5)],
    "tuples of equal first items": [("w", i) for i in range(20)],
    "tuples whose first items are equal objects": [(str(10**9), i) for i in range(5)],
    "tuples of large ints": [(2**70, i) for i in range(4)] + [(2**71, 0), (-(2**70), 3)],
    "floats": [1.5, -2.0, 0.0, 3],
    "bytes": [b"b", b"a", b""],
}


@pytest.mark.parametrize("name", RUNS)
def test_order_is_that_of_sorted(name: str) -> None:
    """Whatever the order of insertion: the leaves come in the order of `sorted`."""
    shuffled = list(RUNS[name])
    for seed in range(5):
        random.Random(seed).shuffle(shuffled)
        leaves, spec = pydag.dag_flatten({key: i for i, key in enumerate(shuffled)})
        assert [shuffled[i] for i in leaves] == sorted(shuffled)
        assert list(spec.unflatten(leaves)) == shuffled


def test_keys_with_code_of_their_own() -> None:
    """A subclass of int or str in a key decides itself how it compares."""

    class Reversed(int):
        def __lt__(self, other: Any) -> bool:
            return int(self) > int(other)

        __hash__ = int.__hash__

    for make in (lambda key: key, lambda key: (0, key)):
        tree = {make(Reversed(i)): i for i in (2, 0, 1)}
        assert pydag.dag_leaves(tree) == [2, 1, 0]
