# SPDX-License-Identifier: Apache-2.0
"""Arguments that a function changes, as the caller sees it: `update_argnums`, `update_argnames`.

What changes is found when the function is traced. New arrays are returned beside the result, and
written into the caller's objects at the end of a call. Static leaves that changed are part of the
plan that says where to write.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
from jax import tree_util

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.errors import SharingError
from pydag.jaxinterop.messages.naming import Source
from pydag.jaxinterop.messages.roots import CALL, say_roots, shortened, with_roots
from pydag.jaxinterop.prefixes.arguments import Args, Chosen, Kwargs, Spot
from pydag.jaxinterop.prefixes.treatments import LeafNumbers
from pydag.jaxinterop.static.leaves import Static
from pydag.jaxinterop.static.positions import static_positions
from pydag.jaxinterop.static.untraced import untraced_of
from pydag.structure.listing import Listing
from pydag.typing import Leaf

from .attributes import Attributes
from .given import Changed, GivenTree
from .lost_update import tell_lost_change
from .writers import writer_of

T = TypeVar("T")

NOTHING = Chosen((), ())


def chosen_updates(
    fun: Callable[..., Any],
    numbers: int | Iterable[int] | None,
    names: str | Iterable[str] | None,
    static: Chosen = NOTHING,
) -> Chosen:
    """The arguments that are updated, as `update_argnums` and `update_argnames` name them.

    Args:
        static: Those that are not opened.

    Raises:
        TypeError: They are no numbers, or no names.
        ValueError: The function has no such argument, or it is a static one.
    """
    if numbers is None and names is None:
        return NOTHING
    numbers = numbers if numbers is None or isinstance(numbers, int) else tuple(numbers)
    names = names if names is None or isinstance(names, str) else tuple(names)
    chosen = Chosen.of(fun, numbers, names)
    try:
        # JAX checks them as it checks its own.
        jax.jit(fun, donate_argnums=numbers, donate_argnames=names)
    except (TypeError, ValueError) as error:
        text = str(error).replace("donate_arg", "update_arg")
        raise type(error)(text) from None
    both: list[Spot] = [*sorted({*chosen.numbers} & {*static.numbers})]
    both += [*sorted({*chosen.names} & {*static.names})]
    if both:
        raise ValueError(
            f"an argument can't be both static and updated: {both[0]!r}\n"
            "  A static argument is handed on as it is: what a function changes in it, the caller "
            "sees anyway."
        )
    return chosen


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
    if type(returned) is _core.Updated:
        with naming_arguments():
            _core.update_arguments(returned, call)
    return result


@contextlib.contextmanager
def naming_arguments() -> Iterator[None]:
    """In it, errors of an update have the paths that the caller knows: `args[0].norm`."""
    try:
        yield
    except (TypeError, ValueError) as error:
        say_roots(error, CALL)
        raise


def update_of(
    given: GivenTree,
    chosen: Chosen,
    result: Any,
    fun: Callable[..., Any] | Source,
    donated: Iterable[int] = (),
    tries: bool = False,
) -> Update:
    """What is written into the arguments of a call; warns of changes elsewhere, which are lost.

    Args:
        given: The arguments, as the function left them.
        chosen: Those that are updated.
        donated: Positions of leaves that are gone after the call, and so are written in any case.
        tries: Whether to find out, before anything is written, that all can be written.

    Raises:
        ValueError: The structure of an argument isn't as it was.
        SharingError: What it shares isn't as it was.
        TypeError: An object would have to change that can't be written.
    """
    args, kwargs = given.tree
    spots = chosen.spots(args, kwargs)
    changed = given.changed(must_flatten=bool(spots))
    if changed is not None:
        after = changed.listing
        updated = _below(after, _roots(after, spots))
        tell_lost_change(changed, result, fun, lambda w: after.target(w.position) in updated)
    if not spots:
        return Update()
    call = _Updated(given, spots)
    kept = call.leaves.intersection(donated)
    if changed is None and not kept:
        return Update()
    found = call.compare() if changed is not None else _Found({}, {}, None)
    traced = {position: given.leaves[position] for position in kept} | found.traced
    for position in found.static:
        traced.pop(position, None)
    if changed is not None:
        call.check_elsewhere(changed, traced)
    if not (traced or found.static or found.attributes):
        return Update()
    positions = tuple(sorted(traced))
    plan = _core.update_plan(
        spec=given.untraced.spec,
        positions=positions,
        static_positions=tuple(found.static),
        statics=tuple(found.static.values()),
        writers=writer_of,
        then=found.attributes,
    )
    leaves = tuple(traced[position] for position in positions)
    if tries:
        with naming_arguments():
            _core.carry_out(plan, _core.unflatten(given.untraced.spec, given.leaves), leaves)
    return Update(plan, leaves, positions)


def _roots(listing: Listing, spots: Iterable[Spot]) -> Iterator[int]:
    """Where the arguments stand in the listing of `(args, kwargs)`."""
    args, kwargs = listing.children(0)
    positional, named = listing.children(args), listing.children(kwargs)
    names = {listing.records[position].entry: position for position in named}
    for spot in spots:
        yield positional[spot] if isinstance(spot, int) else names[spot]


def _below(listing: Listing, roots: Iterable[int]) -> set[int]:
    """The anchors of all nodes that can be reached from `roots`."""
    seen: set[int] = set()
    pending = list(roots)
    while pending:
        position = listing.target(pending.pop())
        if position not in seen:
            seen.add(position)
            pending.extend(listing.children(position))
    return seen


class _Found(NamedTuple):
    """What changed: the new leaves by their positions, and static attributes."""

    traced: dict[int, Leaf]
    static: dict[int, Leaf]
    attributes: Attributes | None


class _Updated:
    """The arguments of a call that are updated."""

    def __init__(self, given: GivenTree, spots: Iterable[Spot]) -> None:
        self._given = given
        self._spots = sorted(spots, key=str)
        self._listing = Listing.of(given.untraced.spec)
        self._reached = _below(self._listing, _roots(self._listing, spots))
        self.leaves = {i for i, p in enumerate(self._listing.leaves) if p in self._reached}

    def _chosen(self, arguments: tuple[Args, Kwargs]) -> tuple[Any, ...]:
        args, kwargs = arguments
        return tuple(args[s] if isinstance(s, int) else kwargs[s] for s in self._spots)

    def compare(self) -> _Found:
        """Which leaves are other objects, and which static attributes have other values, now."""
        given, options = self._given, self._given.untraced.options
        spec = given.untraced.spec
        listing, roots = self._listing, list(_roots(self._listing, self._spots))
        there = [listing.target(root) not in listing.leaves for root in roots]
        built = self._chosen(_core.unflatten(spec, given.leaves))
        before = tuple(x for x, is_tree in zip(built, there, strict=True) if is_tree)
        after = tuple(
            x for x, is_tree in zip(self._chosen(given.tree), there, strict=True) if is_tree
        )
        spots = [s for s, is_tree in zip(self._spots, there, strict=True) if is_tree]
        names = tuple(f"args[{s}]" if isinstance(s, int) else f"kwargs[{s!r}]" for s in spots)
        trees = [root for root, is_tree in zip(roots, there, strict=True) if is_tree]
        numbers = LeafNumbers(spec).below(*trees)
        old = options.flatten(before)[1]
        leaves, new = options.flatten(after, names)
        attributes = None
        if old != new:
            attributes = Attributes.of(old, new, spots)
            if attributes is None:
                raise self._another_structure(old, new, before, after, names)
        selected = options.selected(leaves, new, names, is_returned=True)
        static = static_positions(leaves, new, names, selected)
        if any(leaves[i] is not given.leaves[numbers[i]] for i in static):
            untraced_of(leaves, new, static, options, names, selected, is_returned=True)
        found = _Found({}, {}, attributes)
        for i, (number, leaf) in enumerate(zip(numbers, leaves, strict=True)):
            known = given.leaves[number]
            if leaf is known:
                continue
            if i not in static:
                found.traced[number] = leaf
            elif Static(leaf) != Static(known):
                found.static[number] = leaf
        return found

    def check_elsewhere(self, changed: Changed, written: dict[int, Leaf]) -> None:
        """Checks that nothing that changed is held by an object that stays as it is.

        Raises:
            SharingError: Something is.
        """
        listing, after = self._listing, changed.listing
        now = dict(zip(after.leaves, changed.leaves, strict=True))
        arguments = set(listing.children(0))  # an argument itself is a variable of its own
        for position, leaf in written.items():
            if leaf is self._given.leaves[position]:
                continue
            for slot in listing.slots_of(listing.leaves[position]):
                around = listing.parents[slot]
                if around in self._reached or around in arguments:
                    continue
                found = _followed(after, [listing.records[step] for step in listing.way(slot)])
                if found is None or now.get(found) is not leaf:
                    one = self._text(
                        next(
                            s
                            for s in listing.slots_of(listing.leaves[position])
                            if listing.parents[s] in self._reached
                            or listing.parents[s] in arguments
                        )
                    )
                    raise SharingError(
                        f"the function cuts a tie of what it updates\n"
                        f"  given: {one} and {self._text(slot)} are one object\n"
                        f"  now: another one stands at {one} alone\n"
                        "  Write it at both places; or give one of them a copy before the call "
                        '(pj.tree.map(jnp.copy, ...)), or say identity="nodes".'
                    )

    def _text(self, position: int) -> str:
        return shortened(with_roots(self._listing.path_text(position, "tree"), CALL))

    def _another_structure(
        self,
        old: PyDagSpec,
        new: PyDagSpec,
        before: tuple[Any, ...],
        after: tuple[Any, ...],
        names: tuple[str, ...],
    ) -> ValueError:
        error: type[ValueError] = ValueError
        for spec, tree in ((old, after), (new, before)):
            try:
                spec.flatten_up_to(tree)
            except SharingError:
                error = SharingError
            except ValueError:
                error = ValueError
                break
        what = "what is shared in it" if error is SharingError else "its structure"
        text = "\n".join("  " + line for line in _core.explain(old, new).splitlines())
        return error(
            "an argument that is updated must keep its structure, but the function changes "
            f"{what}\n"
            "  (first: as it was given, second: as the function left it)\n"
            f"{with_roots(text, names)}\n"
            "  Leaves alone are written into the caller's objects. "
            + (
                "Write one object at both places, or give one of them a copy before the call; "
                'with identity="nodes" arrays have no identity.'
                if error is SharingError
                else "Make what is missing before the call (an array of zeros for None), or return "
                "the new object."
            )
        )


def _followed(listing: Listing, records: Sequence[Any]) -> int | None:
    """The anchor of the node to which the entries lead."""
    at = 0
    for record in records:
        for child in listing.children(at):
            if Static(listing.records[child].entry) == Static(record.entry):
                at = listing.target(child)
                break
        else:
            return None
    return at
