# SPDX-License-Identifier: Apache-2.0
"""Arguments that are treated differently come apart: in each, what both held is its own object.

A derivative, say, is by an argument: the same model in another argument is a constant.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeVar

from pydag.jaxinterop.packed.dag import InnerDag, rebuilt
from pydag.jaxinterop.prefixes.arguments import roots_of
from pydag.jaxinterop.prefixes.treatments import Question, treatments
from pydag.jaxinterop.static.untraced import Options
from pydag.structure.apart import apart
from pydag.structure.listing import Listing

from .call import Call

D = TypeVar("D", bound=InnerDag)


def parted_call(call: Call, groups: Sequence[Hashable]) -> Call:
    """A call in which arguments of different groups have no object in common.

    Args:
        groups: For each positional argument, and then for each keyword argument.
    """
    listing = Listing.of(call._untraced.spec)
    args, kwargs = call.tree
    places = roots_of(listing, [*range(len(args)), *kwargs])
    return _parted(call, listing, dict(zip(places, groups, strict=True)), Call)


def parted_arguments(by: InnerDag) -> InnerDag:
    """A tuple of arguments of which none has an object in common with another one."""
    listing = Listing.of(by._untraced.spec)
    return _parted(by, listing, {child: child for child in listing.children(0)}, InnerDag)


def _parted(dag: InnerDag, listing: Listing, groups: Mapping[int, Hashable], cls: type[D]) -> D:
    """The Dag in which an object is another one in each group.

    Args:
        groups: Those of the arguments, by their positions.
    """

    def group(_: int, around: Hashable, children: Sequence[int]) -> list[Hashable]:
        return [groups.get(child, around) for child in children]

    untraced = dag._untraced
    found = apart(listing, untraced.spec, None, group)
    new, order = untraced.rearranged(found.spec, found.leaves)
    return rebuilt(new, [dag._leaves[i] for i in order], cls)


def per_leaf_of_groups(
    call: Call,
    prefixes: Sequence[Any],
    groups: Sequence[Hashable],
    question: Question,
    options: Options,
) -> Call:
    """What prefixes say about each leaf of a `parted_call`.

    Args:
        prefixes: For each argument, as the groups.
    """
    args, kwargs = call.tree
    listing, arguments = Listing.of(call._untraced.spec), [*args, *kwargs.values()]
    roots = [f"args[{i}]" for i in range(len(args))] + [f"kwargs[{name!r}]" for name in kwargs]
    places = list(roots_of(listing, [*range(len(args)), *kwargs]))
    found: dict[int, Any] = {}
    for group in dict.fromkeys(groups):
        spots = [i for i, each in enumerate(groups) if each == group]
        answers = treatments(
            {roots[i]: arguments[i] for i in spots},
            {roots[i]: prefixes[i] for i in spots},
            question,
            options,
        )
        below = listing.leaves_below(*(places[i] for i in spots))
        found.update(zip(below, answers, strict=True))
    untraced = call._untraced
    return rebuilt(untraced, [found[i] for i in untraced.traced_positions()], Call)
