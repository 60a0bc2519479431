# SPDX-License-Identifier: Apache-2.0
"""What the core does for files: objects of JSON, and where the bytes of an array are."""

import json
from typing import Any

import numpy as np
import pytest

import pydag._core as _core


def test_an_object_has_its_pairs_in_order() -> None:
    """Python's reader of JSON gets from it the dict that it would have made itself."""
    text = '{"b": [1, {"a": null, "": {}}], "a": "b"}'
    found = json.loads(text, object_pairs_hook=_core.json_object)
    assert json.dumps(found) == text


def test_a_name_that_stands_twice_is_told() -> None:
    """ValueError, also for equal names that are two objects."""
    one, other = "".join(["na", "me"]), "".join(["na", "me"])
    with pytest.raises(ValueError, match="the name 'name' stands twice"):
        _core.json_object([(one, 1), ("x", 2), (other, 3)])


@pytest.mark.parametrize(
    "pairs", [None, (("a", 1),), [["a", 1]], [("a",)], [("a", 1, 2)], [(1, 2)], [None], {"a": 1}]
)
def test_other_pairs_are_refused(pairs: Any) -> None:
    """Whatever isn't a list of pairs of text and a value is a TypeError."""
    with pytest.raises(TypeError):
        _core.json_object(pairs)


@pytest.mark.parametrize("shape", [(), (4,), (2, 3)])
def test_the_address_of_an_array(shape: tuple[int, ...]) -> None:
    """It is the one that NumPy tells, also of an array that can't be written."""
    array = np.zeros(shape)
    array.flags.writeable = False
    assert _core.buffer_address(array) == array.ctypes.data


def test_the_address_of_what_has_none() -> None:
    """An object without a buffer, and an array with gaps, are errors."""
    with pytest.raises(TypeError):
        _core.buffer_address([1])
    with pytest.raises((ValueError, BufferError)):
        _core.buffer_address(np.zeros((4, 4))[:, ::2])
