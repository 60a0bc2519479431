# SPDX-License-Identifier: Apache-2.0
"""Which arguments of a call are meant, and whether each object gets one treatment."""

import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import optree

from pydag import SharingError, _core
from pydag.sharing import shared_objects
from pydag.typing import Dag, Path

from ._form import Options
from ._static import is_traced

Spot = int | str
"""A positional argument by its number, or a keyword argument by its name."""

Args = tuple[Any, ...]
Kwargs = dict[str, Any]


def as_numbers(numbers: int | Iterable[int] | None) -> tuple[int, ...]:
    """`argnums` of any form as a tuple; TypeError for anything but integers."""
    if numbers is None:
        return ()
    if isinstance(numbers, Iterable):
        return tuple(operator.index(number) for number in numbers)
    return (operator.index(numbers),)


def as_names(names: str | Iterable[str] | None) -> tuple[str, ...]:
    """`argnames` of any form as a tuple."""
    if names is None:
        return ()
    return (names,) if isinstance(names, str) else tuple(names)


class Chosen(NamedTuple):
    """Arguments chosen by number (negative ones count from the end) and by name."""

    numbers: tuple[int, ...]
    names: tuple[str, ...]

    @classmethod
    def of(
        cls,
        fun: Callable[..., Any],
        numbers: int | Iterable[int] | None,
        names: str | Iterable[str] | None,
    ) -> "Chosen":
        """Where only numbers or only names are given, the signature tells the other."""
        chosen = cls(as_numbers(numbers), as_names(names))
        if (numbers is None) == (names is None):
            return chosen
        try:
            parameters = inspect.signature(fun).parameters.values()
        except (ValueError, TypeError):
            return chosen
        both = [
            (i, parameter.name)
            for i, parameter in enumerate(parameters)
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        ]
        if names is None:
            return cls(chosen.numbers, tuple(name for i, name in both if i in chosen.numbers))
        return cls(tuple(i for i, name in both if name in chosen.names), chosen.names)

    def spots(self, args: Args, kwargs: Kwargs) -> AbstractSet[Spot]:
        """Which arguments of this call are meant."""
        count = len(args)
        numbers: set[Spot] = {i + count if i < 0 else i for i in self.numbers}
        return numbers.intersection(range(count)).union(n for n in self.names if n in kwargs)


def owners(args: Args, kwargs: Kwargs, options: Options) -> list[Spot]:
    """For each distinct leaf of `(args, kwargs)`, the argument in which the walk first meets it."""
    names: list[str] = options.flatten(kwargs)[1].entries()
    found: list[Spot] = []

    def add(spot: Spot, tree: Dag) -> None:
        found.extend([spot] * (len(options.leaves(tree)) - len(found)))

    for i in range(len(args)):
        add(i, args[: i + 1])
    for i, name in enumerate(names):
        add(name, (args, {name: kwargs[name] for name in names[: i + 1]}))
    return found


def path_text(tree: Dag, path: Path, root: str, options: Options) -> str:
    """A path as a Python expression, such as `args[0]['layers'][3].w`."""
    text = root
    for entry in path:
        for accessor, child in _open(tree, options):
            if accessor[0].entry == entry:
                text, tree = accessor.codify(text), child
                break
    return shortened(text)


def _open(node: Dag, options: Options) -> Iterable[tuple[optree.PyTreeAccessor, Dag]]:
    """The children of a node, in every slot, and how to get at them."""
    accessors, children, _ = _core.flatten_with_accessor(
        node, lambda child: child is not node, True, options.namespace, "nodes"
    )
    return zip(accessors, children, strict=True)


def argument_text(args: Args, kwargs: Kwargs, path: Path, options: Options) -> str:
    """The text of a path into `(args, kwargs)`."""
    group, *rest = path
    if group == 0:
        return path_text(args, tuple(rest), "args", options)
    return path_text(kwargs, tuple(rest), "kwargs", options)


def check_one_treatment(
    args: Args,
    kwargs: Kwargs,
    treatment: Callable[[Spot], str],
    advice: str,
    options: Options,
) -> None:
    """Raises `SharingError` if two arguments with different treatments hold one traced leaf.

    Looking at the shared objects and the paths to them is enough: where a second argument reaches
    a leaf, the walk through it comes to an object that it has met in the first one.
    """
    for shared in shared_objects(
        (args, kwargs), namespace=options.namespace, identity=options.identity
    ):
        first, *others = shared.paths
        wanted = treatment(first[1])
        other = next((path for path in others if treatment(path[1]) != wanted), None)
        if other is None or not any(map(is_traced, options.leaves(shared.object))):
            continue
        text = [argument_text(args, kwargs, path, options) for path in (first, other)]
        raise SharingError(
            f"one object is both {wanted} and {treatment(other[1])}\n"
            f"  {text[0]} is {wanted}\n"
            f"  {text[1]}, the same object, is {treatment(other[1])}\n"
            f"  {advice}"
        )


def shortened(text: str, limit: int = 600) -> str:
    """A text of readable length: the middle of a very long one is left out."""
    return text if len(text) <= limit else f"{text[: limit // 2]} ... {text[-limit // 2 :]}"


def joined(picked: Sequence[int], chosen: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """The sequence that has `chosen` at the positions `picked`, and `others` in between."""
    items = list(others)
    for position, item in zip(picked, chosen, strict=True):
        items.insert(position, item)
    return items
