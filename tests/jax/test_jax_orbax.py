# SPDX-License-Identifier: Apache-2.0
"""Orbax: a shared array is written once and comes back shared."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pydag

ocp = pytest.importorskip("orbax.checkpoint")

import jax
import jax.numpy as jnp

from pydag import jaxinterop
from pydag.jaxinterop import Dag

# Orbax warns whenever nobody says where arrays should go; what a restored one says of
# itself is tested here, not what is said meanwhile.
pytestmark = pytest.mark.filterwarnings("ignore:Sharding info not provided")


def tied(seed: int = 0) -> dict[str, Any]:
    w = jax.random.normal(jax.random.key(seed), (128, 128))
    return {"encoder": {"w": w, "b": jnp.zeros(2)}, "decoder": {"w": w, "b": jnp.ones(2)}}


def untied() -> Any:
    return jax.tree.map(lambda x: x + 0, tied())


def assert_restored(model: Any) -> None:
    expected = tied()
    assert model["encoder"]["w"] is model["decoder"]["w"]
    assert pydag.dag_structure(model) == pydag.dag_structure(expected)
    for leaf, wanted in zip(pydag.dag_leaves(model), pydag.dag_leaves(expected), strict=True):
        assert leaf.tolist() == wanted.tolist()


def size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


@pytest.fixture
def checkpointer() -> Iterator[Any]:
    with ocp.StandardCheckpointer() as checkpointer:
        yield checkpointer


def saved(checkpointer: Any, path: Path, tree: Any) -> Path:
    checkpointer.save(path, tree)
    checkpointer.wait_until_finished()
    return path


def test_a_dag_is_written_once(tmp_path: Path, checkpointer: Any) -> None:
    """The file is half as large as that of the plain model, and the tie comes back."""
    ours = saved(checkpointer, tmp_path / "ours", Dag(tied()))
    plain = saved(checkpointer, tmp_path / "plain", tied())
    assert size(ours) < 0.6 * size(plain)
    assert_restored(checkpointer.restore(ours, Dag(tied(1))).tree)


def test_names_in_the_file(tmp_path: Path, checkpointer: Any) -> None:
    """Without a target it is a dict of the distinct arrays, named by their paths."""
    path = saved(checkpointer, tmp_path / "dag", Dag(tied()))
    names = ["tree['decoder']['b']", "tree['decoder']['w']", "tree['encoder']['b']"]
    assert sorted(checkpointer.restore(path)) == names
    assert sorted(checkpointer.metadata(path).item_metadata.tree) == names


def test_a_derefed_model_keeps_its_nesting(tmp_path: Path, checkpointer: Any) -> None:
    """`deref` writes the array once too, at its anchor, and `reref` ties again."""
    path = saved(checkpointer, tmp_path / "derefed", pydag.deref(tied()))
    found = checkpointer.restore(path)
    assert found["encoder"]["w"] is None
    assert found["decoder"]["w"][0].shape == (128, 128)
    assert_restored(pydag.reref(checkpointer.restore(path, pydag.deref(tied(1)))))


@pytest.mark.parametrize("missing", [None, "encoder", "decoder"])
def test_a_checkpoint_of_somebody_else(
    tmp_path: Path, checkpointer: Any, missing: str | None
) -> None:
    """One that has both copies of a tied weight, or one of them, restores to the tied model."""
    tree = untied()
    if missing:
        del tree[missing]["w"]
    path = saved(checkpointer, tmp_path / "plain", tree)
    assert_restored(jaxinterop.from_checkpoint(tied(1), checkpointer.restore(path)))
