# SPDX-License-Identifier: Apache-2.0
"""A call that is differentiated: its leaves in two groups, how it is run, and its gradient."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from pydag.jaxinterop.messages.naming import Source
from pydag.jaxinterop.messages.roots import CALL
from pydag.jaxinterop.notices.blame import blame_write
from pydag.jaxinterop.packed.dag import rebuilt
from pydag.jaxinterop.packed.derivatives import Structures, derivative
from pydag.jaxinterop.prefixes.arguments import (
    Args,
    Chosen,
    Kwargs,
    argument_text,
    by_argument,
    roots_of,
)
from pydag.jaxinterop.refs.access import is_top_level, new_ref
from pydag.jaxinterop.refs.contents import RefCall
from pydag.jaxinterop.refs.ref_calls import may_lend, with_ref_contents
from pydag.jaxinterop.refs.table import RefTable, numbers_of_refs
from pydag.jaxinterop.static.bare_arrays import without_bare
from pydag.jaxinterop.static.differentiable import is_ref
from pydag.jaxinterop.static.pick import put_in
from pydag.jaxinterop.static.untraced import Options, Untraced, take_apart, untraced_of
from pydag.jaxinterop.updates.update import Update, result_of
from pydag.structure.listing import Listing
from pydag.typing import Leaf, Where

from .argnums import QUESTION, Argnums, WantedArguments
from .call import Call, argument_paths, kept_staged
from .parted import parted_call


class DifferentiatedCall:
    """A call that is differentiated by the leaves `by`; `others` are passed through.

    What an argument that isn't differentiated by holds is constant. Where it is an object of one
    that is, the two come apart.

    Args:
        has_updates: Whether changes are written into arguments, which then stay as they are shared.

    Raises:
        SharingError: Nothing can come apart, and it would have to.
        TypeError: There is nothing to differentiate by.
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
        has_updates: bool = False,
    ) -> None:
        self._numbers = argnums.counted(len(args))
        whole = Call.with_separate_arrays(args, kwargs, options)
        if not self._take(whole, argnums, wrt, allow_int, must_fit=has_updates):
            groups = [i in self._numbers for i in range(len(args))] + [False] * len(kwargs)
            self._take(parted_call(whole, groups), argnums, wrt, allow_int, must_fit=True)

    def _take(
        self, whole: Call, argnums: Argnums, wrt: Where | None, allow_int: bool, must_fit: bool
    ) -> bool:
        """Takes a call apart; False if an argument that isn't meant holds what is meant, too."""
        options, self.table = whole._untraced.options, RefTable()
        args, kwargs = whole.tree
        self.call = self.table.hide(whole, adds=True)
        self._is_staged = bool(self.table.refs) and not is_top_level()
        self._tree = (
            args[self._numbers[0]] if argnums.is_one else tuple(args[i] for i in self._numbers)
        )
        self._structures: Structures | None = None
        is_whole = not kwargs and self._numbers == tuple(range(len(args)))
        if is_whole and options.static is None and not self.table.refs:
            listing: Listing | None = None
            untraced, own = take_apart(self._tree, options)
            indices: Sequence[int] = range(len(own))
        else:
            listing = Listing.of(whole._untraced.spec)
            untraced, own = self._own_part(listing, whole)
            indices = self._indices(listing, untraced)
        self.untraced = untraced
        wanted = WantedArguments(self._numbers, 0 if argnums.is_one else 1, untraced, own)
        untraced.check_not_lazy("differentiated by", wanted.path)
        wanted.check_arrays(args)
        self.divided = partial(wanted.divided, wrt, allow_int)
        # For each leaf of the wanted arguments its index among the call's; for a ref its number.
        self._chosen: list[int | None] = []
        self._chosen_refs: list[int | None] = []
        for index, leaf, is_by in zip(indices, own, wanted.choose(wrt, allow_int), strict=True):
            number = self.table.number(leaf) if is_by and is_ref(leaf) else None
            self._chosen_refs.append(number)
            self._chosen.append(index if is_by and index >= 0 else None)
        picked = {index for index in self._chosen if index is not None}
        if listing is not None and not is_whole and self._is_in_others(listing, picked):
            if not must_fit:
                return False
            self._refuse(picked, args, kwargs)
        leaves = self.call._leaves
        self.picked = sorted(picked)
        self.refs = sorted({number for number in self._chosen_refs if number is not None})
        """Numbers of the refs whose contents are differentiated by."""
        self.by = [leaves[i] for i in self.picked] + [self.table.refs[i][...] for i in self.refs]
        self.others = [leaf for i, leaf in enumerate(leaves) if i not in picked]
        return True

    def _wanted_numbers(self, listing: Listing) -> list[int]:
        """The numbers of the leaves of the wanted arguments, among all of the call's."""
        return listing.leaves_below(*roots_of(listing, self._numbers))

    def _own_part(self, listing: Listing, whole: Call) -> tuple[Untraced, Sequence[Leaf]]:
        """The wanted arguments, taken apart. In them is static what is static in the call."""
        options = whole._untraced.options
        if options.static is None:
            return take_apart(self._tree, options)
        static = frozenset(whole._untraced.positions)
        own = self._wanted_numbers(listing)
        positions = tuple(i for i, number in enumerate(own) if number in static)
        flattened, spec = options.flatten(self._tree)
        leaves = without_bare(flattened)
        untraced = untraced_of(leaves, spec, positions, options, "tree", positions)
        return untraced, [x for x, n in zip(leaves, own, strict=True) if n not in static]

    def _indices(self, listing: Listing, untraced: Untraced) -> list[int]:
        """For each traced leaf of the wanted arguments which of the call's it is; -1 for refs."""
        own = self._wanted_numbers(listing)
        indices = {p: i for i, p in enumerate(self.call._untraced.traced_positions())}
        return [indices.get(own[p], -1) for p in untraced.traced_positions()]

    def _is_in_others(self, listing: Listing, picked: set[int]) -> bool:
        """Whether a leaf that is differentiated by is in an argument that isn't meant."""
        given, named = listing.children(0)
        others = [p for i, p in enumerate(listing.children(given)) if i not in self._numbers]
        positions = self.call._untraced.traced_positions()
        return not {positions[i] for i in picked}.isdisjoint(listing.leaves_below(*others, named))

    def _refuse(self, picked: set[int], args: Args, kwargs: Kwargs) -> None:
        positions = self.call._untraced.traced_positions()
        by, options = {positions[i] for i in picked}, self.call._untraced.options
        by_argument(args, kwargs, frozenset(self._numbers).__contains__, QUESTION, options, by)

    def run(
        self,
        fun: Callable[..., Any],
        by: Sequence[Leaf],
        others: Sequence[Leaf],
        updated: Chosen | None = None,
    ) -> tuple[Any, Update, RefTable]:
        """What a function returns for the call with these leaves; what it changes in its arguments.

        Third come the refs that it was given.
        """
        table = RefTable(self.table.refs)
        if self.refs:
            inside = list(self.table.refs)
            for number, content in zip(self.refs, by[len(self.picked) :], strict=True):
                inside[number] = new_ref(content)
            table = RefTable(inside)
        by = by[: len(self.picked)]
        call = rebuilt(self.call._untraced, put_in(others, zip(self.picked, by, strict=True)), Call)
        try:
            if self._is_staged and may_lend(table.refs):
                return *self._run_lent(fun, call, table, updated), table
            return *table.show(call).run_and_update(fun, updated), table
        except Exception as error:
            blame_write(error, self.ref_paths())
            raise

    @staticmethod
    def _run_lent(
        fun: Callable[..., Any], call: Call, table: RefTable, updated: Chosen | None
    ) -> tuple[Any, Update]:
        """What a function returns that is lent the contents of the refs; and what it changes.

        Used where the function is traced anyway. JAX can't add to a ref under a derivative, as its
        random generators do; to a content it can.
        """
        _owner, staged = kept_staged(fun, call._untraced.options, updated)

        def run(lent: list[Any] | None) -> tuple[Any, Update]:
            if lent is None:
                return table.show(call).run_and_update(fun, updated)
            lender = staged.of_contents
            outcome = RefCall([(Source(fun).text, lender)], table, call._untraced, CALL, lent).run(
                lambda contents: lender.lent(lent, contents, call, may_give_refs=True)
            )
            return table.show(result_of(outcome)).tree, Update.of(outcome)

        return with_ref_contents(run)

    def contents(self, table: RefTable) -> list[Any]:
        """The contents, afterwards, of the refs that are differentiated by."""
        return [table.refs[number][...] for number in self.refs]

    def write(self, contents: Sequence[Any]) -> None:
        """Writes the contents of these refs."""
        for number, content in zip(self.refs, contents, strict=True):
            self.table.refs[number][...] = content

    def ref_paths(self) -> list[str]:
        """The paths of the refs among the arguments."""
        untraced = self.call._untraced
        found = numbers_of_refs(untraced)
        accessors = untraced.spec.accessors() if found else []
        return [argument_text(accessors[position]) for position in found]

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
            found.get(index) if number is None else of_refs.get(number)  # type: ignore[arg-type]  # None is no key
            for index, number in zip(self._chosen, self._chosen_refs, strict=True)
        ]
        return derivative(self.untraced, own, self._structures)

    def by_with_paths(self) -> Iterator[tuple[str, Leaf]]:
        """The leaves that are differentiated by, with their paths."""
        paths = argument_paths(self.call._untraced)
        found = [paths[i] for i in self.picked]
        refs = self.ref_paths()
        return zip([*found, *(refs[i] for i in self.refs)], self.by, strict=True)
