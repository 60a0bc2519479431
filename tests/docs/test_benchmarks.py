# SPDX-License-Identifier: Apache-2.0
"""The benchmark program, in pieces that take no time. What it measures isn't judged here."""

import csv
import importlib
import importlib.util
import re
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import boundary
import calls
import copies
import dispatch
import expressions
import figures
import folds
import functions
import instructions
import limit
import pytest
import slower
import tables
import updated
from models import MAPPINGS, NODE_COUNTS, Builder, fresh_key, skeletons
from peers import WORKS, Peers, find_peers, works
from readme import BEGIN, END, insert_figures
from records import Record, Results, chosen
from report import FOLDER, markdown
from rows import Row, at_least, at_most, section, within
from timing import QUICK, Effort, Outcome, Times, Work, contest, fresh_contest, prepared_contest
from words import duration, significant

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


def test_another_model_is_refused() -> None:
    """A model with another number of nodes than the published one stops the benchmark."""
    with pytest.raises(AssertionError, match="TinyMLP has 54 nodes where the published one has 53"):
        tables.check_nodes("TinyMLP", 54)


@pytest.mark.parametrize("name", NODE_COUNTS)
def test_a_tenth_is_shared(name: str) -> None:
    """In the shared variant about a tenth of the modules are repetitions of earlier ones."""
    builder = Builder(leaf=object, shared=True)
    spec = pydag.dag_structure(builder.module(skeletons()[name]))
    assert spec.num_shared > 0
    # TinyMLP has only six.
    assert 0.09 < builder.repeated / builder.modules < (0.2 if name != "TinyMLP" else 0.4)


def test_fresh_trees_have_keys_of_their_own() -> None:
    """No key of a fresh tree is an object of another one, and the structures are equal."""

    def keys(tree: Any) -> set[int]:
        if isinstance(tree, dict):
            return {id(key) for key in tree}.union(*map(keys, tree.values()))
        return set().union(*map(keys, tree)) if isinstance(tree, list | tuple) else set()

    trees = [model("TinyMLP", key=fresh_key) for _ in range(2)]
    assert keys(trees[0]).isdisjoint(keys(trees[1]))
    assert pydag.dag_structure(trees[0]) == pydag.dag_structure(model("TinyMLP"))


def test_missing_competitor_is_named_and_left_out() -> None:
    """One that isn't installed gives a message that names it, and the others are measured."""
    wanted = {"optree": ("optree", "optree"), "nothing": ("no_such_module", "no-such-thing")}
    peers = find_peers(wanted)
    assert list(peers.modules) == ["optree"]
    assert len(peers.missing) == 1
    assert re.search(r"^nothing .* left out: .*\(pip install no-such-thing\)$", peers.missing[0])
    assert works(peers, [1], [2], [3]).keys() == {"pydag", "optree"}


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


def test_who_fails_is_out() -> None:
    """A contender that raises is left out with a note; if it is pydag, that is an error."""

    def fail() -> None:
        raise RecursionError("too deep")

    outcome = contest({"pydag": Work(len, ()), "other": Work(fail)}, HASTE)
    assert outcome.times.keys() == {"pydag"}
    assert outcome.notes == {"other": "RecursionError: too deep"}
    with pytest.raises(RecursionError):
        contest({"pydag": Work(fail)}, HASTE)


def test_fresh_contest_sees_nothing_twice() -> None:
    """Every input is made anew, and used once."""
    seen: list[Any] = []
    outcome = fresh_contest(list, {"a": seen.append, "b": seen.append}, HASTE)
    assert len(seen) == len({id(item) for item in seen}) >= 4
    assert outcome.times.keys() == {"a", "b"}


def record(work: str, pydag_time: float, optree_time: float, **labels: str | bool) -> Record:
    times = {"pydag": pydag_time, "optree": optree_time, "pickle": 1e-9}
    outcome = Outcome({name: Times(t, 2 * t) for name, t in times.items()}, {"jax": "too slow"})
    return Record.of("tables", {"work": work, **labels}, outcome)


def test_markdown() -> None:
    """The page has the mean and the worst speed-up over the fastest peer, and names the files."""
    labels: dict[str, str | bool] = {"mapping": "dict", "shared": False}
    page = markdown(
        results(
            record("map", 1e-6, 2e-6, model="TinyMLP", **labels),
            record("map", 1e-6, 8e-6, model="AlexNet", **labels),
        )
    )
    assert "* no torch\n" in page
    assert "| map | 4.00 | 2.00 |  |  |\n" in page
    assert "* [tables.csv](figures/tables.csv): " in page


def test_the_files_have_each_figure_as_it_was_measured(tmp_path: Path) -> None:
    """Together they have every time of every record, to the last digit, and each note."""
    committed = Results.read(ROOT / "benchmarks/results.json")
    figures.write(committed, tmp_path)
    for name in figures.sections(committed):
        with (tmp_path / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        for record in chosen(committed.records, name):
            labels = {k: str(v) for k, v in record.labels.items() if k in rows[0]}
            own = [row for row in rows if labels.items() <= row.items()]
            timed = {(row["contender"], row["minimum_s"], row["median_s"]) for row in own}
            for who, times in record.times.items():
                assert (who, repr(times.minimum), repr(times.median)) in timed
            noted = {(row["contender"], row["note"]) for row in own}
            assert noted >= set(record.notes.items())
            for fact, value in record.facts.items():
                assert str(value) in {row[fact] for row in own}


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


def test_figures_go_between_the_marks(tmp_path: Path) -> None:
    """The README's figures are replaced, however often, and the rest of it stays."""
    page = tmp_path / "README.md"
    page.write_text(f"before\n{BEGIN}\nafter\n", "utf-8")
    written = []
    for _ in range(2):
        insert_figures(results(), page)
        written.append(page.read_text("utf-8"))
    assert written[0] == written[1]
    assert written[0].startswith(f"before\n{BEGIN}\n\nSpeed-ups over the fastest of ")
    assert written[0].endswith(f"\n{END}\nafter\n")
    page.write_text("nothing", "utf-8")
    with pytest.raises(ValueError, match=r"README\.md has no <!-- figures -->"):
        insert_figures(results(), page)


def test_results_can_be_read_again(tmp_path: Path) -> None:
    """What was written as JSON is read as it was."""
    written = results(record("map", 1e-6, 2e-6, model="TinyMLP", mapping="dict"))
    written.write(tmp_path / "results.json")
    assert Results.read(tmp_path / "results.json") == written


def test_folds_agree() -> None:
    """Who computes over an expression in the benchmark gets the same as pydag, on plain classes."""
    peers = find_peers({"pytools": ("pytools", "pytools")})
    algebra = expressions.plain_algebra(peers)
    works = folds.works_on_plain(peers, algebra)
    assert list(works) == ["count", "height", "rewrite one variable", "rewrite nothing"]
    for make in (partial(expressions.tree, leaves=32), partial(expressions.lattice, levels=4)):
        tree = make(algebra)
        for work, contenders in works.items():
            first, *others = (contender(tree) for contender in contenders.values())
            assert others
            for other in others:
                if isinstance(first, int):
                    assert other == first
                else:
                    both = pydag.dag_intern([first, other])
                    assert both[0] is both[1]
                    assert (first is tree) is (other is tree) is (work == "rewrite nothing")


def test_expressions_share_what_they_say() -> None:
    """The tree shares nothing, a lattice has twice as many paths with each level."""
    algebra = expressions.plain_algebra(Peers())
    assert pydag.dag_structure(expressions.tree(algebra, 32)).num_shared == 0
    for levels in (3, 60):
        spec = pydag.dag_structure(expressions.lattice(algebra, levels))
        assert spec.num_nodes == 16 * (levels + 1) + 15
        assert pydag.dag_fold(paths, expressions.lattice(algebra, levels)) == 16 * 2**levels
    written_out = expressions.unfolded(algebra, 3)
    assert pydag.dag_structure(written_out).num_nodes == 16 + 16 * (2**3 - 1) + 15
    assert pydag.dag_structure(pydag.dag_intern(written_out)).num_nodes == 16 * 4 + 15


def paths(node: Any, below: tuple[int, ...]) -> int:
    return sum(below) or 1


def test_folds_on_the_page() -> None:
    """A row for each contender: how many times as long as pydag it takes, mean and least."""
    outcome = Outcome({"pydag": Times(1e-6, 1e-6), "other": Times(3e-6, 3e-6)})
    slower = Outcome({"pydag": Times(1e-6, 1e-6), "other": Times(12e-6, 12e-6)})
    labels = {"shape": "shared twelve-fold", "owner": "plain classes"}
    page = markdown(
        results(
            Record.of("folds", labels | {"work": "count"}, outcome, nodes=10),
            Record.of("folds", labels | {"work": "height"}, slower, nodes=10),
        )
    )
    assert "| other | 6.00 | 3.00 |\n" in page


def test_calls_on_the_page() -> None:
    """A call has its multiple of the floor; an option or wrapper that is slower has a row."""

    def of(times: dict[str, float], **labels: Any) -> Record:
        return Record("boundary", labels, {n: Times(t, 2 * t) for n, t in times.items()})

    floor, ours = boundary.FLOOR, boundary.OURS[0]
    steps = {f"pydag: {calls.DONATED}": 4e-6, f"jax: {calls.DONATED}": 1e-6}
    page = markdown(
        results(
            of({floor: 2e-6, ours: 3e-6}, work="update", leaves=30),
            of({floor: 4e-6, ours: 5e-6}, work="update", leaves=300),
            of(steps, work=calls.OPTIONS, leaves=30),
            of({"pydag": 3e-6, "jax": 2e-6}, work=calls.EAGER, wrapper="vmap", leaves=30),
            of(
                {floor: 1e-4, ours: 1.1e-4, "jax.jit, dict": 1e-4},
                work=dispatch.DISPATCH,
                leaves=1200,
                what=dispatch.RETURNS,
            ),
        )
    )
    assert f"| {floor} | 2 µs | 4 µs |\n| {ours} | 1.50 | 1.25 |\n" in page
    assert "| jit, donated, 30 leaves | jax | 4.00 |\n" in page
    assert "| vmap, not compiled, 30 leaves | jax | 1.50 |\n" in page
    assert "that is 5 % for JAX and 0.5 % for pydag." in page


@pytest.mark.parametrize("name", calls.WRAPPERS)
def test_wrappers_that_are_raced(name: str) -> None:
    """Both sides of a contest run."""
    peers = find_peers({"jax": ("jax", "jax")})
    if "jax" not in peers:
        pytest.skip("no jax")
    [task] = [t for t in calls.tasks(peers, HASTE) if t.label == f"{name}, 30 leaves"]
    [record] = task.run()
    assert list(record.times) == ["pydag", "jax"]


def test_options_that_are_raced() -> None:
    """So do the calls with options, JAX's and ours."""
    peers = find_peers({"jax": ("jax", "jax")})
    if "jax" not in peers:
        pytest.skip("no jax")
    [record] = calls.tasks(peers, HASTE)[0].run()
    assert not record.notes
    assert {f"{owner}: {calls.DONATED}" for owner in ("pydag", "jax")} <= record.times.keys()


def test_updates_that_are_raced() -> None:
    """Each kind of model is updated in place, and returned."""
    peers = find_peers({"jax": ("jax", "jax"), "flax": ("flax.nnx", "flax")})
    if "jax" not in peers:
        pytest.skip("no jax")
    [record] = [task.run()[0] for task in updated.tasks(peers, HASTE)[:1]]
    assert not record.notes
    kinds = updated.KINDS if "flax" in peers else updated.KINDS[:2]
    names = [f"{kind}, {how}" for kind in kinds for how in (updated.IN_PLACE, updated.RETURNED)]
    assert list(record.times) == names


def test_copies_of_a_model() -> None:
    """A small contest copies with the arrays and without."""
    [task] = [t for t in copies.tasks(Peers(), HASTE) if t.label.endswith("TinyMLP")]
    [record] = task.run()
    assert list(record.times) == [copies.CONTAINERS, copies.ARRAYS, "copy.deepcopy", "pickle"]


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (1.23456, "1.23"), (123.4, "123"), (12345.6, "12,300")]
)
def test_numbers(value: float, text: str) -> None:
    """Numbers have three significant digits, and no exponents."""
    assert significant(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.0, "2 s"), (0.0123, "12.3 ms"), (4.56e-6, "4.56 µs"), (7e-9, "7 ns")]
)
def test_durations(seconds: float, text: str) -> None:
    """Times have the unit that suits them."""
    assert duration(seconds) == text


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


def test_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a compiler the limit is left out, and a message says why."""
    monkeypatch.setenv("CXX", "no-such-compiler")
    peers = Peers()
    assert limit.tasks(peers, HASTE) == []
    assert "no-such-compiler" in peers.missing[0]


def test_missing_valgrind_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without valgrind the count of instructions is skipped with a message, and passes."""
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert instructions.main() == 0
    assert "skipped: valgrind" in capsys.readouterr().out


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="draws")
def test_picture(tmp_path: Path) -> None:
    """The picture is drawn, also of results that lack whole sections."""
    from picture import draw

    labels: dict[str, str | bool] = {"mapping": "dict", "shared": False}
    draw(results(record("map", 1e-6, 2e-6, model="TinyMLP", **labels)), tmp_path / "a.png")
    draw(results(), tmp_path / "b.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


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


def test_printers(tmp_path: Path) -> None:
    """A view writes each distinct array once, and its total is right; `repr` writes all of them."""
    pytest.importorskip("jax")
    views = importlib.import_module("views")
    assert views.row("pydag.view", views.shared(5))[1:3] == ["1", "right"]
    assert views.row("repr", views.shared(5))[1:3] == ["32", "none"]
    page = tmp_path / "page.md"
    page.write_text(f"a\n{views.BEGIN}\nold\n{views.END}\nb\n", "utf-8")
    views.insert(page, views.BEGIN, views.END, "new")
    assert page.read_text("utf-8") == f"a\n{views.BEGIN}\n\nnew\n{views.END}\nb\n"


def test_rows_of_the_table_of_cliffs() -> None:
    """A row says its ratio either way round, and whether it is what was wanted."""
    outcome = Outcome({"pydag": Times(2.0, 2.0), "other": Times(3.0, 3.0)})
    faster = at_least("faster", 1.5, lambda effort: outcome).record(HASTE)
    slow = at_least("slower", 1.6, lambda effort: outcome).record(HASTE)
    bounded = at_most("bounded", 0.6, lambda effort: outcome).record(HASTE)
    text = section([faster, slow, bounded])
    assert "| faster | 2 s | other | 3 s | 1.50 | ≥ 1.5 |  |" in text
    assert "| slower | 2 s | other | 3 s | 1.50 | ≥ 1.6 | missed |" in text
    assert "| bounded | 2 s | other | 3 s | 0.67 | ≤ 0.6 | missed |" in text


def test_a_time_that_is_set_stands_beside_ours() -> None:
    """A row with a bound for each leaf compares with that many times the bound."""
    outcome = Outcome({"pydag": Times(2.0, 2.0)})
    text = section([within("set", 0.5, lambda effort: outcome, 2).record(HASTE)])
    assert "| set | 2 s | 500 ms a leaf | 1 s | 2.00 | ≤ 1.0 | missed |" in text


def test_ratios_of_an_earlier_run_stand_beside_the_new_ones() -> None:
    """A row that the earlier run didn't have gets an empty cell."""

    def row(name: str, seconds: float) -> Row:
        times = {"pydag": Times(seconds, seconds), "other": Times(3.0, 3.0)}
        return at_least(name, 1.0, lambda effort: Outcome(times))

    new, old, other = row("a row", 1.0), row("a row", 2.0), row("another", 1.0)
    text = section([new.record(HASTE), other.record(HASTE)], [old.record(HASTE)])
    assert "|  | pydag | the other | its time | before | ratio | wanted |  |" in text
    assert "| a row | 1 s | other | 3 s | 1.50 | 3.00 | ≥ 1.0 |  |" in text
    assert "| another | 1 s | other | 3 s |  | 3.00 | ≥ 1.0 |  |" in text


@pytest.mark.parametrize("module", ["functions", "many_arrays", "quiet_steps", "imports"])
def test_rows_have_names_of_their_own(module: str) -> None:
    """Each module makes its rows, quickly, and none has another one's name."""
    peers = find_peers({"optree": ("optree", "optree")})
    rows = importlib.import_module(module).rows(peers, HASTE)
    assert len({row.name for row in rows}) == len(rows)


@pytest.mark.parametrize(
    "row",
    functions.rows(find_peers({"optree": ("optree", "optree")}), QUICK),
    ids=lambda row: row.name,
)
def test_functions_that_are_raced(row: Row) -> None:
    """Each row runs what it says, with pydag and another one."""
    assert len(row.race(HASTE).times) == 2


def test_preparations_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a prepared call is given is made just before it, and making it takes no time."""
    made: list[int] = []
    monkeypatch.setattr("timing.time.perf_counter", lambda: float(len(made)))

    def prepare() -> int:
        made.append(len(made))
        return made[-1]

    def call(number: int) -> None:
        assert number == len(made) - 1

    assert prepared_contest({"pydag": (prepare, call)}, HASTE).times["pydag"].minimum == 0
