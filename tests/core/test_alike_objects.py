# SPDX-License-Identifier: Apache-2.0
"""Two sequences compared place by place, by identity."""

from typing import Any

import pytest

import pydag._core as _core


class Equal:
    """Is equal to everything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]  # nothing asks for it


def test_objects_are_compared_by_identity() -> None:
    """`are_same_objects` asks no object whether it is equal to another."""
    one, other = Equal(), Equal()
    assert _core.are_same_objects([one, other], (one, other))
    assert not _core.are_same_objects([one], [other])
    assert not _core.are_same_objects([one], [one, one])


@pytest.mark.parametrize("other", [{}, iter(()), "text", None])
def test_what_is_no_list(other: Any) -> None:
    """Anything but lists and tuples is a `TypeError`."""
    for first, second in (([], other), (other, [])):
        with pytest.raises(TypeError, match="two lists or tuples"):
            _core.are_same_objects(first, second)
