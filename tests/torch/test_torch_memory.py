# SPDX-License-Identifier: Apache-2.0
"""Which tensors are one array: the same view of the same memory."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn

from pydag.sharing.memory import memory_of


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "int8", "bool", "complex64", "float16", "uint16"]
)
def test_an_array_of_numpy_and_a_tensor_may_be_one(dtype: str) -> None:
    """`from_numpy` and `numpy()` share memory, and dtypes have one name in both."""
    array = np.zeros((2, 3), dtype)
    assert memory_of(torch.from_numpy(array)) == memory_of(array)
    assert memory_of(torch.from_numpy(array).T) == memory_of(array.T)


X = torch.zeros(3, 4)
Z = torch.zeros(3, dtype=torch.complex64)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (X, X.T),
        (X, X.clone()),
        (X, X.view(4, 3)),
        (X, X[:, :3]),
        (X, X.view(torch.int32)),
        (X[0], X[0].expand(3, 4)),
        (Z, Z.conj()),
        (Z.imag, Z.conj().imag),
    ],
)
def test_another_view_is_another_array(one: object, other: object) -> None:
    """A lazy conjugate, too, which is the same memory read with another sign."""
    assert memory_of(one) != memory_of(other)
    assert memory_of(one) is not None


def test_what_has_no_memory_to_compare() -> None:
    """No two tensors on `meta` are one by their memory, and none that isn't strided."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns that some of these are experimental
        sparse = [X.to_sparse(), X.to_sparse_csr(), X.to_mkldnn()]
        quantized = torch.quantize_per_tensor(X, 0.1, 0, torch.qint8)
        nested = [
            torch.nested.nested_tensor([X[0], X[1]], layout=a)
            for a in (torch.strided, torch.jagged)
        ]
    freed = X.clone()
    freed.untyped_storage().resize_(0)
    others = [torch.zeros(0, 3), X.to("meta"), nn.LazyLinear(3).weight, quantized, freed]
    assert [memory_of(x) for x in sparse + nested + others] == [None] * 10


def test_fake_tensors_have_none() -> None:
    """They say that they are on the CPU, and asking for their address warns."""
    mode = pytest.importorskip("torch._subclasses.fake_tensor").FakeTensorMode()
    with mode:
        fake = torch.zeros(3, 4)
    assert fake.device.type == "cpu"
    assert memory_of(fake) is None
