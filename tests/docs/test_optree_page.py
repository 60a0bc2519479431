# SPDX-License-Identifier: Apache-2.0
"""docs/optree.md: the table of optree's names and ours."""

import importlib
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import optree
import pytest

import pydag
from pydag.public.options import our_name

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "optree.md"


def script() -> ModuleType:
    """The program that writes the page."""
    spec = importlib.util.spec_from_file_location("optree_page", ROOT / ".ci" / "optree_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_script_writes() -> None:
    """Whoever adds a function, or a note, writes the page anew: `python .ci/optree_page.py`."""
    assert script().page() == PAGE.read_text("utf-8")


def test_every_name_of_optree_is_on_the_page() -> None:
    """Each of its public names is in a row, with a line on sharing."""
    rows = re.findall(
        r"^\| (`\w+`(?:, `\w+`)*) \| (.+?) \|$", PAGE.read_text("utf-8"), re.MULTILINE
    )
    named = [name for names, note in rows for name in re.findall(r"\w+", names) if len(note) > 5]
    assert sorted(named) == sorted(optree.__all__)


@pytest.mark.parametrize("name", optree.__all__)
def test_every_name_of_ours_is_there(name: str) -> None:
    """pydag has each name, and it is the one that the page's rule, or the name's row, gives."""
    if name == "MAX_RECURSION_DEPTH":
        assert not hasattr(pydag, name)
        return
    ours = our_name(name)
    rule = re.sub("^tree", "dag", name).replace("pytree", "pydag")
    assert ours == rule or f"`{name}` | `{ours}`" in PAGE.read_text("utf-8") or name == "PyTreeDef"
    assert hasattr(pydag, ours)


@pytest.mark.parametrize("theirs", list(script().MODULES))
def test_every_module_of_ours_has_their_names(theirs: str) -> None:
    """Each public name of a module of optree's is in ours, under pydag's name for it."""
    ours = script().MODULES[theirs][0]
    for library in ("attrs", "jax", "torch"):
        if theirs.endswith(f".{library}"):
            pytest.importorskip(library)
    names = set(importlib.import_module(theirs).__all__) - {"PyTreeDef"}
    missing = {name for name in names if not hasattr(importlib.import_module(ours), our_name(name))}
    assert missing == set()
