# SPDX-License-Identifier: Apache-2.0
"""Why a call needs another compilation than those before, in words."""

import logging
from collections.abc import Iterable
from typing import Any, cast

import jax

import pydag._core as _core
from pydag.jaxinterop.messages.naming import Source
from pydag.jaxinterop.messages.roots import CALL, Roots, place_text, shortened
from pydag.jaxinterop.static.untraced import Untraced
from pydag.structure.text import short_repr

_logger = logging.getLogger("pydag.jaxinterop")


def why(first: Untraced, second: Untraced) -> str:
    """Where the arguments of two calls differ, in words."""
    return shortened(difference(first, second, CALL), 1600)


def explain_cache_miss(source: Source, new: Untraced, seen: Iterable[Untraced]) -> None:
    """Logs how the arguments differ from the most similar ones seen before, if JAX is asked to.

    JAX, which is given leaves and a key, explains other shapes and types itself; of the key it says
    no more than that something differs.
    """
    if not cast(Any, jax.config).jax_explain_cache_misses:
        return
    texts = [why(old, new) for old in seen]
    if texts:
        _logger.warning(
            "TRACING CACHE MISS: %s is called with arguments of another structure, sharing or "
            "static content than before. Compared with the most similar ones:\n"
            "  (first: before, second: now)\n%s",
            source.text,
            min(texts, key=len),
        )


def difference(first: Untraced, second: Untraced, roots: Roots) -> str:
    """The places at which the structures differ; or else those of the static leaves that do.

    Args:
        roots: Begin the paths.
    """
    text: str = _core.explain(first.spec, second.spec, exactly=True, roots=roots)
    if text:
        return text
    paths = first.spec.accessors()
    one, other = (dict(zip(x.positions, x.statics, strict=True)) for x in (first, second))
    return "\n".join(
        f"{place_text(paths[i], roots)}\n  first:  {_shown(one, i)}\n  second: {_shown(other, i)}"
        for i in sorted(one.keys() | other.keys())
        if one.get(i) != other.get(i)
    )


def _shown(statics: dict[int, Any], position: int) -> str:
    return short_repr(statics[position].inner) if position in statics else "an array"
