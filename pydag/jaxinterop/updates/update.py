# SPDX-License-Identifier: Apache-2.0
"""Arguments that are updated: leaves that a function wrote are written into the caller's objects.

Each leaf is written once, when the call returns, all of them or none. Structure, sharing and static
leaves must be as they were. Objects keep their identity, in the result too.
"""

import itertools
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.errors import SharingError
from pydag.jaxinterop.content.content import with_variables
from pydag.jaxinterop.content.leaves import is_number, is_traced, static_positions
from pydag.jaxinterop.content.paths import CALL, MISSING, path_texts, way_text
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.packed.dag import Dag as PackedDag
from pydag.jaxinterop.treatments.arguments import (
    Chosen,
    Spot,
    leaves_of,
    pick,
    positions_of,
    spot_text,
)
from pydag.sharing.update import find_writer, writer_finders
from pydag.structure.listing import Listing
from pydag.structure.text import short_repr
from pydag.typing import Dag, Leaf, PyTreeAccessor

from .changes import Given, nodes_of

_MOST_WAYS = 64  # to a leaf are looked at


class Update(NamedTuple):
    """What a call writes into its arguments: new leaves; the plan says where."""

    plan: Any = None
    leaves: tuple[Leaf, ...] = ()

    def beside(self, packed: Any) -> Any:
        """The result with this beside it, for JAX."""
        return _core.make_updated(None, (packed, self.plan, self.leaves))


class UpdatedArguments:
    """The arguments of a call that are updated, as the function gets them.

    Args:
        given: The call.
        chosen: Which of the arguments are updated.
        donated: The positions of the leaves that are: the caller's objects get them back.
        is_staged: Whether the function is traced to be run later.
    """

    def __init__(
        self, given: Given, chosen: Chosen, donated: Collection[int], is_staged: bool
    ) -> None:
        args, kwargs = given.tree
        self._given, self._donated, self._is_staged = given, donated, is_staged
        spots = sorted(chosen.spots(args, kwargs), key=str)
        options = given.options
        # An argument that is an array itself holds nothing: it can't be written, nor be tied.
        holders: list[Spot] = [
            spot
            for spot in (*range(len(args)), *kwargs)
            if not _core.is_leaf(pick(given.tree, [spot])[0], namespace=options.namespace)
        ]
        self.spots = [spot for spot in spots if spot in holders]
        self._names = tuple(map(spot_text, self.spots))
        self._spec = options.flatten(pick(given.tree, self.spots), self._names)[1]
        self._numbers = leaves_of(given.spec, self.spots)
        self._others = [spot for spot in holders if spot not in spots]
        self._common = self._common_nodes()

    def update(self, result: Dag) -> Update:
        """What the function has written, and which of its objects it returns."""
        given = self._given
        leaves, spec = given.options.flatten(pick(given.tree, self.spots), self._names)
        if spec != self._spec:
            raise self._other_structure(spec)
        written: dict[int, Leaf] = {}
        static = frozenset(static_positions(given.leaves, given.spec, CALL))
        for number, leaf in zip(self._numbers, leaves, strict=True):
            old = given.leaves[number]
            if number in static:
                self._check_static(number, old, leaf)
            elif leaf is not old:
                self._check_written(number, leaf)
                # A number in the place of an array is one of no dimension, as what `jit` returns.
                written[number] = jnp.asarray(leaf) if is_number(leaf) else leaf
        if written:
            self._check_ties(written)
        kept = {i: given.leaves[i] for i in self._numbers if i in self._donated}
        written = {**kept, **written}
        returned = _returned(given, self.spots, result)
        if not written and returned is None:
            return Update()
        plan = _core.update_plan(
            spec=given.spec,
            positions=tuple(written),
            writers=find_writer,
            returned=returned,
            roots=CALL,
        )
        olds = {id(leaf) for leaf in given.leaves}
        copied = (
            jnp.copy(x) if id(x) in olds and i not in kept and not jax_private.is_ref(x) else x
            for i, x in written.items()
        )
        return Update(plan, tuple(copied))

    def _place(self, number: int) -> str:
        return path_texts(self._given.spec, CALL)[number]

    def _check_static(self, number: int, old: Leaf, new: Leaf) -> None:
        if not _core.is_same_value(old, new):
            raise ValueError(
                f"{self._place(number)} was {short_repr(old)} and is {short_repr(new)}: it is "
                "static, and an update only writes arrays\n  If it changes from call to call, make "
                "it an array; or return it, and set it after the call."
            )

    def _check_written(self, number: int, leaf: Leaf) -> None:
        if not is_traced(leaf):
            raise ValueError(
                f"{self._place(number)} was an array and is {short_repr(leaf)}: an update only "
                "writes arrays\n  Set what is configuration outside of the function."
            )
        if jax_private.is_dead(leaf):
            raise jax.errors.UnexpectedTracerError(
                f"{self._place(number)} was written inside of an inner function (jit, scan, cond "
                "...) whose trace has ended\n  Pass the object to the inner function as an "
                "argument, with update_argnums there; or return what changed."
            )
        if jax_private.is_ref(leaf) and self._is_staged:
            raise TypeError(
                f"the function puts another ref at {self._place(number)}, which can't come out of "
                "a compiled function as an update\n"
                "  Write into the ref that stands there: ref[...] = value."
            )

    def _common_nodes(self) -> set[int]:
        """What both arguments that are updated and others hold, by id."""
        tree, options = self._given.tree, self._given.options
        own, others = (nodes_of(pick(tree, s), options) for s in (self.spots, self._others))
        return own.keys() & others.keys()

    def _check_ties(self, written: dict[int, Leaf]) -> None:
        """Checks that no tie with an argument that isn't updated is made or cut."""
        given = self._given
        if made := self._common_nodes() - self._common:
            one, other = (self._way(made, spots) for spots in (self.spots, self._others))
            raise _made_tie(one, other)
        theirs = frozenset(leaves_of(given.spec, self._others))
        names, namespace = tuple(map(spot_text, self._others)), given.options.namespace
        # What tuples alone lead to is a value, as is what a Variable of NNX holds.
        now = tuple(with_variables(x, namespace) for x in pick(given.tree, self._others))
        leaves, spec = given.options.flatten(now, names)
        kept = dict(zip(map(id, leaves), path_texts(spec, names), strict=True))
        for i in _core.value_leaves(spec):
            kept.pop(id(leaves[i]), None)
        for number, leaf in written.items():
            if number in theirs and id(leaf) not in kept and self._is_tied(number):
                raise self._cut_tie(number)
            if number not in theirs and id(leaf) in kept and not jax_private.is_ref(leaf):
                raise _made_tie(self._place(number), kept[id(leaf)])

    def _way(self, nodes: Collection[int], spots: Sequence[Spot]) -> str:
        """The path of the first of some nodes in some arguments."""
        namespace = self._given.options.namespace
        way = next(iter(_ways(pick(self._given.tree, spots), nodes, namespace).values()))
        text: str = way[1:].codify(spot_text(spots[way[0].entry]))
        return text

    def _is_tied(self, number: int) -> bool:
        """Whether an object of another argument holds a leaf, more than a tuple."""
        listing = Listing.of(self._given.spec)
        own = positions_of(listing, self.spots)
        if number in _core.value_leaves(self._given.spec):
            return False
        return any(
            listing.records[position].kind not in ("tuple", "namedtuple")
            for way in itertools.islice(listing.ways(listing.leaves[number]), _MOST_WAYS)
            for position in way[1:-1]
            if way[1] not in own
        )

    def _cut_tie(self, number: int) -> SharingError:
        listing = Listing.of(self._given.spec)
        own = positions_of(listing, self.spots)
        place = listing.leaves[number]
        written, kept = (
            next(way_text(listing, w, CALL) for w in listing.ways(place) if (w[1] in own) is is_own)
            for is_own in (True, False)
        )
        return SharingError(
            "the function cuts a tie of what it updates\n"
            f"  given: {written} and {kept} are one object\n"
            f"  now: another one stands at {written} alone\n"
            "  Write it at both places; or give one of them a copy before the call "
            '(pj.tree.copy(...)), or say identity="nodes".'
        )

    def _other_structure(self, spec: PyDagSpec) -> Exception:
        has_one_size = self._spec.num_paths == spec.num_paths
        others = [c.text for c in self._given.changes() if MISSING in (c.old, c.new)]
        is_shared_otherwise = (has_one_size and not others) and (
            self._spec.is_prefix(spec) or spec.is_prefix(self._spec)
        )
        kind, what, cure = (
            (
                SharingError,
                "what is shared in it",
                "Write jnp.copy(x) at one of the places; or give one object at both beforehand.",
            )
            if is_shared_otherwise
            else (
                ValueError,
                "its structure",
                "Make what is missing before the call (an array of zeros for None); set what is "
                "configuration, such as a flag, outside of the function; or return the new object.",
            )
        )
        shown = _core.explain(self._spec, spec, roots=self._names)
        if others:
            shown += f"\n  What came or went: {', '.join(others[:4])}"
        return kind(
            "an argument that is updated must keep its structure, but the function changes "
            f"{what}\n  (first: as it was given, second: as the function left it)\n{shown}\n"
            f"  {cure}"
        )


def _made_tie(one: str, other: str) -> SharingError:
    return SharingError(
        "the function makes a tie between an argument that is updated and one that isn't\n"
        f"  given: {one} and {other} are two objects\n"
        "  now: they are one\n  Inside the function, write jnp.copy(x) for an array, and "
        "pj.tree.copy(x) for what holds arrays; or update both arguments (update_argnums), and "
        "give them one object before the call."
    )


def _writer_of(cls: type) -> Any:
    """How instances are written of a class that opens them by functions of its own; None if not."""
    if issubclass(cls, PackedDag):
        return _write_dag
    own: Any = getattr(cls, "_write_children", None)  # of a Derived
    return own if own is not None and cls.__module__.startswith("pydag.") else None


writer_finders.append(_writer_of)


def _write_dag(dag: PackedDag[Any], leaves: tuple[Leaf, ...]) -> None:
    """Writes leaves into the tree of a Dag."""
    _, content = dag.parts()
    holder = [dag.tree]
    spec = _core.collect_specs([content.spec], namespace=content.spec.namespace)
    plan = _core.update_plan(
        spec=spec,
        positions=tuple(content.traced_positions()),
        writers=find_writer,
    )
    _core.carry_out(plan, holder, leaves)
    dag._content, dag._leaves, dag._tree = content, list(leaves), (holder[0],)


def _returned(given: Given, spots: Any, result: Dag) -> Callable[[Dag, Any], Dag] | None:
    """A function that puts the caller's own objects where the function returned updated ones."""
    options, own = given.options, (pick(given.tree, spots),)
    both = nodes_of(result, options).keys() & nodes_of(own, options).keys()
    if not both:
        return None

    def is_own(node: Any) -> bool:
        return id(node) in both

    found, spec = _core.flatten(result, is_leaf=is_own, namespace=options.namespace)
    ways = _ways(own, both, options.namespace)
    wanted = [(i, ways[id(x)]) for i, x in enumerate(found) if id(x) in ways]

    def put(result: Dag, arguments: Any) -> Dag:
        # The result has the structure that it had when it was traced.
        parts = spec.flatten_up_to(result)
        for i, way in wanted:
            parts[i] = way((pick(arguments, spots),))
        return _core.unflatten(spec, parts)

    return put


def _ways(tree: Dag, wanted: Collection[int], namespace: str) -> dict[int, Any]:
    """For each of the wanted nodes, by its id, a function that gets it of the tree."""
    found: dict[int, Any] = {}
    waiting = [(PyTreeAccessor(), tree)]
    for way, root in waiting:

        def is_wanted(node: Any, root: Any = root) -> bool:
            return node is not root and id(node) in wanted

        accessors, nodes, _ = _core.flatten_with_accessor(
            root, is_leaf=is_wanted, namespace=namespace
        )
        for step, node in zip(accessors, nodes, strict=True):
            if is_wanted(node) and id(node) not in found:
                found[id(node)] = way + step
                waiting.append((found[id(node)], node))
    return found
