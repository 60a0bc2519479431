# SPDX-License-Identifier: Apache-2.0
"""The benchmark program, in pieces that take no time. What it measures isn't judged here."""

import importlib
import importlib.util
import shutil
from pathlib import Path
from typing import Any

import figures
import limit
import pytest
import slower
import tables
from models import MAPPINGS, NODE_COUNTS, Builder, skeletons
from peers import WORKS, find_peers
from readme import insert_figures
from records import Record, Results
from report import FOLDER, markdown
from timing import Effort, Outcome, Times

import pydag

pytestmark = pytest.mark.once
ROOT = Path(__file__).parents[2]
HASTE = Effort(rounds=1, turn=1e-6, patience=10)


def model(name: str, mapping: str = "dict", **options: Any) -> Any:
    return Builder(MAPPINGS[mapping], leaf=object, **options).module(skeletons()[name])


def results(*records: Record) -> Results:
    about = {"pydag": "1", "python": "3", "machine": "a machine", "rounds": 1, "quick": True}
    return Results({**about, "versions": {"optree": "0"}, "missing": ["no torch"]}, list(records))


@pytest.mark.parametrize("mapping", MAPPINGS)
@pytest.mark.parametrize("name", NODE_COUNTS)
def test_models_are_the_published_ones(name: str, mapping: str) -> None:
    """Each model has as many nodes as in optree's tables, and nothing in it is shared."""
    spec = pydag.dag_structure(model(name, mapping))
    assert (spec.num_nodes, spec.num_shared) == (NODE_COUNTS[name], 0)
    tables.check_nodes(name, spec.num_nodes)


@pytest.mark.parametrize("shared", [False, True])
def test_table_of_a_model(shared: bool) -> None:
    """A small race runs every kind of work, and its records name the contenders."""
    peers = find_peers({"optree": ("optree", "optree")})
    tasks = [task for task in tables.tasks(peers, HASTE) if task.label.startswith("TinyMLP, dict")]
    records = tasks[shared].run()
    assert [record.labels["work"] for record in records] == list(WORKS)
    for record in records:
        assert {"pydag", "optree"} <= record.times.keys()
        assert not record.notes
        copies = record.labels["work"] in ("flatten", "unflatten", "copy")
        assert ("pickle" in record.times) is (shared and copies)


def record(work: str, pydag_time: float, optree_time: float, **labels: str | bool) -> Record:
    times = {"pydag": pydag_time, "optree": optree_time, "pickle": 1e-9}
    outcome = Outcome({name: Times(t, 2 * t) for name, t in times.items()}, {"jax": "too slow"})
    return Record.of("tables", {"work": work, **labels}, outcome)


def test_the_page_is_what_the_results_say(tmp_path: Path) -> None:
    """The page, the files and the README's table are made from benchmarks/results.json."""
    committed = Results.read(ROOT / "benchmarks/results.json")
    assert (ROOT / "docs/benchmarks.md").read_text("utf-8") == markdown(committed)
    figures.write(committed, tmp_path)
    made = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}
    there = (ROOT / "docs" / FOLDER).iterdir()
    assert {path.name: path.read_text("utf-8") for path in there} == made
    readme = tmp_path / "README.md"
    shutil.copy(ROOT / "README.md", readme)
    insert_figures(committed, readme)
    assert readme.read_text("utf-8") == (ROOT / "README.md").read_text("utf-8")


def test_every_slower_workload_is_on_the_page() -> None:
    """Each record in which another library is faster, by more than noise, is on the page."""
    committed = Results.read(ROOT / "benchmarks/results.json").records
    text = slower.section(committed)
    compared = list(slower.beside_others(committed))
    assert len(compared) > 400
    for what, ours, _, its in compared:
        assert (f"| {what} |" in text) == (ours > slower.NOISE * its), what


def test_limit_does_the_same_work() -> None:
    """The bare loops, where they can be compiled, find and build what pydag does."""
    try:
        loops = limit.compiled()
    except limit.NoCompilerError as error:
        pytest.skip(f"no compiler: {error}")
    for mapping in MAPPINGS:
        tree = model("AlexNet", mapping)
        assert loops.count_leaves(tree) == len(pydag.dag_leaves(tree))
    tree = model("AlexNet", "dict")
    leaves = pydag.dag_leaves(tree)
    copied = loops.copied(tree)
    assert pydag.dag_structure(copied) == pydag.dag_structure(tree)
    assert copied is not tree
    assert list(map(id, pydag.dag_leaves(copied))) == list(map(id, leaves))
    for count in (1, 3):
        met = loops.mapped(lambda *x: list(map(id, x)), *[tree] * count)
        expected = pydag.dag_map(lambda *x: list(map(id, x)), *[tree] * count)
        assert met == expected
    with pytest.raises(ZeroDivisionError):
        loops.mapped(lambda _: 1 / 0, tree)
    with pytest.raises(TypeError, match="trees"):
        loops.mapped(len)


@pytest.mark.filterwarnings("ignore")  # of the other libraries
def test_ways_to_save() -> None:
    """Of ways to save a tied model ours writes each array once, keeps the tie and runs nothing."""
    pytest.importorskip("jax")
    pytest.importorskip("safetensors")
    files = importlib.import_module("files")
    model = files.transformer(8, 2, 20)
    ours, theirs, pickled = (
        dict(zip(files.HEAD, files.row(name, model), strict=True))
        for name in ("pydag.files", "safetensors", "pickle")
    )
    assert (ours["ties kept"], theirs["ties kept"], pickled["ties kept"]) == ("yes", "no", "yes")
    assert (ours["runs code of the file"], pickled["runs code of the file"]) == ("no", "yes")
    assert ours["mapped"] == ours["a part alone"] == ours["a missing array is refused"] == "yes"
