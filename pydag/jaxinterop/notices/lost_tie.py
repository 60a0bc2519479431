# SPDX-License-Identifier: Apache-2.0
"""Warns, when a function is traced, that it returns what it was given with a tie lost.

The mistake is mostly a plain `jax.tree.map`, `jax.grad` or optimizer inside of a function of a
model with tied weights: its result looks like the model, and is another one.
"""

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import jax.numpy as jnp

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.jaxinterop.foreign import optax_private
from pydag.jaxinterop.messages.naming import Source
from pydag.jaxinterop.prefixes.arguments import Args, Kwargs
from pydag.jaxinterop.static.leaves import Static, is_traced
from pydag.jaxinterop.static.untraced import Options
from pydag.jaxinterop.structure.pairing import Pair, Pairs, numbers_of_alike
from pydag.structure.listing import Listing, shorten
from pydag.structure.walk import Walk
from pydag.typing import Leaf

from .parallel_copies import parallel_copies


class LostTieWarning(UserWarning):
    """A compiled function returns a structure that it was given, with a tie lost.

    Two places that hold one object in an argument hold two in what the function returns, and all
    else agrees: structure, shapes and types. It is said once for each trace, and not where the
    function calls `pydag.untie`, nor where parallel copies came apart: whole items of a dict,
    attributes or fields that hold the same objects, such as the parameters and the target network
    of a training state, or the two models of `optax.lookahead`; nor where arrays that are items of
    a tuple did.
    """


def _numbers(listing: Listing, leaves: Sequence[Leaf], known: dict[Any, int]) -> list[int]:
    """A number for each node: equal for nodes that are alike, but for their arrays' values."""
    keys = dict(zip(listing.leaves, map(_leaf_key, leaves), strict=True))
    return numbers_of_alike(listing, keys.__getitem__, known)


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
            advice = _ADVICE + (_OF_LEAVES if found.is_leaf else "")
            source.warn(f"{text}{found.text('returned')}  {advice}", LostTieWarning)

    def lost(self, tree: Any, root: str) -> "LostTie | None":
        """A tie that an argument has, and its copy somewhere in a tree has lost; None for none.

        Args:
            root: Begins the paths in the tree.
        """
        leaves, spec = self._options.flatten(tree)
        known, listing = dict[Any, int](), Listing.of(spec)
        numbers = _numbers(listing, leaves, known)
        for argument in self._arguments:
            given = Listing.of(argument.spec)
            number = _numbers(given, argument.leaves, known)[0]
            for position, other in enumerate(numbers):
                if other == number and not listing.records[position].is_alias:
                    pair = _lost(given, listing, position, spec.namespace)
                    if pair is not None:
                        one, two = _texts(given, pair.given, argument.root)
                        is_leaf = given.records[given.target(pair.given[0])].is_leaf
                        first, second = _texts(listing, pair.returned, root)
                        return LostTie(one, two, first, second, is_leaf)
        return None


class LostTie(NamedTuple):
    """The paths of two places that held one object, and now hold two."""

    one: str
    other: str
    first: str
    second: str
    is_leaf: bool  # whether the object is a leaf

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


def loses_a_tie(given: PyDagSpec, returned: PyDagSpec) -> bool:
    """Whether a tie is lost in a structure that is alike but for sharing."""
    return _lost(Listing.of(given), Listing.of(returned), 0, given.namespace) is not None


def _lost(given: Listing, returned: Listing, root: int, namespace: str) -> _Lost | None:
    """Walks both structures together; they are alike but for sharing.

    Parallel copies may come apart: an initial state often holds one part twice, such as a network
    and its target; and `optax.lookahead` starts with one model twice. Inside of each of them ties
    are looked for.
    """
    items, copies = frozenset(_items(given)), _copies(given, namespace)
    parts = Pairs(given, returned, (0, root))
    for part in parts:
        met: dict[int, Pair] = {}  # where a node was met first, by the node
        inside = Walk([part], key=itemgetter(2))
        for pair in inside:
            before = met.setdefault(pair.one, pair)
            if before is pair:
                below = parts.below(pair)
                parts.add([p for p in below if p.slots[0] in copies])
                inside.add([p for p in below if p.slots[0] not in copies])
            elif before.other != pair.other:
                if pair.slots[0] not in items or before.slots[0] not in items:
                    slots = zip(before.slots, pair.slots, strict=True)
                    return _Lost(*slots)
                parts.add([pair])
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


def _copies(given: Listing, namespace: str) -> frozenset[int]:
    """The second and further ones of parallel copies, and of arrays that are items of one tuple."""
    groups = [c for c in parallel_copies(given) if not _are_deliberate(given, c, namespace)]
    for position, record in enumerate(given.records):
        if isinstance(record.type, type) and issubclass(record.type, tuple):
            children = given.children(position)
            groups.append([c for c in children if given.records[given.target(c)].is_leaf])
    return frozenset(child for group in groups for child in group[1:])


def _are_deliberate(given: Listing, copies: Sequence[int], namespace: str) -> bool:
    """Whether parallel copies are one on purpose: items of a list, or one layer of a module.

    Fields of a namedtuple, and dicts that a module has, hold moments that start as the same zeros.
    """
    records = given.records
    holder, targets = records[given.parents[copies[0]]], set(map(given.target, copies))
    if holder.kind in ("list", "tuple") or not isinstance(holder.type, type):
        return True
    kinds = holder.type, records[given.target(copies[0])].type
    return len(targets) == 1 and all(_core.is_module(cls, namespace) for cls in kinds)


def _texts(listing: Listing, places: tuple[int, int], root: str) -> Iterator[str]:
    return (shorten(listing.path_text(place, root)) for place in places)


_ADVICE = (
    "Map with pydag.dag_map where it maps with jax.tree.map; take pydag.jaxinterop's grad, "
    "optimizer and apply_updates; or tie the result again (pydag.retie). If it shall be "
    "untied, let it call pydag.untie."
)
_OF_LEAVES = " If the two only start equal, copy one: pj.tree.copy(...)."
