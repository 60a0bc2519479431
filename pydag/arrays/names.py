# SPDX-License-Identifier: Apache-2.0
"""Names of arrays: grouped; and those that two models have in common, without wrappers' parts."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

# What torch.compile, FSDP and checkpointing put into names, wherever a module was wrapped.
WRAPPERS = frozenset({"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"})


def unwrapped(name: str) -> str:
    """A name without the parts that wrappers put into it."""
    if "_wrapped_module" not in name and "_orig_mod" not in name:
        return name
    return ".".join(part for part in name.split(".") if part not in WRAPPERS)


def in_common(first: Iterable[str], second: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """For each side, a dict from the names used for the comparison to its own names.

    A prefix, such as `module.`, is removed from the names of one side if more names match the
    other side without it.
    """
    sides = [{unwrapped(name): name for name in names} for names in (first, second)]
    if sides[0].keys() == sides[1].keys():
        return sides[0], sides[1]
    prefixes = [_prefix(sides[0], sides[1]), _prefix(sides[1], sides[0])]
    counts = [count for _, count in prefixes]
    number = counts.index(max(counts))
    if counts[number] > len(sides[0].keys() & sides[1].keys()):
        prefix = prefixes[number][0]
        sides[number] = {short.removeprefix(prefix): name for short, name in sides[number].items()}
    return sides[0], sides[1]


def _prefix(names: Iterable[str], others: Iterable[str]) -> tuple[str, int]:
    """The prefix without which the most names match the others, and the number of matches."""
    known = set(others)
    found: Counter[str] = Counter()
    for name in names:
        dot = name.find(".")
        while dot >= 0:
            if name[dot + 1 :] in known:
                found[name[: dot + 1]] += 1
            dot = name.find(".", dot + 1)
    best = found.most_common(2)
    if not best or (len(best) == 2 and best[0][1] == best[1][1]):  # no prefix, or a draw of two
        return "", 0
    return best[0]


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """The items that have each key, in order."""
    known = list(items)
    return paired(map(key, known), known)


def paired(keys: Iterable[K], items: Iterable[T]) -> dict[K, list[T]]:
    """The items that have each key, in order, where the keys are known."""
    found: defaultdict[K, list[T]] = defaultdict(list)
    for key, item in zip(keys, items, strict=True):
        found[key].append(item)
    return dict(found)
