# SPDX-License-Identifier: Apache-2.0
"""Arguments that are treated differently come apart: in each, what both held is its own object.

A derivative, say, is by an argument: the same model in another argument is a constant.
"""

from collections.abc import Hashable, Sequence
from typing import Any, TypeVar

import pydag._core as _core
from pydag.jaxinterop.prefixes.neutral import Slot, marked, meant
from pydag.jaxinterop.prefixes.treatments import LeafNumbers, Question, treatments
from pydag.jaxinterop.static.untraced import Options, Untraced
from pydag.typing import Dag as AnyDag

from .call import Call
from .dag import InnerDag, rebuilt

D = TypeVar("D", bound=InnerDag)


def parted_call(call: Call, groups: Sequence[Hashable]) -> Call:
    """A call in which arguments of different groups have no object in common.

    Args:
        groups: For each positional argument, and then for each keyword argument.
    """
    args, kwargs = marked(call._untraced.spec)
    found = _parted((*args, *kwargs.values()), groups, call._untraced)
    names = dict(zip(kwargs, found[len(args) :], strict=True))
    return _with_tree(call, (tuple(found[: len(args)]), names), Call)


def parted_arguments(by: InnerDag) -> InnerDag:
    """A tuple of arguments of which none has an object in common with another one."""
    arguments = marked(by._untraced.spec)
    return _with_tree(by, tuple(_parted(arguments, range(len(arguments)), by._untraced)), InnerDag)


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
    numbers, arguments = LeafNumbers(call._untraced.spec), [*args, *kwargs.values()]
    roots = [f"args[{i}]" for i in range(len(args))] + [f"kwargs[{name!r}]" for name in kwargs]
    given, named = numbers.children(0)
    by_name = {numbers.entry(place): place for place in numbers.children(named)}
    places = [*numbers.children(given), *(by_name[name] for name in kwargs)]
    found: dict[int, Any] = {}
    for group in dict.fromkeys(groups):
        spots = [i for i, each in enumerate(groups) if each == group]
        answers = treatments(
            {roots[i]: arguments[i] for i in spots},
            {roots[i]: prefixes[i] for i in spots},
            question,
            options,
        )
        found.update(zip(numbers.below(*(places[i] for i in spots)), answers, strict=True))
    untraced = call._untraced
    return rebuilt(untraced, [found[i] for i in untraced.traced_positions()], Call)


def _parted(
    arguments: Sequence[AnyDag], groups: Sequence[Hashable], untraced: Untraced
) -> list[AnyDag]:
    found: list[AnyDag] = list(arguments)
    options = untraced.options
    for group in dict.fromkeys(groups):
        spots = [i for i, each in enumerate(groups) if each == group]
        copies = _core.map(
            lambda slot: Slot(slot.index),
            tuple(arguments[i] for i in spots),
            (),
            namespace=options.namespace,
            identity=options.identity,
        )
        for i, copy in zip(spots, copies, strict=True):
            found[i] = copy
    return found


def _with_tree(dag: InnerDag, tree: AnyDag, cls: type[D]) -> D:
    """The Dag whose leaves stand where a tree has the slots of another Dag's leaves."""
    untraced = dag._untraced
    slots, spec = untraced.options.flatten(tree)
    static = dict(zip(untraced.positions, untraced.statics, strict=True))
    leaves = dict(zip(untraced.traced_positions(), dag._leaves, strict=True))
    positions = tuple(i for i, slot in enumerate(slots) if slot.index in static)
    statics = tuple(static[slots[i].index] for i in positions)
    found = Untraced(_core.spec_key(meant(spec)), positions, statics, untraced.options)
    return rebuilt(found, [leaves[slot.index] for slot in slots if slot.index in leaves], cls)
