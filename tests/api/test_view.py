# SPDX-License-Identifier: Apache-2.0
"""`pydag.view`: text, table, drawing, HTML."""

import collections
import html.parser
import os
import re
import shutil
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")

import pydag
from pydag import view
from pydag.files import save
from pydag.views.file import file_view


@pydag.register_fields(meta_fields=("name", "units"))
class Block:
    def __init__(self, weight: Any, name: str = "first", units: int = 3) -> None:
        self.weight, self.name, self.units = weight, name, units


class Odd:
    """An array of a type that is nobody else's, which doesn't say its size."""

    shape = (2,)
    dtype = type("dtype", (), {"name": "decimal128", "itemsize": 16})()

    def __repr__(self) -> str:
        raise RuntimeError("no")


class UnnamedError(Exception):
    """Shown by its `repr`."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


class Hostile:
    """Raises whatever it is asked."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    @property
    def shape(self) -> Any:
        raise RuntimeError("no")

    @property
    def dtype(self) -> Any:
        raise RuntimeError("no")


@pytest.fixture
def model() -> Any:
    w = np.zeros((128, 64), np.float32)
    block = Block(w)
    return {"encoder": block, "decoder": [block, w, {}], "eps": 1e-6, "none": None}


TEXT = """\
dict
├─ ['decoder']: list
│  ├─ [0]: &0 Block [name='first', units=3]
│  │  └─ .weight: &1 f32[128,64]
│  ├─ [1]: *1
│  └─ [2]: dict (empty)
├─ ['encoder']: *0
├─ ['eps']: 1e-06
└─ ['none']: None
6 objects, 2 leaves, 8192 parameters, 32768 bytes; unfolded: 9 objects, 4 leaves, 24576 \
parameters, 98304 bytes"""


def test_text(model: Any) -> None:
    """The text has each shared object once, arrays by type and shape, configuration, and totals."""
    assert str(view(model)) == repr(view(model)) == TEXT


def test_totals(model: Any) -> None:
    """The totals are numbers, too: distinct, and unfolded."""
    totals = view(model).totals
    assert totals[:4] == (6, 2, 8192, 32768)
    assert totals.unfolded == (9, 4, 24576, 98304)
    assert (totals.objects, totals.leaves, totals.parameters, totals.bytes) == (6, 2, 8192, 32768)


def test_sixty_levels() -> None:
    """Every view of sixty levels of [t, t] is made in linear time; totals are exact."""
    tree: Any = np.ones(2, np.float32)
    for _ in range(60):
        tree = [tree, tree]
    began = time.thread_time()
    shown = view(tree)
    assert shown.totals.unfolded == (2**61 - 1, 2**60, 2**61, 2**63)
    assert str(2**63) in str(shown)
    assert shown.table().rows[0].num_paths == 2**60
    assert len(str(view(tree, limit=None))) < 20_000
    assert len(shown.dot()) < 20_000
    assert len(shown._repr_html_()) < 100_000
    assert str(view(tree, width=None).table()).count("and 1152921504606846972 more") == 1
    assert time.thread_time() - began < 2


def test_depth(model: Any) -> None:
    """Levels below `depth` are counted, not shown; an alias says where its anchor would stand."""
    assert str(view(model, depth=1)).splitlines()[:3] == [
        "dict",
        "├─ ['decoder']: list … 3 more objects",
        "├─ ['encoder']: *0 (['decoder'][0])",
    ]
    assert str(view(model, depth=0)).splitlines()[0] == "dict … 5 more objects"


def test_width_and_limit(model: Any) -> None:
    """No line but the last is wider than `width`; `limit` lines, and how much more there is."""
    lines = str(view(model, width=20)).splitlines()
    assert max(map(len, lines[:-1])) == 20
    assert lines[2] == "│  ├─ [0]: &0 Block…"
    lines = str(view(model, limit=2)).splitlines()
    assert lines[:3] == [*TEXT.splitlines()[:2], "... and 4 more objects"]
    with pytest.raises(ValueError, match="width must be None or at least 8, got 3"):
        view(model, width=3)


def test_table(model: Any) -> None:
    """The table has a row for each distinct leaf, with its further paths."""
    table = view(model).table()
    assert table.rows[0] == ("['decoder'][0].weight", ("['encoder'].weight", "['decoder'][1]"), 3,
                             (128, 64), "f32", 32768)  # fmt: skip
    assert [row.path for row in table.rows] == ["['decoder'][0].weight", "['eps']"]
    assert table.splitlines()[2].split()[0] == "['decoder'][0].weight"
    assert table.splitlines()[-1] == TEXT.splitlines()[-1]
    assert repr(table) == str(table)
    assert "and 1 more" in view(model, limit=1).table()
    assert view(model, limit=1).table().more == 1


def test_dot(model: Any) -> None:
    """The drawing has a box for each object and an arrow for each slot, to the anchor's box."""
    text = view(model).dot()
    boxes = re.findall(r"^  (n\d+) \[label", text, re.MULTILINE)
    arrows = re.findall(r"(n\d+) -> (n\d+)", text)
    assert len(boxes) == len(set(boxes)) == 7  # None has one, too
    assert len(arrows) == 8
    assert sum(target == arrows[1][1] for _, target in arrows) == 2
    assert {name for arrow in arrows for name in arrow} == set(boxes)


def test_dot_quotes() -> None:
    """Quotes, backslashes and newlines in names can't end a label."""
    text = view({'"]; evil [': "\\", "a\n": 1}).dot()
    for line in text.splitlines()[3:-1]:
        assert re.fullmatch(r'  [^"]*("(?:[^"\\]|\\.)*"[^"]*)*;', line), line


def test_svg(model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphviz's program gets the text of the drawing, and what it prints is the SVG."""
    if shutil.which("dot") is None:
        (program := tmp_path / "dot").write_text('#!/bin/sh\necho "<svg>$1 $(wc -l)</svg>"\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    view(model).save(tmp_path / "x.svg")
    assert "<svg" in (tmp_path / "x.svg").read_text()


def test_what_a_limit_leaves_out(model: Any) -> None:
    """A drawing, a table and HTML say how much they leave out, and link to nothing beyond it."""
    shown = view(model, limit=3)
    assert 'label="... and 3 more objects"' in shown.dot()
    assert "... and 3 more objects" in (text := shown._repr_html_())
    assert all(link.removeprefix("#") in Page(text).ids for link in Page(text).links)
    assert Page(view(model, depth=1)._repr_html_()).links == []
    table = view(model, limit=1).table()._repr_html_()
    assert "<td>[&#x27;decoder&#x27;][0].weight</td>" in table
    assert "<p>... and 1 more</p>" in table


def test_a_structure(model: Any) -> None:
    """The view of a structure shows what it has, without arrays; unknown options are errors."""
    spec = pydag.dag_structure(model)
    assert "['encoder']: *0" in str(view(spec))
    assert str(view(spec)).count("*") == 4
    with pytest.raises(TypeError):
        view(spec, nothing=1)  # type: ignore[call-arg]  # that is the mistake


def test_save(model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four suffixes; any other is a ValueError, and SVG without Graphviz says what to install."""
    shown = view(model)
    for suffix in ("html", "dot", "txt"):
        shown.save(tmp_path / f"x.{suffix}")
    assert (tmp_path / "x.txt").read_text("utf-8") == TEXT + "\n"
    assert (tmp_path / "x.dot").read_text("utf-8") == shown.dot()
    assert (tmp_path / "x.html").read_text("utf-8").startswith("<!DOCTYPE html>")
    with pytest.raises(ValueError, match=r"\.html, \.svg, \.dot, \.txt, not as '\.png'"):
        shown.save(tmp_path / "x.png")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ImportError, match=r"apt-get install graphviz.*\.dot"):
        shown.save(tmp_path / "x.svg")


class Page(html.parser.HTMLParser):
    """What a piece of HTML holds; every element must be closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append(tag)
        self._open.append(tag)
        self.ids += filter(None, [found.get("id")])
        self.links += filter(None, [found.get("href")])
        assert set(found) <= {"id", "href", "title", "class", "open"}

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("style", "script"):
            self.text += data


def test_html(model: Any) -> None:
    """Aliases link to their anchors and anchors back; nothing comes from elsewhere."""
    text = view(model)._repr_html_()
    page = Page(text)
    assert len(page.ids) == len(set(page.ids))
    assert len(page.links) == 4
    assert all(link.removeprefix("#") in page.ids for link in page.links)
    assert not re.search(r"https?:|src=|@import|url\(", text)
    for line in TEXT.splitlines()[:-1]:
        assert line.lstrip("│├└─ ") in re.sub(" ↩", "", page.text)


def test_two_views_have_ids_of_their_own(model: Any) -> None:
    """Ids are unique each time: two views in one notebook don't link into each other."""
    shown = view(model)
    first, second, third = (set(Page(v._repr_html_()).ids) for v in (shown, shown, view(model)))
    assert not first & second
    assert not first & third


NASTY = ["<script>alert(1)</script>", '"><b>', "&amp;", "\ud800", "\x1b[31m", "\u202e", "a\nb"]


@pytest.mark.parametrize("name", NASTY)
def test_hostile_names(name: str, tmp_path: Path) -> None:
    """Keys, text, attribute and class names are shown as text, whatever they hold."""
    cls = type(name.encode("utf-8", "replace").decode().replace("\0", ""), (Block,), {})
    pydag.register_fields(cls, meta_fields=("name", "units"))
    tree = {name: cls([name], name)}
    tree[name].__dict__[name] = 1
    shown = view([tree, tree])
    for text in (str(shown), str(shown.table()), shown.dot()):
        assert all(c.isprintable() or c == "\n" for c in text)
    page = Page(shown._repr_html_())
    assert set(page.tags) <= {"div", "style", "script", "details", "summary", "span", "a"}
    assert page.tags.count("script") == 1
    shown.save(tmp_path / "x.html")
    shown.save(tmp_path / "x.txt")


def test_hostile_leaves() -> None:
    """A `repr` that raises, a shape that raises, endless text and numbers are shown shortly."""
    tree = [Hostile(), "x" * 10**7, b"y" * 10**7, 10**6000, [np.zeros(3)] * 2, print, int, ...]
    text = str(view(tree))
    assert "Hostile" in text
    assert max(map(len, text.splitlines()[:-1])) <= 100
    assert "<int of 19932 bits>" in text
    assert str(view(Odd())).splitlines() == [
        "decimal128[2]",
        "1 objects, 1 leaves, 2 parameters, 32 bytes",
    ]
    assert str(view(object())).splitlines()[0] == "<object>"
    assert "UnnamedError" in str(view([UnnamedError()]))
    nobody = type("Nobody", (), {"__class__": property(lambda _: 1 / 0)})
    assert str(view([nobody()])).splitlines()[1] == "└─ [0]: <Nobody>"


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (collections.deque([1], 3), "deque [maxlen=3]"),
        (collections.defaultdict(list), "defaultdict (empty) [default_factory=list]"),
        (collections.OrderedDict(a=1), "OrderedDict"),
        (time.gmtime(0), "struct_time"),
        ((), "tuple (empty)"),
        (1, "1"),
        (np.float32(3), "f32[]"),
        (np.zeros((2, 3), np.int8), "i8[2,3]"),
        (np.zeros(2, bool), "bool[2]"),
        (np.zeros(2, complex), "c128[2]"),
        (np.zeros(2, np.uint16), "u16[2]"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_each_kind(tree: Any, text: str) -> None:
    """Containers by class and configuration, arrays by type and shape, values as they are."""
    assert str(view(tree)).splitlines()[0] == text


def test_a_damaged_file(tmp_path: Path) -> None:
    """What can't be shown of a file is a ValueError that says why."""
    path = str(tmp_path / "m.safetensors")
    save(path, {"b": np.ones(1), "a": np.ones(2)})
    content = Path(path).read_bytes().replace(rb"\"order\":[1,0]", rb"\"order\":[1,1]")
    Path(path).write_bytes(content)
    with pytest.raises(ValueError, match="the order must be a permutation of the keys"):
        file_view(path)
    with zipfile.ZipFile(path := str(tmp_path / "m.pt"), "w") as file:
        file.writestr("m/data.pkl", b"hello")
    with pytest.raises(ValueError, match=r"m\.pt': data\.pkl: malformed pickle"):
        file_view(path)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # treescope looks at all of NumPy
def test_treescope_and_rich(model: Any) -> None:
    """treescope and rich show a view by themselves."""
    treescope = pytest.importorskip("treescope")
    text = treescope.render_to_text(view(model))
    assert "['encoder']: *0" in text
    assert "8192 parameters" in text
    assert "<treescope-" in treescope.render_to_html(view(model))
    text = treescope.render_to_text(view([[0], [1]], limit=2))
    assert text.startswith("list ([0]: list)\n... and 3 more objects; 5 objects, 2 leaves, ")
    console = pytest.importorskip("rich.console").Console(width=200, record=True, file=sys.stderr)
    console.print(view(model))
    assert console.export_text().strip() == TEXT


def test_side_by_side() -> None:
    """`explain` shows two structures beside each other and marks what differs."""
    w = [1.0]
    tied = pydag.dag_structure({"a": w, "b": w, "c": (1, 2), "d": {"x": 1}})
    other = pydag.dag_structure({"a": w, "b": [1.0], "c": (1,), "d": {"y": 1}})
    explanation = pydag.explain(tied, other)
    assert explanation.startswith("tree['a'] and tree['b']")
    lines = str(explanation.side_by_side(width=41)).splitlines()
    assert lines == [
        "  first              │ second",
        "  dict               │ dict",
        "    ['a']: &0 list   │   ['a']: list",
        "      [0]: *         │     [0]: *",
        "!   ['b']: *0        │   ['b']: list",
        "!   ['c']: tuple     │   ['c']: tuple",
        "      [0]: *         │     [0]: *",
        "!     [1]: *         │",
        "!   ['d']: dict      │   ['d']: dict",
        "!     ['x']: *       │",
        "!                    │     ['y']: *",
    ]
    assert explanation.side_by_side()._repr_html_().count("background") == 6
    same = pydag.explain(tied, tied)
    assert same == ""
    assert "!" not in str(same.side_by_side())
    assert repr(explanation.side_by_side(width=41)) == "\n".join(lines)
    short = str(explanation.side_by_side(width=41, limit=3)).splitlines()
    assert short == [*lines[:4], "... and 7 more lines"]
