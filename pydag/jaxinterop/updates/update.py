# SPDX-License-Identifier: Apache-2.0
"""Arguments that a function changes, as the caller sees it: `update_argnums`, `update_argnames`.

What changes is found when the function is traced. New arrays are returned beside the result, and
written into the caller's objects at the end of a call.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from jax import tree_util

import pydag._core as _core
from pydag.jaxinterop.messages.naming import Source
from pydag.jaxinterop.messages.roots import CALL
from pydag.jaxinterop.notices.lost_update import tell_lost_change
from pydag.jaxinterop.packed.given import GivenTree
from pydag.jaxinterop.packed.writers import writer_of
from pydag.jaxinterop.prefixes.arguments import Args, Chosen, Kwargs, roots_of
from pydag.typing import Leaf

from .choice import NOTHING

T = TypeVar("T")


class Update(NamedTuple):
    """What a call writes into its arguments.

    Args:
        plan: Says where; None where nothing changed.
        leaves: The arrays that are written.
        positions: Where these stand among the leaves of the call.
    """

    plan: Any = None
    leaves: tuple[Leaf, ...] = ()
    positions: tuple[int, ...] = ()

    def beside(self, result: Any) -> Any:
        """What JAX gets for a result; `finished` writes what stands beside it."""
        return _core.make_updated(None, (result, self.plan, self.leaves))

    @classmethod
    def of(cls, returned: Any) -> "Update":
        """The update that stands beside a result."""
        if type(returned) is not _core.Updated:
            return cls()
        _, plan, leaves = _core.open_updated(returned)
        return cls(plan, tuple(leaves))


tree_util.register_pytree_node(
    _core.Updated,
    lambda updated: (_core.open_updated(updated), None),
    _core.make_updated,
)
tree_util.register_pytree_node(_core.UpdatePlan, lambda plan: ((), plan), _core.keep_plan)


def result_of(returned: Any) -> Any:
    """What a function returned, without what it writes."""
    return _core.open_updated(returned)[0] if type(returned) is _core.Updated else returned


def finished(returned: Any, call: tuple[Args, Kwargs], build: Callable[[Any], T]) -> T:
    """Builds the result of a call, and then writes what stands beside it.

    Args:
        call: The caller's arguments.
        build: Makes the result of what JAX returned for it. If it fails, nothing is written.
    """
    result = build(result_of(returned))
    if type(returned) is not _core.Updated:
        return result
    own: T = _core.update_arguments(returned, call, result)
    return own


_NOTHING_WRITTEN = Update()


def update_of(
    given: GivenTree,
    chosen: Chosen | None,
    result: Any,
    fun: Callable[..., Any] | Source,
    is_staged: bool = False,
) -> Update:
    """What is written into the arguments of a call.

    Warns of changes elsewhere, which are lost, and of arguments in which nothing can be changed.

    Args:
        given: The arguments, as the function left them.
        chosen: Those that are updated; None in a wrapper that can't update any.
        is_staged: Whether the function is traced once, for many calls. Then it is found out here
            that all can be written.

    Raises:
        ValueError: The structure of an argument, or a static leaf, isn't as it was.
        SharingError: What it shares isn't as it was.
        TypeError: An object would have to change that can't be written.
    """
    args, kwargs = given.tree
    spots = NOTHING.spots(args, kwargs) if chosen is None else chosen.spots(args, kwargs)
    changed = given.changed(must_flatten=bool(spots))
    if changed is not None:
        after = changed.listing
        updated = set(after.below(*roots_of(after, spots)))
        tell_lost_change(
            changed,
            result,
            fun,
            lambda written: after.target(written.position) in updated,
            has_option=chosen is not None,
        )
    if not spots:
        return _NOTHING_WRITTEN
    # Here: most functions update nothing.
    from pydag.jaxinterop.notices.unchangeable import warn_of_unchangeable

    from .comparison import UpdatedArguments

    warn_of_unchangeable(given, spots, fun)
    call = UpdatedArguments(given, spots)
    returned = call.returned(result)
    if changed is None and returned is None:
        return Update()
    written = call.compare() if changed is not None else {}
    if is_staged:
        call.check_staged(written)
    if changed is not None:
        call.check_ties(changed)
    if not (written or returned):
        return Update()
    positions = tuple(sorted(written))
    plan = _core.update_plan(
        spec=given.untraced.spec,
        positions=positions,
        static_positions=(),
        statics=(),
        writers=writer_of,
        then=None,
        returned=returned,
        roots=CALL,
    )
    leaves = tuple(written[position] for position in positions)
    if is_staged:
        _core.carry_out(plan, _core.unflatten(given.untraced.spec, given.leaves), leaves)
    return Update(plan, leaves, positions)
