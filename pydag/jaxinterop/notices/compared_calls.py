# SPDX-License-Identifier: Apache-2.0
"""Where the arguments of two calls differ, for which a function was compiled twice."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.foreign.flax_private import static_attributes
from pydag.jaxinterop.messages.roots import CALL, position_text, shortened
from pydag.jaxinterop.static.leaves import Static
from pydag.jaxinterop.static.pick import put_in
from pydag.jaxinterop.static.untraced import Untraced
from pydag.jaxinterop.structure.pairing import Pairs, by_entry
from pydag.structure.listing import Listing, Record
from pydag.structure.text import short_repr
from pydag.typing import Leaf

LEAF, FIELD, ATTRIBUTE, ARGUMENT = "leaf", "field", "attribute", "argument"
SIZE, KEYS, SHARING, ORDER = "size", "keys", "sharing", "order"


class Difference(NamedTuple):
    """A place at which two calls differ."""

    where: str  # a static leaf or argument, a static field, an attribute of a constant, a structure
    place: str  # the path, as the user writes it
    old: Any
    new: Any


class Size(int):
    """The number of a node's children."""

    def __repr__(self) -> str:
        return f"of length {int(self)}"


class Keys(tuple[Any, ...]):
    """The keys that one of two compared nodes has and the other doesn't."""

    __slots__ = ()

    def __repr__(self) -> str:
        shown = ", ".join(short_repr(key.value) for key in self[:8])
        return shortened(f"with {shown}", 200) if self else "without it"


_ARRAY: Any = jax_private.array_class


def _type_of(leaf: Any) -> Any:
    return getattr(leaf, "shape", ()), getattr(leaf, "dtype", type(leaf))


class ComparedCall:
    """What a function was compiled for: the structure, static leaves, and the types of arrays.

    Args:
        traced: The leaves that JAX traces.
    """

    def __init__(self, untraced: Untraced, traced: Sequence[Leaf]) -> None:
        self.untraced = untraced
        # Of an ordinary array what owns both its shape and its dtype: each compilation asks.
        self._types = [x.aval if type(x) is _ARRAY else _type_of(x) for x in traced]

    @cached_property
    def listing(self) -> Listing:
        return Listing.of(self.untraced.spec)

    @cached_property
    def leaves(self) -> dict[int, Any]:
        """For each leaf's position in the listing what it is: a `Static`, or the array's type."""
        leaves = [kept if type(kept) is tuple else _type_of(kept) for kept in self._types]
        statics = zip(self.untraced.positions, self.untraced.statics, strict=True)
        leaves = put_in(leaves, statics)
        return dict(zip(self.listing.leaves, leaves, strict=True))

    def is_for_the_same(self, other: "ComparedCall") -> bool:
        """Whether both need the same compilation, but for the types of arrays."""
        return self.untraced == other.untraced

    def path(self, position: int) -> str:
        return position_text(self.listing, position, CALL)


def differences(old: ComparedCall, new: ComparedCall) -> list[Difference] | None:
    """Where two calls differ, in the order of the arguments.

    None if the calls are for two models: the type of an array differs, or what is an array, or a
    class; or the size or the sharing differs, and something else does, too.
    """
    walk = _Walk(old, new)
    found = list(walk.run())
    if not walk.is_alike:
        return None
    is_structural = any(difference.where in (SIZE, KEYS) for difference in found)
    if (is_structural or walk.shares_otherwise) and len(found) + walk.shares_otherwise > 1:
        return None
    if walk.shares_otherwise:
        return [Difference(SHARING, "", old.untraced, new.untraced)]
    if not found and old.untraced.spec_key != new.untraced.spec_key:
        return [Difference(ORDER, "", old.untraced, new.untraced)]
    return found


class _Walk:
    """Walks two structures together, and compares each pair of nodes once."""

    def __init__(self, old: ComparedCall, new: ComparedCall) -> None:
        self.old, self.new = old, new
        self.is_alike = True  # false: the calls are for two models
        self.shares_otherwise = False

    def run(self) -> Iterator[Difference]:
        old, new = self.old.listing, self.new.listing
        partners: tuple[dict[int, int], dict[int, int]] = {}, {}
        pairs = Pairs(old, new)
        for first, second, (_, slot) in pairs:
            partner = partners[0].setdefault(first, second), partners[1].setdefault(second, first)
            self.shares_otherwise |= partner != (second, first)
            one, two = old.records[first], new.records[second]
            self.is_alike = one.kind == two.kind and one.type is two.type
            if self.is_alike and one.is_leaf:
                yield from self._of_leaves(first, second, slot)
            elif self.is_alike:
                yield from self._of_fields(one, two, slot)
                names, others = by_entry(old, first), by_entry(new, second)
                if names.keys() != others.keys():
                    yield self._of_children(list(names), list(others), slot)
                common = [(child, others[name]) for name, child in names.items() if name in others]
                pairs.add(list(map(pairs.at, common)))
            if not self.is_alike:
                return

    def _of_leaves(self, one: int, two: int, slot: int) -> Iterator[Difference]:
        old, new = self.old.leaves[one], self.new.leaves[two]
        if type(old) is not Static or type(new) is not Static:
            self.is_alike = type(old) is type(new) and old == new
        elif old != new:
            path = self.new.path(slot)
            if old.value is new.value:
                yield from _of_states(old, new, path)
            else:
                where = ARGUMENT if type(new.value) is Static else LEAF
                yield Difference(where, path, old.inner, new.inner)

    def _of_fields(self, one: Record, two: Record, slot: int) -> Iterator[Difference]:
        fields, others = list(_fields(one)), list(_fields(two))
        self.is_alike = [held[:2] for held in fields] == [held[:2] for held in others]
        for (where, step, old), (*_, new) in zip(fields, others, strict=False):
            if self.is_alike and Static(old) != Static(new):
                yield Difference(where, self.new.path(slot) + step, old, new)

    def _of_children(self, names: list[Static], others: list[Static], slot: int) -> Difference:
        path = self.new.path(slot)
        if all(type(name.value) is int for name in (*names, *others)):
            return Difference(SIZE, path, Size(len(names)), Size(len(others)))
        known, given = set(names), set(others)
        only_old = Keys(name for name in names if name not in given)
        return Difference(KEYS, path, only_old, Keys(n for n in others if n not in known))


def _of_states(old: Static, new: Static, path: str) -> Iterator[Difference]:
    """What a constant object holds, and held before."""
    before, now = old.state.attributes(), new.state.attributes()
    if before.keys() != now.keys():
        yield Difference(ATTRIBUTE, path, Keys(map(Static, before)), Keys(map(Static, now)))
        return
    for name, value in before.items():
        if value is not now[name] and Static(value) != Static(now[name]):
            yield Difference(ATTRIBUTE, f"{path}.{name}", value, now[name])


def _fields(record: Record) -> Iterator[tuple[str, str, Any]]:
    """What a node holds beside its children: what it is, how it is got from the node, the value.

    These are the meta fields and the static attributes; in a Dag its static leaves; of another
    class with functions of its own the items of its aux_data.
    """
    detail = record.detail
    if record.kind == "fields":
        yield from ((FIELD, f".{name}", value) for name, value in detail)
    elif type(detail) is Untraced:
        yield FIELD, ".tree (its structure)", detail.spec_key
        places = detail.spec.accessors() if detail.positions else []
        for position, static in zip(detail.positions, detail.statics, strict=True):
            yield LEAF, places[position].codify(".tree"), static.inner
    elif attributes := static_attributes(detail):
        yield from ((LEAF, f".{name}", value) for name, value in attributes.items())
    elif record.kind == "custom type":
        items = detail if type(detail) is tuple else (detail,)
        yield from ((FIELD, " (in its aux_data)", item) for item in items)
    elif detail is not None:
        what = "maxlen" if type(detail) is int else "default_factory"
        yield FIELD, f" (its {what})", detail
