# SPDX-License-Identifier: Apache-2.0
"""Arguments that are to be updated, in which nothing can be changed."""

import types
from collections.abc import Callable, Iterable
from typing import Any

from pydag.jaxinterop.foreign.equinox_private import is_equinox_module
from pydag.jaxinterop.messages.naming import Source
from pydag.jaxinterop.packed.given import GivenTree
from pydag.jaxinterop.packed.writers import writer_of
from pydag.jaxinterop.prefixes.arguments import Spot, roots_of
from pydag.jaxinterop.static.differentiable import is_ref
from pydag.structure.listing import Record

_NOT_FROZEN = types.SimpleNamespace(frozen=False)
_FIXED = ("leaf", "None", "tuple", "namedtuple", "struct sequence", "frozendict")


def warn_of_unchangeable(
    given: GivenTree, spots: Iterable[Spot], fun: Callable[..., Any] | Source
) -> None:
    """Warns of arguments in which there is no object that a function could change.

    Args:
        given: All arguments.
        spots: Those that are updated.
    """
    listing = given.listing
    leaves = dict(zip(listing.leaves, given.leaves, strict=True))
    static = {listing.leaves[i] for i in given.untraced.positions}
    for spot in spots:
        nodes = listing.below(*roots_of(listing, [spot]))
        arrays = [leaves[i] for i in nodes if i in leaves and i not in static]
        if any(_can_change(listing.records[i]) for i in nodes) or all(map(is_ref, arrays)):
            continue
        option = "update_argnums" if isinstance(spot, int) else "update_argnames"
        root = f"args[{spot}]" if isinstance(spot, int) else f"kwargs[{spot!r}]"
        root_record = listing.records[listing.target(next(roots_of(listing, [spot])))]
        what = "an array" if root_record.is_leaf else f"an instance of {root_record.type.__name__}"
        source = fun if isinstance(fun, Source) else Source(fun)
        source.warn(
            f"{option} names {root} of {source.text}, in which nothing can be changed: it is "
            f"{what}\n"
            "  Only changes of objects, such as an attribute of a module or an item of a dict, are "
            "written into the caller's. Return the new value, without naming the argument there.",
            UserWarning,
        )


def _can_change(record: Record) -> bool:
    if record.kind not in ("fields", "custom type"):
        return record.kind not in _FIXED
    cls = record.type
    if is_equinox_module(cls) or getattr(cls, "__dataclass_params__", _NOT_FROZEN).frozen:
        return False
    return record.kind == "fields" or writer_of(cls) is not None
