# SPDX-License-Identifier: Apache-2.0
"""How equinox opens and builds its modules, which it doesn't promise: found out by trying."""

import functools
import sys
from typing import Any

from pydag.registry.classes import inherits

from .jax_private import registry


@functools.cache
def _opens_by_fields_in_equinox() -> bool:
    equinox: Any = sys.modules["equinox"]

    class Known(equinox.Module):  # type: ignore[misc]  # untyped base
        data: Any
        meta: Any = equinox.field(static=True)

    entry = registry[Known]
    children, aux_data = entry.to_iter(Known(1, 2))
    built = vars(entry.from_iter(aux_data, (3,)))
    return tuple(children) == (1,) and built == {"data": 3, "meta": 2}


def equinox_opens_by_fields() -> bool:
    """Whether equinox takes its modules for their fields and nothing else.

    False for a release that does otherwise, and while equinox is still being imported.
    """
    try:
        return _opens_by_fields_in_equinox()
    except Exception:  # pragma: no cover: another equinox
        return False


def is_equinox_module(cls: type) -> bool:
    """Whether a class is one of equinox's modules, whose instances are frozen."""
    module = getattr(sys.modules.get("equinox"), "Module", None)
    return isinstance(module, type) and inherits(cls, module)


def is_placeholder(cls: type, name: str) -> bool:
    """Whether instances of a class are what equinox puts at a leaf.

    Args:
        name: `SharedNode`, which stands in an `eqx.nn.Shared` and holds nothing; or `_LeafWrapper`,
            by which `eqx.tree_at` finds a leaf again.
    """
    places = {"SharedNode": "equinox.nn._shared", "_LeafWrapper": "equinox._tree"}
    return cls is getattr(sys.modules.get(places[name]), name, None)
