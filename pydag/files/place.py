# SPDX-License-Identifier: Apache-2.0
"""Where an array has its numbers."""

from typing import NamedTuple

HOST = "cpu"  # the device of NumPy's arrays, as torch calls it


class Place(NamedTuple):
    """A place in memory. Two arrays with equal ones are one array."""

    device: str
    address: int  # of the first number
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in bytes; 0 along a dimension of one, where there is no step
    item: int  # bytes of a number

    @classmethod
    def of(
        cls,
        device: str,
        address: int,
        dtype: str,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        item: int,
    ) -> "Place":
        """The place of an array with these steps, in bytes."""
        steps = tuple(step if n > 1 else 0 for n, step in zip(shape, strides, strict=True))
        return cls(device, address, dtype, shape, steps, item)

    def span(self) -> tuple[int, int]:
        """The first byte, and the one after the last."""
        steps = [(n - 1) * step for n, step in zip(self.shape, self.strides, strict=True)]
        low = self.address + sum(step for step in steps if step < 0)
        return low, self.address + sum(step for step in steps if step > 0) + self.item
