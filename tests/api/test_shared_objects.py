# SPDX-License-Identifier: Apache-2.0
"""What `shared_objects` and `PyDagSpec.shared` list."""

import copy
import dataclasses
import pickle
import time

import optree
import pytest
from operations import doubled

import pydag
from pydag.structure.spec_methods import SharedObject


@pytest.mark.measures
def test_shared_objects_of_a_ladder() -> None:
    """What a ladder shares is found in time that grows with its height, not with its square."""
    tree = doubled(20_000)
    began = time.thread_time()
    found = pydag.shared_objects(tree)
    assert len(found) == len(pydag.dag_structure(tree).shared) == 19_999
    assert found[-1].paths == ((0,) * 19_999, (0,) * 19_998 + (1,))
    assert time.thread_time() - began < 3


def test_a_shared_object_as_a_value() -> None:
    """A shared object is equal to one with the same paths, and can be copied and pickled."""
    [found] = pydag.dag_structure({"a": (w := [1]), "b": w}).shared
    made = SharedObject(0, optree.PyTreeKind.LIST, list, (("a",), ("b",)))
    assert found == made
    assert pickle.loads(pickle.dumps(found)) == copy.copy(found) == made
    assert repr(found) == repr(made)
    assert dataclasses.replace(found, index=3).paths == made.paths
    with pytest.raises(AttributeError, match="no attribute 'path'"):
        found.path  # type: ignore[attr-defined]  # noqa: B018  # what is tested
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.paths = ()  # type: ignore[misc]  # what is tested
