# SPDX-License-Identifier: Apache-2.0
"""The examples in docstrings, in the README and in docs/."""

import contextlib
import doctest
import importlib
import importlib.metadata
import importlib.util
import io
import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import pydag
from pydag.__main__ import main

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = sorted([README, *(ROOT / "docs").glob("*.md")])
LINKED = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
HAS_JAX = importlib.util.find_spec("jax") is not None


def module_names() -> list[str]:
    """The modules of the installed package; those that import JAX only where it is installed."""
    folder = Path(pydag.__file__).parent
    parts = (path.relative_to(folder.parent).with_suffix("").parts for path in folder.rglob("*.py"))
    names = sorted(".".join(part for part in path if part != "__init__") for path in parts)
    return [name for name in names if HAS_JAX or not name.startswith("pydag.jaxinterop")]


NEEDED = {f"pydag.integrations.{name}": name for name in ("attrs", "jax", "numpy", "torch")}
"""What modules import that need not be installed."""


def failures(test: doctest.DocTest) -> str:
    """What doctest has to say about examples that fail; `...` stands for what is left out."""
    report: list[str] = []
    doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS).run(test, out=report.append)
    return "".join(report)


@pytest.mark.parametrize("name", module_names())
def test_docstring_examples_hold(name: str) -> None:
    """Every example in a docstring gives what it says. The usual imports are made already."""
    if (library := NEEDED.get(".".join(name.split(".")[:3]))) is not None:
        pytest.importorskip(library)
    module = importlib.import_module(name)
    names = vars(module) | {"pydag": pydag}
    if name.startswith("pydag.integrations.torch"):
        names |= vars(importlib.import_module("pydag.integrations.torch"))
    if name.startswith("pydag.jaxinterop"):
        names["jax"] = importlib.import_module("jax")
        names["jnp"] = importlib.import_module("jax.numpy")
    assert not "".join(failures(test) for test in doctest.DocTestFinder().find(module, globs=names))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_examples_hold(page: Path) -> None:
    """The `>>>` examples of a page, run from top to bottom, give what they say."""
    text = page.read_text(encoding="utf-8")
    assert not failures(doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0))


def programs(page: Path) -> list[str]:
    """The blocks of a page that are complete: they begin with an import, and have no prompts."""
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return [block for block in blocks if re.match(r"(import|from) ", block)]


@pytest.mark.skipif(not HAS_JAX, reason="the programs use JAX")
@pytest.mark.parametrize("program", [pytest.param(text, id="README") for text in programs(README)])
def test_programs_of_the_readme_run(program: str) -> None:
    """A block that begins with an import runs as it stands; its assertions hold.

    What it prints is what the comments behind `print(...)` say, up to a colon.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(program, "<page>", "exec", dont_inherit=True), names)
    promised = re.findall(r"^ *print\(.*\) +# ([^:\n]*)", program, re.MULTILINE)
    assert said.getvalue().splitlines() == promised


LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """A link into the repository leads to a file that is there, one into a page to a heading."""
    text = page.read_text("utf-8")
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in headings}
    for target in LINK.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        if target.startswith("#"):
            assert target[1:] in anchors
        elif not target.startswith("https://"):
            assert (page.parent / target.partition("#")[0]).exists(), target


def test_the_readme_of_a_package_index_has_no_dead_links() -> None:
    """There, links into the repository are the names of the files; all else is as in the README."""
    metadata = importlib.metadata.metadata("pydag-tree")
    text = metadata["Description"]
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert "* `Tutorial`: ten minutes" in text
    assert [link for link in LINK.findall(text) if not link.startswith(("https://", "#"))] == []
    assert len(text) > 0.9 * len(README.read_text("utf-8"))


def test_messages_that_are_explained_are_raised() -> None:
    """Each error text in docs/troubleshooting.md is, word for word, in a message of pydag."""
    page = (ROOT / "docs/troubleshooting.md").read_text("utf-8").partition("## Error texts")[2]
    explained = re.findall(r"^\| `([^`]*)` \|", page, re.MULTILINE)
    assert len(explained) > 10
    folder = Path(pydag.__file__).parent
    core = ROOT / "pydag/core"
    sources = [*folder.rglob("*.py"), *core.rglob("*.h"), *core.rglob("*.cpp")]
    # Parts of a text that a source has on several lines are put together.
    texts = [re.sub(r'"\s*f?"', "", path.read_text("utf-8")) for path in sources]
    assert [text for text in explained if not any(text in source for source in texts)] == []


def test_the_project_gives_no_address_that_it_has_not() -> None:
    """The addresses of the distribution are those of others; the project has none yet."""
    addresses = importlib.metadata.metadata("pydag-tree").get_all("Project-URL")
    assert addresses == ["Background (jax issue 7919), https://github.com/jax-ml/jax/issues/7919"]


def test_the_tests_that_hold_the_promises_are_there() -> None:
    """Each test that docs/reliability.md names is a file of this repository."""
    named = re.findall(r"`(tests/[^`]*\.py)`", (ROOT / "docs/reliability.md").read_text("utf-8"))
    assert len(named) > 20
    assert [name for name in named if not (ROOT / name).is_file()] == []


BLOCK = re.compile(
    r"^```python\n(?!>>>)(.*?)^```\n(?:\n*```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE
)


@pytest.mark.parametrize("page", [page for page in PAGES if page != README], ids=lambda p: p.stem)
def test_pages_run_from_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The blocks of a page under docs/ are one program; each prints the text that follows it."""
    pytest.importorskip({"pytorch": "torch", "sampling": "blackjax"}.get(page.stem, "jax"))
    monkeypatch.chdir(tmp_path)
    # Classes that are defined on the page need a module to belong to.
    module = types.ModuleType(f"page_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    text = page.read_text("utf-8")
    checker, options = doctest.OutputChecker(), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for block in BLOCK.finditer(text):
        # Errors name the line of the page.
        source = "\n" * (text[: block.start()].count("\n") + 1) + block[1]
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(source, str(page), "exec", dont_inherit=True), vars(module))
        wanted = block[2] or ""
        assert checker.check_output(wanted, said.getvalue(), options), (
            f"{block[1]}\nprinted\n\n{said.getvalue()}\nnot\n\n{wanted}"
        )


def test_commands_print_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each command in docs/doctor.md prints what follows it, for files that the page makes."""
    pytest.importorskip("safetensors")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs/doctor.md").read_text("utf-8")
    for block in BLOCK.finditer(text):
        exec(compile(block[1], "<page>", "exec", dont_inherit=True), {})
    capsys.readouterr()
    consoles = re.findall(r"^```console\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    command = re.compile(r"^\$ python -m pydag (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
    for arguments, wanted in command.findall("".join(consoles)):
        main(arguments.split())
        assert capsys.readouterr().out == wanted, arguments


def test_the_changelog_is_by_version() -> None:
    """Each version has what was added, changed and fixed; the present one is the first."""
    text = (ROOT / "docs" / "changelog.md").read_text("utf-8")
    versions = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert re.fullmatch(
        rf"{re.escape(pydag.__version__)} \((unreleased|\d{{4}}-\d\d-\d\d)\)", versions[0]
    )
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        kinds = re.findall(r"^### (.*)$", section, re.MULTILINE)
        order = ["Added", "Changed", "Fixed", "Figures"]
        assert kinds == sorted(kinds, key=order.index)
        before = section.partition("### ")[0].split("\n", 1)[1]
        assert not before.strip(), "a line that stands under none of the headings"


def test_lines_of_code_beside_equinox_and_nnx() -> None:
    """The table in docs/compared.md has the lines of examples/one_step.py."""
    program = (ROOT / "examples" / "one_step.py").read_text("utf-8")
    parts = re.split(r"^# --- (.*) ---\n", program, flags=re.MULTILINE)[1:]
    lines = {
        title: len(re.findall(r"^.*\S", text, re.MULTILINE))
        for title, text in zip(parts[::2], parts[1::2], strict=True)
    }
    page = (ROOT / "docs" / "compared.md").read_text("utf-8")
    stated = re.findall(r"^\| (\w+).* \| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    assert {name: (int(model), int(step)) for name, model, step in stated} == {
        "equinox": (lines["equinox: the model"], lines["equinox: the step"]),
        "NNX": (lines["NNX: the model"], lines["NNX: the step"]),
        "pydag": (lines["equinox: the model"], lines["pydag: the step"]),
    }
