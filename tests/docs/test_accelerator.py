# SPDX-License-Identifier: Apache-2.0
"""The benchmark of training on an accelerator, in small and on whatever device is there."""

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("jax")
pytest.importorskip("optax")

import accelerator
import accelerator_ways as ways
from accelerator_report import agreement

pytestmark = pytest.mark.once
WIDTH, ITEM = 64, 4


@pytest.fixture(scope="module", autouse=True)
def _one_block() -> Iterator[None]:
    """Less to compile, in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ways, "BLOCKS", 1)
        yield


@pytest.fixture(scope="module")
def figures(_one_block: None) -> dict[str, dict[str, Any]]:
    """The figures of all ways, in one process."""
    pytest.importorskip("flax.nnx")
    return {way: ways.measured(way, WIDTH, "float32", 3) for way in ways.WAYS}


@pytest.mark.filterwarnings("ignore:::flax")
def test_ways_train_the_same_model(figures: dict[str, dict[str, Any]]) -> None:
    """Tied ways have one table, and the same losses; without the tie it is another model."""
    assert tuple(figures) == accelerator.WAYS
    untied, *tied = figures.values()
    [distinct] = {way["parameters"] for way in tied}
    assert untied["parameters"] == distinct + ways.WORDS * WIDTH * WIDTH
    for way in figures.values():
        assert way["parameter_bytes"] == ITEM * way["parameters"]
        assert way["first_call_s"] > way["step_s"] > way["host_s"] > 0
        assert way["losses"][0] == untied["losses"][0]
        assert float.fromhex(way["losses"][-1]) == way["loss"] < float.fromhex(way["losses"][0])
    assert all(way["losses"][-1] != untied["losses"][-1] for way in tied)
    assert agreement(tied) is True


@pytest.mark.parametrize("way", ways.WAYS)
def test_a_step_takes_the_memory_of_the_last_one(way: str) -> None:
    """Every way donates: after a step the arrays of before it are deleted, all of them."""
    if way == "NNX":
        pytest.importorskip("flax.nnx")
    run = ways.WAYS[way](ways.arrays(WIDTH, "float32"))
    before = run.parameters()
    run.step(ways.batch(WIDTH))
    assert all(x.is_deleted() for x in before)
    assert not any(x.is_deleted() for x in run.parameters())
