# SPDX-License-Identifier: Apache-2.0
"""The paths of the leaves of a structure, as texts.

JAX asks for them whenever it traces, and so at every call of a function that isn't compiled. A
structure that comes again while it lives is the same object, as the core remembers it; so its texts
are kept as long as the structure lives.
"""

from collections.abc import Sequence

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.registry.weak_table import WeakTable

from .roots import LONGEST, Roots, shortened

MOST_LEAVES = 20_000  # the texts of a larger structure aren't kept

# By what a structure is: equal ones may differ in how a key is written, such as 1 and True.
_known: WeakTable[dict[Roots, Sequence[str]]] = WeakTable()


class LastStructure:
    """Keeps the structure alive that a function was called with last, for its next call."""

    spec: PyDagSpec | None = None


def path_texts(spec: PyDagSpec, roots: Roots) -> Sequence[str]:
    """The path of each leaf as Python text, such as `args[0]['layers'][3].w`.

    Args:
        roots: Begins the paths.
    """
    if spec.num_leaves > MOST_LEAVES:
        return _texts(spec, roots)
    texts = _known.get(spec, None)
    if texts is None:
        texts = {}
        _known.set(spec, texts)
    found = texts.get(roots)
    if found is None:
        found = texts[roots] = _texts(spec, roots)
    return found


def _texts(spec: PyDagSpec, roots: Roots) -> Sequence[str]:
    texts = _core.path_texts(spec, roots)
    # Nearly all are short, and their lengths are found faster than a function is called.
    return [shortened(text) if len(text) > LONGEST else text for text in texts]
