# SPDX-License-Identifier: Apache-2.0
"""Which arrays of NumPy are one array: the same view of the same memory."""

import numpy as np
import pytest
from operations import run_apart

from pydag.sharing.memory import memory_of

X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize(
    "other",
    [
        X.copy(),
        X.T,
        X.reshape(4, 3),
        X[:, :3],
        X[1:],
        X[::-1],
        X.view(np.int32),
        X[0],
        X.view(">f4"),
    ],
    ids=["copy", "transposed", "shape", "narrower", "later", "backwards", "dtype", "row", "bytes"],
)
def test_another_view_is_another_array(other: np.ndarray) -> None:
    """Even if it begins at the same address, or has the same bytes."""
    assert memory_of(other) != memory_of(X)
    assert memory_of(other) == memory_of(other[:])


@pytest.mark.parametrize(
    "array",
    [np.zeros((0, 3)), np.ma.masked_array(X, X > 3), np.float32(1), [1.0], 3, None, np.ndarray],
    ids=["empty", "masked", "scalar", "list", "int", "None", "class"],
)
def test_what_has_no_memory_to_compare(array: object) -> None:
    """Arrays without elements have none, masked ones are more than their memory."""
    assert memory_of(array) is None


def test_structured_and_swapped_dtypes_are_told_apart() -> None:
    """Where a name doesn't say all of a dtype, the dtype itself counts."""
    raw = np.zeros(4, np.uint64)
    views = [raw.view(dtype) for dtype in ("M8[s]", "M8[ms]", [("a", "i8")], [("b", "i8")], ">u8")]
    assert len({memory_of(view) for view in [raw, *views]}) == 6


def test_without_pytorch_its_package_says_what_to_install() -> None:
    """An ImportError with the command."""
    source = """
import sys
sys.modules["torch"] = None
import pydag.integrations
try:
    pydag.integrations.torch
except ImportError as error:
    print(str(error)[:61])
"""
    assert run_apart(source).strip() == (
        "pydag.integrations.torch needs PyTorch: pip install torch (im"
    )
