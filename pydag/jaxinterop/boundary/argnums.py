# SPDX-License-Identifier: Apache-2.0
"""By which leaves a call is differentiated: `argnums` names arguments, `wrt` selects in them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import optree

from pydag.jaxinterop.messages.roots import place_text, shortened
from pydag.jaxinterop.notices.blame import type_text
from pydag.jaxinterop.notices.parallel_copies import Divided, divided
from pydag.jaxinterop.prefixes.arguments import Args, as_numbers
from pydag.jaxinterop.prefixes.treatments import COPIES, Question
from pydag.jaxinterop.static.differentiable import is_differentiable, is_ref, shape_of
from pydag.jaxinterop.static.state_variables import are_state
from pydag.jaxinterop.static.untraced import Untraced
from pydag.ops.select import select, where_there
from pydag.structure.text import short_repr
from pydag.typing import Leaf, Where

QUESTION = Question(
    "argnums",
    lambda by: "differentiated" if by else "not differentiated",
    "Differentiate by both arguments, or give one of them a copy; or differentiate by both, and "
    f"take jax.lax.stop_gradient of one inside.\n  {COPIES}",
)


class Argnums(NamedTuple):
    """The arguments to differentiate by, as they were given."""

    numbers: tuple[int, ...]
    is_one: bool

    @classmethod
    def of(cls, argnums: int | Iterable[int]) -> "Argnums":
        return cls(as_numbers(argnums), not isinstance(argnums, Iterable))

    def counted(self, count: int) -> tuple[int, ...]:
        """The numbers counted from the front, for a call with so many positional arguments."""
        for number in self.numbers:
            if not -count <= number < count:
                raise TypeError(
                    f"can't differentiate by the positional argument {number}: the function was "
                    f"called with {count} positional arguments"
                )
        return tuple(number % count for number in self.numbers)


def select_among(
    untraced: Untraced,
    leaves: Sequence[Leaf],
    can: Sequence[bool],
    wrt: Where,
    depth: int = 0,
    must_match: bool = True,
) -> list[bool]:
    """Whether each traced leaf is selected. Predicates are asked of those that can be, alone.

    Args:
        leaves: The traced ones.
        can: Whether each of them may be selected.
        depth, must_match: As in `pydag.ops.select.select`.
    """
    positions, shown = untraced.traced_positions(), [None] * untraced.spec.num_leaves
    for position, leaf, may_be in zip(positions, leaves, can, strict=True):
        shown[position] = leaf if may_be else None
    found = select(
        where_there(wrt),
        untraced.spec,
        shown,
        untraced.options.namespace,
        depth=depth,
        must_match=must_match,
    )
    return [found[position] for position in positions]


class WantedArguments:
    """The arguments that `argnums` names, as one tree, of which some leaves are differentiated by.

    Args:
        numbers: Those of the arguments, counted from the front.
        depth: 1 if the tree is the tuple of these arguments, 0 if it is the only one.
        untraced, leaves: The tree, taken apart.
    """

    def __init__(
        self, numbers: Sequence[int], depth: int, untraced: Untraced, leaves: Sequence[Leaf]
    ) -> None:
        self.numbers, self.depth = numbers, depth
        self.untraced, self.leaves = untraced, leaves

    def check_arrays(self, args: Args) -> None:
        """Raises a TypeError if the arguments hold nothing that JAX takes for an array."""
        if self.leaves or not self.untraced.positions:
            return
        shown = shortened(", ".join(short_repr(args[i]) for i in self.numbers))
        raise TypeError(
            f"there is nothing to differentiate by: {self._names()} holds no array and no number "
            f"that is data, {shown}\n"
            "  Pass the arrays in a list, a dict or an object of a registered class, such as "
            "list(params.values()) for a view; or name another argument by argnums."
        )

    def divided(self, wrt: Where | None, allow_int: bool) -> Divided | None:
        """Where `wrt` takes a leaf in one of several parallel copies."""
        if wrt is None or not self.untraced.spec.num_shared:
            return None
        can = [False] * self.untraced.spec.num_leaves
        for position, leaf in zip(self.untraced.traced_positions(), self.leaves, strict=True):
            can[position] = _can(leaf, True, allow_int)
        roots = [f"args[{number}]" for number in self.numbers]
        return divided(wrt, self.untraced.spec, can, self.depth, roots)

    def choose(self, wrt: Where | None, allow_int: bool) -> list[bool]:
        """Whether each traced leaf is differentiated by.

        Args:
            wrt: What is selected; None: all but refs, and what is state.
            allow_int: Whether integers can be differentiated by.

        Raises:
            TypeError: Nothing is left to differentiate by.
            ValueError: `wrt` doesn't fit: a pattern that no path matches, a prefix of another form.
        """
        can = [_can(leaf, wrt is not None, allow_int) for leaf in self.leaves]
        return self._by_default(can) if wrt is None else self._selected(wrt, can)

    def path(self, accessor: optree.PyTreeAccessor) -> str:
        """The path of a leaf of these arguments, such as `args[0]['w']`."""
        first = self.numbers[accessor[0].entry if self.depth else 0]
        return place_text(accessor[self.depth :], f"args[{first}]")

    def _by_default(self, can: Sequence[bool]) -> list[bool]:
        if not any(can):
            if self.leaves and all(map(is_ref, self.leaves)):
                raise TypeError(
                    f"there is nothing to differentiate by: {self._names()} holds refs alone, "
                    "which are passed over\n"
                    "  Select some by wrt=, and the derivative is by their contents."
                )
            return [True] * len(can)  # JAX says what it is that it can't differentiate by
        state = are_state(self.untraced.spec, self.untraced.traced_positions())
        chosen = [a and not b for a, b in zip(can, state, strict=True)]
        if not any(chosen):
            raise TypeError(
                "there is nothing to differentiate by: all that has a derivative is held by "
                "Variables that are no nnx.Param, which are state\n"
                "  Select what is meant by wrt=, such as wrt=nnx.Variable."
            )
        return chosen

    def _selected(self, wrt: Where, can: Sequence[bool]) -> list[bool]:
        if not self.leaves:
            return []
        found = select_among(self.untraced, self.leaves, can, wrt, self.depth)
        chosen = [a and b for a, b in zip(found, can, strict=True)]
        if not any(chosen):
            raise TypeError(
                "there is nothing to differentiate by: wrt selects no number or array of a type "
                f"that has a derivative\n  selected: {self._described(found, True)}\n"
                f"  there is: {self._described(found, False)}"
            )
        return chosen

    def _described(self, selected: Sequence[bool], wanted: bool) -> str:
        """The leaves that are selected, or those that aren't, with paths and types."""
        accessors, positions = self.untraced.spec.accessors(), self.untraced.traced_positions()
        found = [
            f"{self.path(accessors[position])}: {type_text(leaf)}"
            for position, leaf, is_selected in zip(positions, self.leaves, selected, strict=True)
            if is_selected is wanted
        ]
        more = f" and {len(found) - 8} more" if len(found) > 8 else ""
        return ", ".join(map(shortened, found[:8])) + more or "nothing"

    def _names(self) -> str:
        return " and ".join(f"args[{i}]" for i in self.numbers)


def _can(leaf: Leaf, is_asked_for: bool, allow_int: bool) -> bool:
    """Whether a leaf can be differentiated by; a ref only if it is selected."""
    if is_ref(leaf):
        return is_asked_for and is_differentiable(shape_of(leaf), allow_int)
    return is_differentiable(leaf, allow_int)
