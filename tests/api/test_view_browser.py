# SPDX-License-Identifier: Apache-2.0
"""The HTML of a view, looked at in a browser."""

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import pydag
from pydag import view

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)

# What somebody does with the page; it is added to it, and leaves what it saw in the title.
VISIT = """<script>
function seen(e) { return e.checkVisibility(); }
const report = {};
const folded = document.querySelectorAll("details:not([open])");
report.folded = folded.length;
const inner = folded[0].querySelector(":scope > *:not(summary)");
report.before = seen(inner);
folded[0].querySelector("summary").click();
report.unfolded = seen(inner);
folded[0].querySelector("summary").click();
report.refolded = seen(inner);
const alias = [...document.querySelectorAll("a")].find(a => a.textContent === "*0");
const anchor = document.getElementById(alias.getAttribute("href").slice(1));
report.anchorBefore = seen(anchor);
alias.click();
report.anchorAfter = seen(anchor);
report.anchorText = anchor.textContent;
report.hash = location.hash === alias.getAttribute("href");
report.target = document.querySelector("a:target") === anchor;
anchor.click();
report.back = document.querySelector("a:target") === alias;
report.images = document.querySelectorAll("img, b").length;
document.title = JSON.stringify(report);
</script>"""


def visited(path: Path, profile: Path) -> Any:
    """What the page saw of its visitor."""
    assert BROWSER is not None
    done = subprocess.run(
        [BROWSER, *OPTIONS, f"--user-data-dir={profile}", "--dump-dom", path.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={name: value for name, value in os.environ.items() if name != "LD_PRELOAD"},
    )
    found = re.search("<title>(.*)</title>", done.stdout)
    assert found is not None
    return json.loads(html.unescape(found[1]))


@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
def test_unfolding_and_following_an_alias(tmp_path: Path) -> None:
    """In a browser a node unfolds, and a click on an alias opens and marks its anchor."""
    shared = {"inner": [1, 2], "<img src=x>": "<b>bold</b>"}
    tree = {"a": {"deep": {"deeper": {"deepest": shared}}}, "b": [shared]}
    page = tmp_path / "view.html"
    view(tree).save(page)
    page.write_text(page.read_text("utf-8").replace("</body>", VISIT + "</body>"), "utf-8")
    assert visited(page, tmp_path / "profile") == {
        "folded": 4,
        "before": False,
        "unfolded": True,
        "refolded": False,
        "anchorBefore": False,
        "anchorAfter": True,
        "anchorText": "&0",
        "hash": True,
        "target": True,
        "back": True,
        "images": 0,
    }


def test_a_view_is_whole_without_a_browser() -> None:
    """The piece has its style and its script within."""
    text = view([1, pydag.dag_copy([2])])._repr_html_()
    assert text.count("<script>") == text.count("<style>") == 1
