# SPDX-License-Identifier: Apache-2.0
"""Why a call needs another compilation than those before, in words."""

import logging
from collections.abc import Iterable
from typing import Any, cast

import jax

from pydag.jaxinterop.messages.naming import Source
from pydag.jaxinterop.messages.roots import CALL
from pydag.jaxinterop.prefixes.treatments import shortened
from pydag.jaxinterop.static.difference import difference
from pydag.jaxinterop.static.untraced import Untraced

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
