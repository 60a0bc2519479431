# SPDX-License-Identifier: Apache-2.0
"""Refs taken out of DAGs: what JAX is given says at which place which ref stands, by number.

A wrapper takes the refs out of its arguments and lends them to the function in its own way; the
function's tree has them at their places. What the function returns has a number again where one of
them stands, so the caller gets the very object that he passed.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from pydag.jaxinterop.messages.roots import place_text
from pydag.jaxinterop.static.differentiable import holds_ref, is_ref
from pydag.jaxinterop.static.leaves import Static
from pydag.jaxinterop.static.untraced import Untraced
from pydag.typing import Leaf


class _Dag(Protocol):
    """What is asked of a `Dag`."""

    _untraced: Untraced
    _leaves: Sequence[Leaf]

    def _take_apart(self) -> tuple[Untraced, Sequence[Leaf]]: ...

    def _with(self, untraced: Untraced, leaves: Sequence[Leaf]) -> "Self": ...


D = TypeVar("D", bound=_Dag)


class RefNumber:
    """Says which ref stands at a place. It is in no tree that a user sees."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return type(other) is RefNumber and self.number == other.number

    def __hash__(self) -> int:
        return hash((RefNumber, self.number))

    def __repr__(self) -> str:
        return f"ref {self.number}"


class RefTable:
    """Refs with numbers.

    Args:
        refs: In order.
    """

    def __init__(self, refs: Iterable[Any] = ()) -> None:
        self.refs = list(refs)
        self._numbers = {id(ref): i for i, ref in enumerate(self.refs)}

    @classmethod
    def of(cls, leaves: Sequence[Leaf]) -> "RefTable":
        """The refs among leaves, in their order; nobody adds to this table."""
        return cls(filter(is_ref, leaves)) if holds_ref(leaves) else NO_REFS

    def number(self, ref: Any, adds: bool = False) -> int | None:
        """The number of a ref; None where it has none.

        Args:
            adds: Whether it gets one then.
        """
        found = self._numbers.get(id(ref))
        if found is None and adds:
            found = self._numbers[id(ref)] = len(self.refs)
            self.refs.append(ref)
        return found

    def hide(self, dag: D, adds: bool = False) -> D:
        """A Dag that has numbers, which are static, for refs.

        Args:
            adds: Whether refs that aren't in the table are added; else they stay in the Dag.
        """
        if not (self.refs or adds):
            return dag
        untraced, leaves = dag._take_apart()
        known = {
            position: static.value
            for position, static in zip(untraced.positions, untraced.statics, strict=True)
            if is_ref(static.value)
        }
        if not known and not holds_ref(leaves):
            return dag
        statics = dict(zip(untraced.positions, untraced.statics, strict=True))
        rest: list[Leaf] = []
        for position, leaf in zip(untraced.traced_positions(), leaves, strict=True):
            if is_ref(leaf):
                known[position] = leaf
            else:
                rest.append(leaf)
        kept = set()
        for position, ref in known.items():
            number = self.number(ref, adds)
            if number is None:
                kept.add(position)
            else:
                statics[position] = Static(RefNumber(number))
        if kept.difference(untraced.positions):
            skipped = statics.keys()
            every = dict(zip(untraced.traced_positions(), leaves, strict=True))
            rest = [leaf for position, leaf in every.items() if position not in skipped]
        return _with_statics(dag, untraced, statics, rest)

    def show(self, dag: D) -> D:
        """A Dag that has the refs, which are static, for their numbers."""
        if not self.refs:
            return dag
        untraced = self.shown(dag._untraced)
        return dag if untraced is dag._untraced else dag._with(untraced, dag._leaves)

    def tree(self, dag: Any) -> Any:
        """The tree of a Dag, with the refs for their numbers."""
        return self.show(dag).tree

    def shown(self, untraced: Untraced) -> Untraced:
        """`show`, for the untraced part of a Dag."""
        if not any(type(static.value) is RefNumber for static in untraced.statics):
            return untraced
        statics = tuple(
            Static(self.refs[x.value.number]) if type(x.value) is RefNumber else x
            for x in untraced.statics
        )
        return untraced._replace(statics=statics)


NO_REFS = RefTable()
"""An empty table, to which nobody adds."""


def numbers_of_refs(untraced: Untraced) -> dict[int, int]:
    """The numbers that stand for refs, by their positions among all leaves."""
    pairs = zip(untraced.positions, untraced.statics, strict=True)
    return {position: x.value.number for position, x in pairs if type(x.value) is RefNumber}


class TracedRefs(NamedTuple):
    """An untraced part in which refs count as traced leaves: a derivative has arrays for them.

    Args:
        numbers: For each of its traced leaves the number of the ref there; None for an array.
    """

    untraced: Untraced
    numbers: tuple[int | None, ...]

    @classmethod
    def of(cls, untraced: Untraced) -> "TracedRefs":
        """The refs whose numbers are static in this untraced part."""
        known = numbers_of_refs(untraced)
        pairs = zip(untraced.positions, untraced.statics, strict=True)
        kept = [(p, x) for p, x in pairs if p not in known]
        shown = untraced._replace(
            positions=tuple(p for p, _ in kept), statics=tuple(x for _, x in kept)
        )
        return cls(shown, tuple(known.get(p) for p in shown.traced_positions()))

    def joined(self, leaves: Iterable[Leaf], of_refs: Sequence[Leaf]) -> list[Leaf]:
        """All leaves: those of arrays, and those of refs, by number."""
        rest = iter(leaves)
        return [next(rest) if n is None else of_refs[n] for n in self.numbers]

    def place(self, i: int, root: str) -> str:
        """The path of one of the leaves."""
        position = self.untraced.traced_positions()[i]
        return place_text(self.untraced.spec.accessors()[position], root)


def _with_statics(dag: D, untraced: Untraced, statics: dict[int, Static], leaves: Any) -> D:
    positions = tuple(sorted(statics))
    changed = untraced._replace(
        positions=positions, statics=tuple(statics[position] for position in positions)
    )
    return dag._with(changed, leaves)


def both_texts(function: str, where: str) -> str:
    """The text of JAX's error about a ref that a function takes from around it, too."""
    return (
        f"a mutable array reference was both closed over by {function} and passed as the "
        f"argument {where}\n"
        "  Inside they would be two, with two contents. Pass it as an argument alone, or close "
        "over it alone."
    )
