# SPDX-License-Identifier: Apache-2.0
"""The pages in upstream/ for other projects."""

import importlib.util
import re
import runpy
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "upstream"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.stem != "README")
NEEDS = {
    "jax_refs": ["jax"],
    "jax_threads": ["jax"],
    "nnx_graph": ["flax", "jax"],
    "safetensors_aliases": ["safetensors", "torch"],
    "torch_ties": ["torch"],
}


def test_every_page_has_a_script() -> None:
    """Each page has a program beside it, and a row in the list of pages."""
    assert {page.stem for page in PAGES} == set(NEEDS)
    listed = (FOLDER / "README.md").read_text("utf-8")
    for page in PAGES:
        assert page.with_suffix(".py").exists()
        assert f"({page.name})" in listed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_stands_on_its_own(page: Path) -> None:
    """The page has figures, and neither it nor its program needs pydag."""
    text = page.read_text("utf-8")
    figures = re.search("<!-- figures -->(.*)<!-- /figures -->", text, re.DOTALL)
    assert figures is not None
    assert figures[1].count("\n| ") >= 4
    assert "pydag" not in text
    assert not re.search("^ *(import|from) pydag", page.with_suffix(".py").read_text("utf-8"), re.M)


@pytest.mark.once
@pytest.mark.parametrize("name", ["nnx_graph", "safetensors_aliases", "torch_ties"])
def test_a_script_writes_its_page(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script fills the place between the marks, and leaves the rest as it is."""
    for library in NEEDS[name]:
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} isn't installed")
    monkeypatch.syspath_prepend(str(FOLDER))
    for file in (f"{name}.py", f"{name}.md", "page.py"):
        shutil.copy(FOLDER / file, tmp_path)
    page = tmp_path / f"{name}.md"
    before = page.read_text("utf-8")
    page.write_text(re.sub(r"(figures -->).*(<!-- /)", r"\1\n\2", before, flags=re.DOTALL), "utf-8")
    program = runpy.run_path(str(tmp_path / f"{name}.py"))
    if "BLOCKS" in program:
        program["main"].__globals__["BLOCKS"] = (1,)
    program["main"]()
    after = page.read_text("utf-8")
    assert after.startswith(before.partition("<!-- figures -->")[0])
    assert after.count("\n| ") >= 3
    sys.modules.pop("page", None)
