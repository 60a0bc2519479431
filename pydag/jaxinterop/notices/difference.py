# SPDX-License-Identifier: Apache-2.0
"""Why a function is traced again: where its arguments differ from those of earlier calls."""

import logging
from collections.abc import Sequence
from typing import Any, cast

import jax

import pydag._core as _core
from pydag.jaxinterop.content.content import Content
from pydag.jaxinterop.content.paths import CALL, Roots, path_texts
from pydag.structure.text import short_repr

from .source import Source

_logger = logging.getLogger("pydag.jaxinterop")


def difference(first: Content, second: Content, roots: Roots = CALL) -> str:
    """Where two trees differ in more than arrays, with both sides; empty if they don't."""
    if first == second:
        return ""
    if first.key != second.key or first.positions != second.positions:
        found = _core.explain(first.spec, second.spec, True, roots)
        return found or f"  first:  {first!r}\n  second: {second!r}"
    texts = path_texts(first.spec, roots)
    lines = [
        f"{texts[i]}\n  first:  {short_repr(a)}\n  second: {short_repr(b)}"
        for i, a, b in zip(first.positions, first.values, second.values, strict=True)
        if not _core.is_same_value(a, b)
    ]
    return "\n".join(lines)


def explain_miss(source: Source, content: Content, known: Sequence[Content]) -> None:
    """Logs what differs from the nearest earlier call, where JAX explains its cache misses."""
    if not known or not cast(Any, jax.config).jax_explain_cache_misses:
        return
    shown = min((difference(before, content) for before in known), key=len)
    _logger.warning("%s is traced again: its arguments differ\n%s", source.text, shown)
