# SPDX-License-Identifier: Apache-2.0
"""Why a function is traced again: where its arguments differ from those of earlier calls."""

import itertools
import logging
from collections.abc import Sequence
from typing import Any, cast

import jax
import numpy as np

import pydag._core as _core
from pydag.jaxinterop.content.content import Content
from pydag.jaxinterop.content.leaves import is_number
from pydag.jaxinterop.content.options import CALL, Roots, path_texts
from pydag.jaxinterop.naming import Source
from pydag.structure.text import short_repr

_TRACES = 4  # are compared
_logger = logging.getLogger("pydag.jaxinterop")


def difference(first: Content, second: Content, roots: Roots = CALL) -> str:
    """Where two trees differ in more than arrays, with both sides; empty if they don't."""
    if first == second:
        return ""
    if first.key != second.key or first.positions != second.positions:
        found = _core.explain(first.spec, second.spec, True, roots)
        return found or f"  first:  {first!r}\n  second: {second!r}"
    texts = path_texts(first.spec, roots)
    return "\n".join(
        f"{texts[i]}\n  first:  {short_repr(a)}\n  second: {short_repr(b)}"
        for i, a, b in zip(first.positions, first.values, second.values, strict=True)
        if not _core.is_same_value(a, b)
    )


def explain_miss(source: Source, content: Content, known: Sequence[Content]) -> None:
    """Logs what differs from the nearest earlier call, where JAX explains its cache misses."""
    if not known or not cast(Any, jax.config).jax_explain_cache_misses:
        return
    shown = min((difference(before, content) for before in known), key=len)
    _logger.warning("%s is traced again: its arguments differ\n%s", source.text, shown)


def has_changing_number(source: Source, contents: Sequence[Content]) -> bool:
    """Whether a number of the arguments changed in each of the last three traces. Warns of it."""
    last, content = contents[-_TRACES:], contents[-1]
    alike = all(c.key == content.key and c.positions == content.positions for c in last)
    if len(last) < _TRACES or not alike:
        return False
    for i, position in enumerate(content.positions):
        values = [c.values[i] for c in last]
        changes = not any(itertools.starmap(_core.is_same_value, itertools.pairwise(values)))
        # A flag, which has two values, doesn't compile again and again.
        are_counts = all(is_number(x) and not isinstance(x, bool | np.bool_) for x in values)
        if changes and are_counts:
            source.warn(
                f"{source.text} is compiled anew for each value of "
                f"{path_texts(content.spec, CALL)[position]}, a number of a module: "
                f"{', '.join(map(short_repr, values))}\n  A module's numbers are static. Make "
                "it an array: jnp.asarray(value); one that isn't to be trained is an argument of "
                "its own, or left out by wrt=.",
                UserWarning,
            )
            return True
    return False
