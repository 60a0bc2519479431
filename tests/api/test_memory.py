# SPDX-License-Identifier: Apache-2.0
"""Which arrays of NumPy are one array: the same view of the same memory."""

import numpy as np
import pytest
from operations import run_apart

from pydag.sharing.memory import memory_of

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_two_views_of_one_memory_are_one_array() -> None:
    """Whatever object stands for it: address, dtype, shape and strides decide."""
    key = memory_of(X)
    assert key == memory_of(X[:]) == memory_of(X.T.T) == memory_of(X.view(np.ndarray))
    assert hash(key) == hash(memory_of(X[:]))
    assert key is not None
    assert key[:5] == ("cpu", X.ctypes.data, "float32", (3, 4), (16, 4))


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


def test_the_stride_of_an_axis_of_one_element_means_nothing() -> None:
    """NumPy and others write what they like there."""
    row = X[:1]
    strange = np.lib.stride_tricks.as_strided(row, (1, 4), (4, 4))
    assert row.strides != strange.strides
    assert memory_of(row) == memory_of(strange)


@pytest.mark.parametrize(
    "array",
    [np.zeros((0, 3)), np.ma.masked_array(X, X > 3), np.float32(1), [1.0], 3, None, np.ndarray],
    ids=["empty", "masked", "scalar", "list", "int", "None", "class"],
)
def test_what_has_no_memory_to_compare(array: object) -> None:
    """Arrays without elements have none, masked ones are more than their memory."""
    assert memory_of(array) is None


def test_the_class_does_not_count() -> None:
    """A view by another class, such as that of a mapped file, is the same array."""

    class Metres(np.ndarray):
        pass

    assert memory_of(X.view(Metres)) == memory_of(X)


def test_the_span_has_all_bytes_of_the_array() -> None:
    """From the lowest address to the one behind the highest, whichever way the strides lead."""
    start = X.ctypes.data
    for array, low, high in ((X, 0, 48), (X[::-1, ::2], 0, 44), (X[1, 1:3], 20, 28), (X.T, 0, 48)):
        key = memory_of(array)
        assert key is not None
        assert key.span() == (start + low, start + high)
    assert memory_of(X[::-1]) != memory_of(X)


def test_structured_and_swapped_dtypes_are_told_apart() -> None:
    """Where a name doesn't say all of a dtype, the dtype itself counts."""
    raw = np.zeros(4, np.uint64)
    views = [raw.view(dtype) for dtype in ("M8[s]", "M8[ms]", [("a", "i8")], [("b", "i8")], ">u8")]
    assert len({memory_of(view) for view in [raw, *views]}) == 6


def test_no_library_is_imported_for_it() -> None:
    """Where NumPy and PyTorch aren't loaded, nothing is an array of theirs."""
    source = """
import sys
from pydag.sharing.memory import memory_of
loaded = set(sys.modules)
assert memory_of([1.0]) is None
print(sorted(set(sys.modules) - loaded), "torch" in sys.modules)
"""
    assert run_apart(source).strip() == "[] False"


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
