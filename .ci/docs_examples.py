# SPDX-License-Identifier: Apache-2.0
"""Examples in docstrings stand there as doctest wants them; on the pages they are code."""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> .*\n?(?:^.+\n?)*", re.MULTILINE)


class Examples(griffe.Extension):
    """Puts a fence around each example."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called by griffe for each object that it has read."""
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(
                lambda example: f"```pycon\n{example[0].rstrip()}\n```\n", obj.docstring.value
            )
