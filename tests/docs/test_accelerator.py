# SPDX-License-Identifier: Apache-2.0
"""The benchmark of training on an accelerator, in small and on whatever device is there."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")
pytest.importorskip("optax")

import accelerator
import accelerator_ways as ways
import jax
from accelerator_report import FILE, agreement, rows_of, section

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


def test_other_bits_are_noticed() -> None:
    """Another loss, another parameter, or a way without figures."""
    one = {"way": "pydag", "losses": ["0x1p0"], "checksum": 1}
    other = {**one, "way": "JAX, tied by hand"}
    assert agreement([one, other]) is True
    assert agreement([one, {**other, "losses": ["0x1.8p0"]}]) is False
    assert agreement([one, {**other, "checksum": 2}]) is False
    assert agreement([one, {"way": other["way"], "note": ways.OUT_OF_MEMORY}]) is None


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


def test_the_width_is_chosen_by_the_memory() -> None:
    """The parameters and moments of the tied model take as much as they may, to a head's width."""
    for memory in (20e9, 70e9):
        width = ways.width_for(memory, ITEM)
        taken = [
            ways.STATE * ITEM * sum(size(shape) for shape in ways.shapes(w).values())
            for w in (width, width + ways.HEAD)
        ]
        assert 0.95 * memory < taken[0] < 1.001 * memory < taken[1]
    assert ways.width_for(0, ITEM) == WIDTH


def size(shape: tuple[int, ...]) -> int:
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def test_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each way in a process of its own: a table, and a file; what doesn't fit has a note."""
    out = tmp_path / "new" / "accelerator.json"
    options = ["--steps", "3", "--out", str(out), "--ways", "pydag"]
    accelerator.main(options)
    written = json.loads(out.read_text("utf-8"))
    [found] = written["sizes"]
    assert (found["width"], found["same_bits"]) == (WIDTH, None)
    assert written["about"]["versions"]["jax"] == jax.__version__
    assert found["ways"][0]["peak_bytes"] > found["ways"][0]["parameter_bytes"]
    assert f"| pydag | {found['ways'][0]['parameters']:,} |" in capsys.readouterr().out

    accelerator.main([*options, "--width", str(1 << 20)])  # 281 TB for the table
    assert "| pydag |  | out of memory |" in capsys.readouterr().out


def test_a_process_that_fails_is_a_row(capfd: pytest.CaptureFixture[str]) -> None:
    """A way that ends with another error, or not in time, has a note in its row and no figures."""
    found = accelerator.one("pydag", 60, dtype="no such type", steps=3, width=64)
    assert found["figures"]["note"] == "ended with code 1"
    assert "TypeError: data type 'no such type'" in capfd.readouterr().err
    late = accelerator.one("pydag", 0.01, dtype="float32", steps=3, width=64)
    assert late["figures"]["note"] == "took more than 0.01 s"
    size = {"width": None, "ways": [late["figures"]]}
    assert "| pydag |  | took more than" in rows_of({"about": {}}, size)


def test_the_section_of_the_page(tmp_path: Path) -> None:
    """It has a table for each size; without a file there is none. The committed file is a GPU's."""
    assert section([], tmp_path / "missing.json") == ""
    about = {"device": "A Device", "limit_bytes": 77e9, "date": "2026-01-02", "steps": 20}
    about |= {"versions": {"jax": "1"}, "dtype": "float32"}
    way = {"way": "pydag", "parameters": 2000, "parameter_bytes": 8e9, "peak_bytes": 6e10}
    way |= {"step_s": 0.1, "host_s": 1e-3, "first_call_s": 3.0, "loss": 1.5}
    out = {"way": "JAX, not tied", "note": ways.OUT_OF_MEMORY}
    sizes = [{"width": 64, "ways": [out, way], "same_bits": True}]
    file = tmp_path / "accelerator.json"
    file.write_text(json.dumps({"about": about, "sizes": sizes}), "utf-8")
    text = section([], file)
    words = " ".join(text.split())
    assert "an A Device with 77 GB to use (jax 1; 2026-01-02)" in words
    assert "| pydag | 2,000 | 60 GB | 100 ms | 1 ms | 1.500000 |" in text
    assert "| JAX, not tied |  | out of memory |  |  |  |" in text
    assert "to the last bit" in words
    sizes[0]["same_bits"] = False
    file.write_text(json.dumps({"about": about, "sizes": sizes}), "utf-8")
    assert "to the last bit" not in " ".join(section([], file).split())
    if FILE.exists():
        assert json.loads(FILE.read_text("utf-8"))["about"]["platform"] != "cpu"
