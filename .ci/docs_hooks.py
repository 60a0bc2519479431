# SPDX-License-Identifier: Apache-2.0
"""What `make docs` does to the pages: links to files beside docs/ become the names of the files.

The pages are read in the repository, too, where those links lead somewhere.
"""

import re
from typing import Any

OUTSIDE = re.compile(r"\[([^\]]*)\]\(\.\./([^)]*)\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for each page."""
    return OUTSIDE.sub(lambda link: f"{link[1]} (`{link[2]}`)", markdown)
