# SPDX-License-Identifier: Apache-2.0
"""The arguments of a call divided into those that are differentiated by, and the others."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import optree

from pydag.jaxinterop.messages.naming import Source
from pydag.jaxinterop.messages.roots import CALL
from pydag.jaxinterop.prefixes.arguments import (
    Args,
    Chosen,
    Kwargs,
    argument_text,
    as_numbers,
    by_argument,
    joined,
)
from pydag.jaxinterop.prefixes.treatments import COPIES, LeafNumbers, Question, shortened
from pydag.jaxinterop.refs.access import is_top_level, new_ref
from pydag.jaxinterop.refs.contents import Lent, OutOfReachError, lending, may_lend
from pydag.jaxinterop.refs.table import RefNumber, RefTable
from pydag.jaxinterop.static.bare_arrays import without_bare
from pydag.jaxinterop.static.differentiable import is_differentiable, is_ref, shape_of
from pydag.jaxinterop.static.state_variables import are_state
from pydag.jaxinterop.static.untraced import Options, Untraced, take_apart, untraced_of
from pydag.ops.select import select, where_there
from pydag.structure.listing import Listing
from pydag.structure.text import short_repr
from pydag.typing import Leaf, Where

from .blame import blame_write, type_text
from .call import Call, argument_paths, kept_staged
from .dag import rebuilt
from .derivatives import Structures, derivative
from .updates import NOTHING, Update, result_of

QUESTION = Question(
    "argnums",
    lambda by: "differentiated" if by else "not differentiated",
    "Differentiate by both arguments, or give one of them a copy; or differentiate by both, and "
    f"take jax.lax.stop_gradient of one inside.\n  {COPIES}",
)


def _wanted(numbers: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Argument numbers counted from the front."""
    for number in numbers:
        if not -count <= number < count:
            raise TypeError(
                f"can't differentiate by the positional argument {number}: the function was "
                f"called with {count} positional arguments"
            )
    return tuple(number % count for number in numbers)


class Argnums(NamedTuple):
    """The arguments to differentiate by, as they were given."""

    numbers: tuple[int, ...]
    is_one: bool

    @classmethod
    def of(cls, argnums: int | Iterable[int]) -> "Argnums":
        return cls(as_numbers(argnums), not isinstance(argnums, Iterable))


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
        Listing.of(untraced.spec),
        shown,
        untraced.options.namespace,
        depth=depth,
        must_match=must_match,
    )
    return [found[position] for position in positions]


class Divided:
    """A call whose leaves are divided: `by` are those that are differentiated by.

    These are of the arguments `argnums`. Leaves of other types than JAX can differentiate by, and
    what `wrt` doesn't select, are passed through.

    Raises:
        SharingError: One that is differentiated by is in an argument that isn't meant, too.
        TypeError: There are arrays, but nothing to differentiate by.
        ValueError: `wrt` doesn't fit: a pattern that no path matches, a prefix of another form.
    """

    def __init__(
        self,
        argnums: Argnums,
        wrt: Where | None,
        args: Args,
        kwargs: Kwargs,
        options: Options,
        allow_int: bool = False,
    ) -> None:
        self.wanted = _wanted(argnums.numbers, len(args))
        whole, self.table = Call.told_apart(args, kwargs, options), RefTable()
        args, kwargs = whole.tree
        self.call = self.table.hide(whole, adds=True)
        self._is_staged = bool(self.table.refs) and not is_top_level()
        tree = args[self.wanted[0]] if argnums.is_one else tuple(args[i] for i in self.wanted)
        self._tree, self._depth = tree, 0 if argnums.is_one else 1
        self._structures: Structures | None = None
        is_whole = not kwargs and self.wanted == tuple(range(len(args)))
        if is_whole and options.static is None and not self.table.refs:
            numbers = None
            self.untraced, self._own = take_apart(tree, options)
            places: Sequence[int] = range(len(self._own))
        else:
            numbers = LeafNumbers(whole._untraced.spec)
            self.untraced, self._own = self._own_part(tree, numbers, whole)
            places = self._places(numbers)
        self.untraced.check_not_lazy("differentiated by", self._path)
        if not self._own and self.untraced.positions:
            raise TypeError(self._no_arrays(args))
        can = [self._can(leaf, wrt is not None, allow_int) for leaf in self._own]
        chosen = self._trained(can) if wrt is None else self._selected(wrt, can)
        # For each leaf of the wanted arguments its place in the call; for a ref its number.
        self._chosen: list[int | None] = []
        self._chosen_refs: list[int | None] = []
        for place, leaf, is_by in zip(places, self._own, chosen, strict=True):
            number = self.table.number(leaf) if is_by and is_ref(leaf) else None
            self._chosen_refs.append(number)
            self._chosen.append(place if is_by and place >= 0 else None)
        picked = {place for place in self._chosen if place is not None}
        if numbers is not None and not is_whole:
            self._check_others(numbers, picked, args, kwargs)
        leaves = self.call._leaves
        self.picked = sorted(picked)
        self.refs = sorted({number for number in self._chosen_refs if number is not None})
        """Numbers of the refs whose contents are differentiated by."""
        self.by = [leaves[i] for i in self.picked] + [self.table.refs[i][...] for i in self.refs]
        self.others = [leaf for i, leaf in enumerate(leaves) if i not in picked]

    @staticmethod
    def _can(leaf: Leaf, is_asked_for: bool, allow_int: bool) -> bool:
        """Whether a leaf can be differentiated by; refs only if they are selected."""
        if is_ref(leaf):
            return is_asked_for and is_differentiable(shape_of(leaf), allow_int)
        return is_differentiable(leaf, allow_int)

    def _wanted_numbers(self, numbers: LeafNumbers) -> list[int]:
        """The numbers of the leaves of the wanted arguments, among all of the call's."""
        args = numbers.children(numbers.children(0)[0])
        return numbers.below(*(args[i] for i in self.wanted))

    def _own_part(
        self, tree: Any, numbers: LeafNumbers, whole: Call
    ) -> tuple[Untraced, Sequence[Leaf]]:
        """The wanted arguments, taken apart. In them is static what is static in the call."""
        options = whole._untraced.options
        if options.static is None:
            return take_apart(tree, options)
        static = frozenset(whole._untraced.positions)
        own = self._wanted_numbers(numbers)
        positions = tuple(i for i, number in enumerate(own) if number in static)
        flattened, spec = options.flatten(tree)
        leaves = without_bare(flattened)
        untraced = untraced_of(leaves, spec, positions, options, "tree", positions)
        return untraced, [x for x, n in zip(leaves, own, strict=True) if n not in static]

    def _places(self, numbers: LeafNumbers) -> list[int]:
        """For each traced leaf of the wanted arguments which of the call's it is; -1 for refs."""
        own = self._wanted_numbers(numbers)
        places = {p: i for i, p in enumerate(self.call._untraced.traced_positions())}
        return [places.get(own[p], -1) for p in self.untraced.traced_positions()]

    def _check_others(
        self, numbers: LeafNumbers, picked: set[int], args: Args, kwargs: Kwargs
    ) -> None:
        wanted, options = frozenset(self.wanted), self.call._untraced.options
        given, named = numbers.children(0)
        others = [p for i, p in enumerate(numbers.children(given)) if i not in wanted]
        positions = self.call._untraced.traced_positions()
        by = {positions[place] for place in picked}
        if by.intersection(numbers.below(*others, named)):
            by_argument(args, kwargs, wanted.__contains__, QUESTION, options, by)

    def _trained(self, can: Sequence[bool]) -> list[bool]:
        """What is differentiated by where nobody says by what."""
        if not any(can):
            if self._own and all(map(is_ref, self._own)):
                raise TypeError(self._only_refs())
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

    def _only_refs(self) -> str:
        """The text of an error: there is nothing but refs."""
        places = " and ".join(f"args[{i}]" for i in self.wanted)
        return (
            f"there is nothing to differentiate by: {places} holds refs alone, which are passed "
            "over\n  Select some by wrt=, and the derivative is by their contents."
        )

    def _selected(self, wrt: Where, can: Sequence[bool]) -> list[bool]:
        if not self._own:
            return []
        found = select_among(self.untraced, self._own, can, wrt, self._depth)
        chosen = [a and b for a, b in zip(found, can, strict=True)]
        if not any(chosen):
            raise TypeError(self._nothing(found))
        return chosen

    def _no_arrays(self, args: Args) -> str:
        """The text of an error: the arguments hold nothing that JAX takes for an array."""
        places = " and ".join(f"args[{i}]" for i in self.wanted)
        shown = shortened(", ".join(short_repr(args[i]) for i in self.wanted))
        return (
            f"there is nothing to differentiate by: {places} holds no array and no number that is "
            f"data, {shown}\n"
            "  Pass the arrays in a list, a dict or an object of a registered class, such as "
            "list(params.values()) for a view; or name another argument by argnums."
        )

    def _nothing(self, selected: Sequence[bool]) -> str:
        """The text of an error: nothing that is selected can be differentiated by."""

        def described(wanted: bool) -> str:
            found = [
                f"{p}: {type_text(x)}"
                for (p, x), s in zip(own, selected, strict=True)
                if s is wanted
            ]
            more = f" and {len(found) - 8} more" if len(found) > 8 else ""
            return ", ".join(map(shortened, found[:8])) + more or "nothing"

        own = list(self._own_with_paths())
        return (
            "there is nothing to differentiate by: wrt selects no number or array of a type that "
            f"has a derivative\n  selected: {described(True)}\n  there is: {described(False)}"
        )

    def _own_with_paths(self) -> Iterator[tuple[str, Leaf]]:
        accessors = self.untraced.spec.accessors()
        for position, leaf in zip(self.untraced.traced_positions(), self._own, strict=True):
            yield self._path(accessors[position]), leaf

    def _path(self, accessor: optree.PyTreeAccessor) -> str:
        """The path of a leaf of the wanted arguments."""
        first = self.wanted[accessor[0].entry if self._depth else 0]
        return shortened(accessor[self._depth :].codify(f"args[{first}]"))

    def run(
        self,
        fun: Callable[..., Any],
        by: Sequence[Leaf],
        others: Sequence[Leaf],
        updated: Chosen = NOTHING,
    ) -> tuple[Any, Update, RefTable]:
        """What a function returns for the call with these leaves, and the refs it was given.

        Between them what it changes in its arguments.
        """
        table = RefTable(self.table.refs)
        if self.refs:
            inside = list(self.table.refs)
            for number, content in zip(self.refs, by[len(self.picked) :], strict=True):
                inside[number] = new_ref(content)
            table = RefTable(inside)
        by = by[: len(self.picked)]
        call = rebuilt(self.call._untraced, joined(self.picked, by, others), Call)
        try:
            if self._is_staged and may_lend(table.refs):
                with contextlib.suppress(OutOfReachError):
                    return *self._run_lent(fun, call, table, updated), table
            return *table.show(call).run_and_update(fun, updated), table
        except Exception as error:
            blame_write(error, self._ref_paths())
            raise

    @staticmethod
    def _run_lent(
        fun: Callable[..., Any], call: Call, table: RefTable, updated: Chosen
    ) -> tuple[Any, Update]:
        """What a function returns that is traced anyway: it is lent the contents of the refs.

        JAX can't add to a ref under a derivative, as its random generators do.
        """
        _owner, staged = kept_staged(fun, call._untraced.options, updated)

        def run(lent: list[Any]) -> tuple[Any, Update]:
            lender = staged.of_contents
            outcome = Lent([(Source(fun).text, lender)], table, call._untraced, CALL, lent).run(
                lambda contents: lender.lent(lent, contents, call)
            )
            return table.show(result_of(outcome)).tree, Update.of(outcome)

        return lending(run)

    def contents(self, table: RefTable) -> list[Any]:
        """What the refs hold afterwards whose contents are differentiated by."""
        return [table.refs[number][...] for number in self.refs]

    def write(self, contents: Sequence[Any]) -> None:
        """Lets these be what they hold."""
        for number, content in zip(self.refs, contents, strict=True):
            self.table.refs[number][...] = content

    def _ref_paths(self) -> list[str]:
        untraced = self.call._untraced
        pairs = zip(untraced.positions, untraced.statics, strict=True)
        places = [position for position, static in pairs if type(static.value) is RefNumber]
        if not places:
            return []
        accessors = untraced.spec.accessors()
        return [argument_text(accessors[place]) for place in places]

    def gradient(self, leaves: Sequence[Any]) -> Any:
        """What was computed for each of `by`, in the form of the arguments `argnums`.

        None stands at all other leaves.
        """
        count = len(self.picked)
        found = dict(zip(self.picked, leaves[:count], strict=True))
        of_refs = dict(zip(self.refs, leaves[count:], strict=True))
        if self._structures is None:
            self._structures = Structures.of(self._tree, self.untraced)
        own = [
            found.get(place) if number is None else of_refs.get(number)  # type: ignore[arg-type]  # None is no key
            for place, number in zip(self._chosen, self._chosen_refs, strict=True)
        ]
        return derivative(self.untraced, own, self._structures)

    def by_with_paths(self) -> Iterator[tuple[str, Leaf]]:
        """The leaves that are differentiated by, with their paths."""
        paths = argument_paths(self.call._untraced)
        found = [paths[i] for i in self.picked]
        refs = self._ref_paths()
        return zip([*found, *(refs[i] for i in self.refs)], self.by, strict=True)
