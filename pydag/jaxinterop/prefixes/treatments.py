# SPDX-License-Identifier: Apache-2.0
"""What is done with each leaf of a call (an axis, a sharding, donation): one answer per object.

Treatments come as a tree prefix, in which one treatment stands for everything below it. JAX would
follow each path on its own; here all paths to one leaf must agree, since it is passed once.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple

import optree
from jax.sharding import NamedSharding, PartitionSpec

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.errors import SharingError
from pydag.jaxinterop.messages.roots import place_text, shortened
from pydag.jaxinterop.static.bare_arrays import without_bare
from pydag.jaxinterop.static.positions import static_positions
from pydag.jaxinterop.static.untraced import Options
from pydag.structure.listing import Listing
from pydag.structure.text import short_repr
from pydag.structure.walk import Walk
from pydag.typing import Dag, Leaf, Path

Way = list[tuple[optree.PyTreeAccessor, Dag]]
"""The objects from a root to one below it, each with the way there."""


COPIES = 'pj.tree.copy(...) makes copies; with identity="nodes" an array at two places is two.'
"""What to do where one array is meant as two."""


class _Region(NamedTuple):
    """A part of a tree that has one treatment."""

    root: str
    accessor: optree.PyTreeAccessor
    tree: Dag
    treatment: Any
    leaves: list[int]  # the numbers of its leaves, in the order in which the tree has them


class Question(NamedTuple):
    """What a prefix says about a leaf, in words for error messages."""

    name: str  # of the prefix, such as "vmap in_axes"
    describe: Callable[[Any], str]  # "mapped over axis 0"
    advice: str
    accepts: Callable[[Any], bool] = lambda _: True  # other things may stand for static leaves
    # Whether two treatments of a leaf are one: axes -1 and 1 of a matrix are.
    are_one: Callable[[Any, Any, Leaf], bool] = lambda first, second, _: first == second
    is_answer: Callable[[Any], bool] | None = None  # whether a node of the prefix is no node


def one_level(prefix: Any, options: Options) -> tuple[list[Any], list[Any], PyDagSpec]:
    """Accessors and children of a prefix's root, and its spec: a leaf where it is a treatment."""
    return _core.flatten_with_accessor(
        prefix,
        is_leaf=lambda child: child is not prefix,
        none_is_leaf=True,
        namespace=options.namespace,
        identity="nodes",
    )


def distinct(prefix: Any, question: Question, options: Options) -> list[Any]:
    """The treatments that occur in a prefix."""
    found: list[Any] = []
    for treatment in _core.leaves(
        prefix, none_is_leaf=True, namespace=options.namespace, identity="nodes"
    ):
        if question.accepts(treatment) and treatment not in found:
            found.append(treatment)
    if not found and one_level(prefix, options)[2].is_leaf():
        raise TypeError(f"{question.name} can't be {shortened(repr(prefix))}")
    return found


def _regions(
    root: str,
    tree: Dag,
    listing: Listing,
    position: int,
    prefix: Any,
    question: Question,
    options: Options,
) -> Iterator[_Region]:
    """The regions of one tree. An object under one part of the prefix is visited once.

    Args:
        position: Where the tree stands in the structure that the listing is of.
    """
    first = (prefix, tree, position, optree.PyTreeAccessor())
    walk = Walk([first], key=lambda each: (id(each[0]), listing.target(each[2])))
    for prefix, tree, position, accessor in walk:
        entries, parts, spec = one_level(prefix, options)
        if spec.is_leaf() or (question.is_answer is not None and question.is_answer(prefix)):
            yield _Region(root, accessor, tree, prefix, listing.leaves_below(position))
            continue
        try:
            children = spec.flatten_up_to(tree)
        except ValueError:
            where, value = place_text(accessor, root), repr(options.flatten(tree)[1])
            raise ValueError(
                f"{question.name} must be a tree prefix of the corresponding value, but for "
                f"{where}, which is {shortened(value)}, there is "
                f"{short_repr(prefix)}{_made_of_object(prefix, tree, question)}"
                f"{_other_count(prefix, tree, accessor, options)}"
            ) from None
        positions = _children_at(listing, position, [entry[0].entry for entry in entries])
        ways = (accessor + entry for entry in entries)
        walk.add(list(zip(parts, children, positions, ways, strict=True)))


def _other_count(prefix: Any, tree: Dag, accessor: optree.PyTreeAccessor, options: Options) -> str:
    """What is wrong where a node has fewer or more children in the prefix than in the tree."""
    are_sequences = isinstance(prefix, tuple | list) and isinstance(tree, tuple | list)
    if not accessor and are_sequences and len(prefix) != len(tree):
        return f"\n  There are {len(tree)} for {len(prefix)} entries: one is needed for each."
    if type(prefix) is not type(tree):
        return ""
    counts = [
        len(_core.open_one_level(node, namespace=options.namespace)[0]) for node in (prefix, tree)
    ]
    if counts[0] == counts[1]:
        return ""
    return (
        f"\n  The prefix has {counts[0]} children there, and the argument has {counts[1]} children."
    )


def _made_of_object(prefix: Any, tree: Dag, question: Question) -> str:
    """What to do where a dict was given for an object that isn't one; else nothing."""
    if not isinstance(prefix, dict) or isinstance(tree, dict | list | tuple) or tree is None:
        return ""
    axes = [x for x in prefix.values() if type(x) is int]
    names = [name for name, x in prefix.items() if x is not None]
    chosen = repr(names[0] if len(names) == 1 else names) if names else "pattern"
    answer = axes[0] if axes else "sharding" if "sharding" in question.name else 0
    name = type(tree).__name__
    if isinstance(tree, Mapping):
        made = "flax.core.freeze" if type(tree).__module__.startswith("flax.") else name
        return f"\n  The prefix of a {name} is another one, such as {made}({short_repr(prefix)})."
    return (
        f"\n  The prefix of an object of the class {name} is another {name}, or one answer for all "
        f"of it. Make it of the object: pydag.dag_map(lambda chosen: {answer} if chosen else None, "
        f"pydag.dag_mask(obj, {chosen}))."
    )


def _children_at(listing: Listing, position: int, entries: list[Any]) -> list[int]:
    """The positions to which all entries of a node lead, from the node at a position."""
    children = listing.children(listing.target(position))
    own = [listing.records[child].entry for child in children]
    if own == entries:  # the entries of a custom node need not be hashable
        return children
    known = dict(zip(own, children, strict=True))
    return [known[entry] for entry in entries]


def treatments(
    trees: Mapping[str, Dag],
    prefixes: Mapping[str, Any],
    question: Question,
    options: Options,
    only: Container[int] | None = None,
) -> list[Any]:
    """The treatment of each distinct leaf of the trees, which have one identity table.

    A leaf that JAX doesn't trace has none.

    Args:
        trees: By the names that they have in messages.
        prefixes: The treatments, for each of the trees.
        only: The leaves that are meant, by their numbers; the others have no treatment.

    Raises:
        SharingError: Two paths to a leaf that JAX traces give it two treatments.
        ValueError: A prefix doesn't fit its tree.
        TypeError: A leaf that JAX traces is given something that is no treatment.
    """
    flattened, spec = options.flatten(tuple(trees.values()), tuple(trees))
    leaves = without_bare(flattened)
    first, *others = prefixes.values()
    if one_level(first, options)[2].is_leaf() and all(prefix is first for prefix in others):
        return [first] * len(leaves)
    static = frozenset(static_positions(leaves, spec, tuple(trees)))
    meant = [i not in static and (only is None or i in only) for i in range(len(leaves))]
    for_each = _one_for_each(trees, prefixes, flattened, spec, question, options)
    if for_each is not None and all(map(question.accepts, compress(for_each, meant))):
        return [x if is_meant else None for x, is_meant in zip(for_each, meant, strict=True)]
    found: list[_Region | None] = [None] * len(leaves)
    listing = Listing.of(spec)
    roots = zip(prefixes.items(), trees.values(), listing.children(0), strict=True)
    for (root, prefix), tree, position in roots:
        for region in _regions(root, tree, listing, position, prefix, question, options):
            for number in region.leaves:
                if not meant[number]:
                    continue
                known = found[number]
                if not question.accepts(region.treatment):
                    where = place_text(_way(region, number, options)[-1][0], root)
                    raise TypeError(
                        f"{question.name} can't be {shortened(repr(region.treatment))}, "
                        f"as it is for {where}"
                    )
                if known is None:
                    found[number] = region
                elif not question.are_one(known.treatment, region.treatment, leaves[number]):
                    raise _conflict(number, known, region, question, options)
    return [None if region is None else region.treatment for region in found]


def _one_for_each(
    trees: Mapping[str, Dag],
    prefixes: Mapping[str, Any],
    leaves: Sequence[Leaf],
    spec: PyDagSpec,
    question: Question,
    options: Options,
) -> list[Any] | None:
    """The treatments, where the prefixes have one for each leaf of trees that share nothing.

    None where there is more to look at.
    """
    if spec.num_shared > 0:
        return None
    found: list[Any] = []
    for tree, prefix, part in zip(trees.values(), prefixes.values(), spec.children(), strict=True):
        given, structure = _core.flatten(
            prefix,
            is_leaf=question.is_answer,
            none_is_leaf=True,
            namespace=options.namespace,
            identity="nodes",
        )
        own = leaves[len(found) : len(found) + part.num_leaves]
        if structure.is_leaf() and not own:
            continue
        if structure.num_shared > 0 or len(given) != len(own):
            return None
        try:
            parts = structure.flatten_up_to(tree)
        except ValueError:
            return None
        if not _core.are_same_objects(parts, own):
            return None
        found.extend(given)
    return found


def _conflict(
    number: int, first: _Region, second: _Region, question: Question, options: Options
) -> SharingError:
    """The paths are to the outermost object that both regions share, on the way to the leaf."""
    ways = [_way(region, number, options) for region in (first, second)]
    while all(len(way) > 1 for way in ways) and ways[0][-2][1] is ways[1][-2][1]:
        for way in ways:
            way.pop()
    paths = [
        place_text(way[-1][0], region.root)
        for way, region in zip(ways, (first, second), strict=True)
    ]
    wanted = [question.describe(region.treatment) for region in (first, second)]
    return SharingError(
        f"one object is both {wanted[0]} and {wanted[1]}\n"
        f"  {paths[0]} is {wanted[0]}\n"
        f"  {paths[1]}, the same object, is {wanted[1]}\n"
        f"  {question.advice}"
    )


def _way(region: _Region, number: int, options: Options) -> Way:
    """The objects from the root of a region to a leaf."""
    accessors, _, _ = _core.flatten_with_accessor(
        region.tree, namespace=options.namespace, identity=options.identity
    )
    path = accessors[region.leaves.index(number)]
    return _walk(region.tree, path.path, region.accessor, options)


def _walk(tree: Dag, path: Path, start: optree.PyTreeAccessor, options: Options) -> Way:
    way = [(start, tree)]
    for entry in path:
        accessor, tree = way[-1]
        children = zip(*one_level(tree, options)[:2], strict=True)
        way.append(next((accessor + a, child) for a, child in children if a[0].entry == entry))
    return way


def path_text(tree: Dag, path: Path, root: str, options: Options) -> str:
    """A path as a Python expression, such as `carry['layers'][3].w`."""
    accessor, _ = _walk(tree, path, optree.PyTreeAccessor(), options)[-1]
    return place_text(accessor, root)


def _ndim(leaf: Leaf) -> int:
    return int(getattr(leaf, "ndim", 0))


def _is_one_axis(first: Any, second: Any, ndim: int) -> bool:
    """Whether two axes are one; negative ones count from the end."""
    if first is None or second is None:
        return first is second
    both = (first, second)
    return len({axis + ndim if -ndim <= axis < 0 else axis for axis in both}) == 1


def is_one_axis_in(first: Any, second: Any, leaf: Leaf) -> bool:
    """Whether two axes of an array that is mapped over are one."""
    return _is_one_axis(first, second, _ndim(leaf))


def is_one_axis_out(first: Any, second: Any, leaf: Leaf) -> bool:
    """Whether two axes of a mapped result are one; it gets one dimension more."""
    return _is_one_axis(first, second, _ndim(leaf) + 1)


def _written_out(spec: Any, ndim: int) -> list[Any]:
    """What a PartitionSpec says of each dimension."""
    parts = [() if part is None else part for part in (() if spec is None else spec)]
    parts += [()] * (ndim - len(parts))
    return [part if isinstance(part, tuple) else (part,) for part in parts]


def is_one_sharding(first: Any, second: Any, leaf: Leaf) -> bool:
    """Whether two shardings, or two PartitionSpecs, are one for an array."""
    if first is None or second is None or first == second:
        return bool(first == second)
    if isinstance(first, NamedSharding) and isinstance(second, NamedSharding):
        homes = [(s.mesh, s.memory_kind) for s in (first, second)]
        return homes[0] == homes[1] and is_one_sharding(first.spec, second.spec, leaf)
    if isinstance(first, PartitionSpec) and isinstance(second, PartitionSpec):
        return _written_out(first, _ndim(leaf)) == _written_out(second, _ndim(leaf))
    return False
