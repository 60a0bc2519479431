# SPDX-License-Identifier: Apache-2.0
"""Why a call needs another compilation than those before, in words."""

import logging
import re
from collections.abc import Iterable
from typing import Any, cast

import jax

import pydag._core as _core
from pydag.jaxinterop.messages.naming import Source
from pydag.jaxinterop.prefixes.treatments import shortened
from pydag.jaxinterop.static.untraced import Untraced
from pydag.structure.text import short_repr

_logger = logging.getLogger("pydag.jaxinterop")


def why(first: Untraced, second: Untraced) -> str:
    """Where the arguments of two calls differ, in words."""
    text: str = _core.explain(first.spec, second.spec, exactly=True)
    if not text:
        paths = first.spec.accessors()
        one, other = (dict(zip(f.positions, f.statics, strict=True)) for f in (first, second))
        text = "\n".join(
            f"{paths[i].codify('tree')}\n  first:  {_shown(one, i)}\n  second: {_shown(other, i)}"
            for i in sorted(one.keys() | other.keys())
            if one.get(i) != other.get(i)
        )
    return shortened(
        re.sub(r"\btree\[([01])\]", lambda m: ("args", "kwargs")[int(m[1])], text), 1600
    )


def _shown(statics: dict[int, Any], position: int) -> str:
    return short_repr(statics[position].inner) if position in statics else "an array"


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
