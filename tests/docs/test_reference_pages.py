# SPDX-License-Identifier: Apache-2.0
"""The pages that `make docs` makes: the reference has every public name, the menu every page."""

import importlib
import re
from pathlib import Path
from typing import Any, get_origin

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "reference").glob("*.md"))
NAMES = [
    name for page in PAGES for name in re.findall(r"^::: (\S+)$", page.read_text("utf-8"), re.M)
]


def resolve(name: str) -> Any:
    """The object of this dotted name; its module is imported first."""
    package, _, attribute = name.rpartition(".")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return getattr(importlib.import_module(package), attribute)


@pytest.mark.parametrize("name", NAMES)
def test_what_the_reference_shows_is_there(name: str) -> None:
    """Each name on a page is one that can be imported."""
    for library in ("attrs", "jax", "torch"):
        if name.startswith((f"pydag.integrations.{library}", f"pydag.{library}interop")):
            pytest.importorskip(library)
    assert resolve(name) is not None


@pytest.mark.parametrize(
    ("package", "needed"),
    [
        ("pydag", "pydag"),
        ("pydag.files", "pydag"),
        ("pydag.integrations.torch", "torch"),
        ("pydag.jaxinterop", "jax"),
    ],
)
def test_the_reference_has_every_public_name(package: str, needed: str) -> None:
    """What is public, and not optree's own, stands on one page, once."""
    pytest.importorskip(needed)
    module = importlib.import_module(package)
    public = {
        f"{package}.{name}"
        for name in module.__all__
        if callable(thing := getattr(module, name))
        and get_origin(thing) is None
        and not (getattr(thing, "__module__", "") or "").startswith("optree")
    }
    assert public - set(NAMES) == set()
    assert len(NAMES) == len(set(NAMES))


def test_the_menu_has_every_page() -> None:
    """No page is written that nobody can find, and none is listed that isn't there."""
    listed = re.findall(r"^ +- .*?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.M)
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert set(listed) == pages
    assert len(listed) == len(pages)
