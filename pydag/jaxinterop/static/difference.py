# SPDX-License-Identifier: Apache-2.0
"""Where two DAGs differ but for their arrays, in words."""

from typing import Any

import pydag._core as _core
from pydag.jaxinterop.messages.roots import Roots, place_text
from pydag.structure.text import short_repr

from .untraced import Untraced


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
