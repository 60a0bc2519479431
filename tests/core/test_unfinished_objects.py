# SPDX-License-Identifier: Apache-2.0
"""User code that looks for the containers that the core is just filling."""

import ctypes
import gc
import sys
from typing import Any

import pytest

import pydag


def test_paths_of_a_map_are_out_of_reach() -> None:
    """A mapped function that finds the core's own containers can't shorten them."""

    def vandal(path: Any, x: Any) -> Any:
        for referrer in gc.get_referrers(path):
            if type(referrer) is list:
                referrer.clear()
        return x

    tree = {f"k{i}": i for i in range(10)}
    assert pydag.dag_map_with_path(vandal, tree) == tree
    assert pydag.dag_map_with_accessor(vandal, tree) == tree


def test_an_attribute_whose_key_is_no_text_is_refused() -> None:
    """A key of the instance dict that collides with a field's name is none of the fields."""

    class Key:
        def __hash__(self) -> int:
            return hash("middle")

        def __eq__(self, other: object) -> bool:
            return False

    class WatchedConstants:
        def __init__(self) -> None:
            attributes: dict[Any, Any] = self.__dict__
            attributes[Key()] = 0
            self.data, self.first, self.last, self.middle = 1, 2, 3, 4

    pydag.register_fields(WatchedConstants, ("data",), ("first", "middle", "last"))
    with pytest.raises(ValueError, match="none of the fields of its class"):
        pydag.dag_flatten(WatchedConstants())


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="3.12 collects garbage between bytecodes")
def test_no_half_filled_state_is_visible() -> None:
    """A finalizer that the collector runs within `__getstate__` finds every tuple whole."""
    looked: list[Any] = []

    class Garbage:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            looked.extend(t[-1] for t in gc.get_objects() if type(t) is tuple and len(t) > 1900)

    spec = pydag.dag_structure([{f"b{i}": 1, f"a{i}": 2} for i in range(2000)])
    threshold = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        for _ in range(20):
            Garbage()
            spec.__getstate__()
    finally:
        gc.set_threshold(*threshold)
    assert pydag.dag_unflatten(spec, [0] * 4000)[7] == {"b7": 0, "a7": 0}


def test_list_that_is_not_filled_yet() -> None:
    """A list that somebody is still filling is an error, not a crash, wherever it stands."""
    new_list = ctypes.pythonapi.PyList_New
    new_list.restype, new_list.argtypes = ctypes.py_object, [ctypes.c_ssize_t]
    filled: list[Any] = [1, 2, [3, 4]]
    for _ in range(3):
        pydag.dag_flatten({"a": filled, "b": 5})
    unfilled = new_list(3)
    for tree in (unfilled, {"a": unfilled, "b": 5}, [{"c": unfilled}]):
        for operation in (pydag.dag_flatten, pydag.dag_copy, pydag.shared_objects):
            with pytest.raises(ValueError, match="filled"):
                operation(tree)
    with pytest.raises(ValueError, match="filled"):
        pydag.dag_map(lambda x, y: x, [filled], [unfilled])
