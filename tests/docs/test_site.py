# SPDX-License-Identifier: Apache-2.0
"""The site that `make docs` writes, in a browser, without a network."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=20000"),
)

# What somebody does who looks for a function; it is added to the page.
SEARCH = """<script>
window.addEventListener("load", () => setTimeout(() => {
  const input = document.querySelector("[data-md-component=search-query]");
  input.focus();
  input.value = "%s";
  for (const kind of ["input", "keyup"]) input.dispatchEvent(new Event(kind, {bubbles: true}));
}, 2000));
</script>"""

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(
        importlib.util.find_spec("mkdocs") is None, reason="the group docs is not installed"
    ),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does."""
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        check=True,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        timeout=300,
    )
    return folder


def looked_at(page: Path, profile: Path) -> str:
    """What the page is after its scripts have run."""
    assert BROWSER is not None
    command = [BROWSER, *OPTIONS, f"--user-data-dir={profile}", "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")
@pytest.mark.parametrize(("word", "page"), [("untie", "reference/sharing"), ("donated", "jax")])
def test_search_finds(site: Path, tmp_path: Path, word: str, page: str) -> None:
    """The search gives the pages that speak of a word, read from disk, without a network."""
    home = (site / "index.html").read_text("utf-8")
    looked = site / f"looked_for_{word}.html"
    looked.write_text(home.replace("</body>", SEARCH % word + "</body>"), "utf-8")
    found = re.findall(r'href="([^"]*\?h=[^"]*)"', looked_at(looked, tmp_path))
    assert [link for link in found if f"/{page}.html" in link], found


LOADS = re.compile(r'<(?:script|img|iframe|source|link)\b[^>]*\b(?:src|href)="https?:[^"]*"')


def test_nothing_is_fetched(site: Path) -> None:
    """No page loads a script, a style, a font or a picture from elsewhere."""
    pages = [*site.rglob("*.html")]
    assert len(pages) > 30
    loads = [load for page in pages for load in LOADS.findall(page.read_text("utf-8"))]
    assert [load for load in loads if 'rel="canonical"' not in load] == []


def test_each_option_is_named_and_its_type_leads_to_its_explanation(site: Path) -> None:
    """No signature says `**options` where the options are known; what they may be is a link."""
    pages = [
        page.read_text("utf-8")
        for page in (site / "reference").glob("*.html")
        if page.stem != "types"
    ]
    plain = [re.sub(r"<[^>]*>", "", page) for page in pages]
    assert not any("Unpack[" in page for page in plain)
    signatures = re.findall(r'doc-signature highlight">.*?</div>', "".join(pages), re.S)
    for name in ("IsLeaf", "Identity"):
        named = [signature for signature in signatures if re.search(rf"\b{name}\b", signature)]
        assert len(named) > 20
        for signature in named:
            assert f'href="types.html#pydag.typing.{name}"' in signature, signature
