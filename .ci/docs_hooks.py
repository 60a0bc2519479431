# SPDX-License-Identifier: Apache-2.0
"""What `make docs` does to the pages.

Links to files beside docs/ become the names of the files: the pages are read in the repository,
too, where those links lead somewhere. Nothing is loaded from elsewhere. The head has the version,
and a page that belongs to no group has no menu beside it, which would name that page alone.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.utils import get_relative_url

OUTSIDE = re.compile(r"\[([^\]]*)\]\(\.\./([^)]*)\)")
LOADED = "https://unpkg.com/iframe-worker/shim"


def on_config(config: Any, **_: Any) -> None:
    """Called by mkdocs before it reads anything."""
    source = Path(__file__).parents[1] / "pydag" / "__init__.py"
    version = re.search(r'^__version__ = "(.*)"', source.read_text("utf-8"), re.MULTILINE)
    assert version is not None
    config["site_name"] += f" {version[1]}"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by mkdocs for each page."""
    if page.parent is None:
        page.meta["hide"] = ["navigation"]
    return OUTSIDE.sub(lambda link: f"{link[1]} (`{link[2]}`)", markdown)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Called by mkdocs for each finished page."""
    return output.replace(LOADED, get_relative_url("offline_search.js", page.url))


def on_post_template(output_content: str, **_: Any) -> str:
    """Called by mkdocs for what is no page: 404.html."""
    return output_content.replace(LOADED, "/offline_search.js")
