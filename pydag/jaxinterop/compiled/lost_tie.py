# SPDX-License-Identifier: Apache-2.0
"""Warns, when a function is traced, that it returns what it was given with a tie lost.

The mistake is mostly a plain `jax.tree.map`, `jax.grad` or optimizer inside of a function of a
model with tied weights: its result looks like the model, and is another one.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp

from pydag._core import PyDagSpec
from pydag.jaxinterop import optax_private
from pydag.jaxinterop.messages.naming import Source
from pydag.jaxinterop.prefixes.arguments import Args, Kwargs
from pydag.jaxinterop.static.leaves import Static, is_traced
from pydag.jaxinterop.static.untraced import Options
from pydag.structure.listing import Listing, shorten
from pydag.typing import Leaf


class LostTieWarning(UserWarning):
    """A compiled function returns a structure that it was given, with a tie lost.

    Two places that hold one object in an argument hold two in what the function returns, and all
    else agrees: structure, shapes and types. It is said once for each trace, and not where the
    function calls `pydag.untie`, nor where whole items of a dict came apart, such as the parameters
    and the target network of a training state, or the two models of `optax.lookahead`.
    """


class _Numbers:
    """A number for each unfolded structure: equal for structures that are alike."""

    def __init__(self) -> None:
        self._known: dict[Any, int] = {}

    def of(self, listing: Listing, leaves: Sequence[Leaf]) -> list[int]:
        """The number of each node of a listing, in linear time."""
        found = [0] * len(listing.records)
        given = dict(zip(listing.leaves, leaves, strict=True))
        for position in listing.upwards():
            record = listing.records[position]
            if record.is_alias:
                found[position] = found[listing.target(position)]
                continue
            if position in given:
                key: Any = _leaf_key(given[position])
            else:
                children = listing.children(position)
                entries = tuple(Static(listing.records[child].entry) for child in children)
                below = tuple(found[child] for child in children)
                key = record.kind, record.type, Static(record.detail), entries, below
            found[position] = self._known.setdefault(key, len(self._known))
        return found


def _leaf_key(leaf: Leaf) -> Any:
    """Equal for arrays of one shape and dtype, and for leaves that are static and equal.

    A number counts as an array, since plain functions of JAX make one of it.
    """
    if is_traced(leaf):
        dtype = getattr(leaf, "dtype", None)
        return getattr(leaf, "shape", ()), jnp.result_type(leaf) if dtype is None else dtype
    return Static(leaf)


class _Argument(NamedTuple):
    """An argument in which something is shared."""

    root: str
    spec: PyDagSpec
    leaves: Sequence[Leaf]


class Ties:
    """What is tied in the arguments of a call."""

    def __init__(self, arguments: Sequence[_Argument], options: Options) -> None:
        self._arguments, self._options = arguments, options

    @classmethod
    def of(cls, args: Args, kwargs: Kwargs, options: Options) -> "Ties | None":
        """What is tied in each of the arguments; None if nothing is."""
        named = [(f"args[{i}]", arg) for i, arg in enumerate(args)]
        named += [(f"kwargs[{name!r}]", arg) for name, arg in kwargs.items()]
        found = []
        for root, arg in named:
            leaves, spec = options.flatten(arg)
            if spec.num_shared:
                found.append(_Argument(root, spec, leaves))
        return cls(found, options) if found else None

    def check(self, result: Any, source: Source) -> None:
        """Warns if an argument comes back with a tie lost."""
        if (found := self.lost(result, "result")) is not None:
            text = f"{source.text} returns what it was given, but with a tie lost\n"
            source.warn(f"{text}{found.text('returned')}  {_ADVICE}", LostTieWarning)

    def lost(self, tree: Any, root: str) -> "LostTie | None":
        """A tie that an argument has, and its copy somewhere in a tree has lost; None for none.

        Args:
            root: Begins the paths in the tree.
        """
        leaves, spec = self._options.flatten(tree)
        numbers, listing = _Numbers(), Listing.of(spec)
        known = numbers.of(listing, leaves)
        for argument in self._arguments:
            given = Listing.of(argument.spec)
            number = numbers.of(given, argument.leaves)[0]
            for position, other in enumerate(known):
                if other == number and not listing.records[position].is_alias:
                    pair = _lost(given, listing, position)
                    if pair is not None:
                        one, two = _texts(given, pair.given, argument.root)
                        return LostTie(one, two, *_texts(listing, pair.returned, root))
        return None


class LostTie(NamedTuple):
    """The paths of two places that held one object, and now hold two."""

    one: str
    other: str
    first: str
    second: str

    def text(self, now: str) -> str:
        """Both sides, in lines.

        Args:
            now: Says where the tree comes from that has lost the tie.
        """
        return (
            f"  given: {self.one} and {self.other} are one object\n"
            f"  {now}: {self.first} and {self.second} are two\n"
        )


class _Lost(NamedTuple):
    """Two places: in the argument they have one object, in the result two."""

    given: tuple[int, int]
    returned: tuple[int, int]


def _lost(given: Listing, returned: Listing, root: int) -> _Lost | None:
    """Walks both structures together; they are alike but for sharing.

    Whole items of a dict argument may come apart: an initial state often holds one part twice, such
    as a network and its target; and `optax.lookahead` starts with one model twice. Inside of each
    item ties are looked for.
    """
    items = frozenset(_items(given))
    parts = [(0, root)]
    while parts:
        met: dict[int, tuple[int, int]] = {}  # where a node was met first, by the node
        pending = [parts.pop()]
        while pending:
            one, other = pending.pop()
            node, target = given.target(one), returned.target(other)
            if node not in met:
                met[node] = one, other
                pending += reversed(_pairs(given.children(node), returned.children(target)))
                continue
            before = met[node]
            if returned.target(before[1]) == target:
                continue
            if one not in items or before[0] not in items:
                return _Lost((before[0], one), (before[1], other))
            parts.append((node, target))
    return None


def _items(given: Listing) -> Sequence[int]:
    """The items of an argument that is a dict, and the models of `optax.lookahead` anywhere in it.

    Those that are leaves aren't meant.
    """
    cls, pair = given.records[0].type, optax_private.lookahead_class()
    wholes = [0] if isinstance(cls, type) and issubclass(cls, dict) else []
    if pair is not None:
        wholes += [i for i, record in enumerate(given.records) if record.type is pair]
    children = [child for whole in wholes for child in given.children(whole)]
    return [child for child in children if not given.records[given.target(child)].is_leaf]


def _pairs(given: Sequence[int], returned: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip(given, returned, strict=True))


def _texts(listing: Listing, places: tuple[int, int], root: str) -> Iterator[str]:
    return (shorten(listing.path_text(place, root)) for place in places)


_ADVICE = (
    "Map with pydag.dag_map where it maps with jax.tree.map; take pydag.jaxinterop's grad, "
    "optimizer and apply_updates; or tie the result again (pydag.retie). If it shall be "
    "untied, let it call pydag.untie."
)
