# SPDX-License-Identifier: Apache-2.0
"""Whether two modules have the same ties, and what is different, in words."""

from collections.abc import Iterator, Sequence
from typing import Any

from pydag.sharing.prefixes import in_common

from .given import Given, read
from .identity import how_they_compare

MOST = 8  # lines about ties, and names in a line


def same_ties(before: Any, after: Any) -> str:
    """Where the ties of two modules differ, in words; empty, so false, where they are the same.

    It says which ties were cut and which were made. Of a tie that was cut it says whether the two
    tensors are still equal. Names that only one side has don't count; where something else differs,
    they are listed. A prefix that only one side has, such as `module.` or `_orig_mod.`, is seen
    through.

    Args:
        before: A module, a state dict, or what `ties` returned.
        after: Another one.

    Raises:
        TypeError: One of them is something else.

    >>> embed, head = torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False)
    >>> head.weight = embed.weight
    >>> model = torch.nn.ModuleDict({"embed": embed, "head": head})
    >>> before = ties(model)
    >>> loaded = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    >>> _ = model.load_state_dict(loaded, assign=True)
    >>> print(same_ties(before, model))
    head.weight was embed.weight, and is now a tensor of its own (equal)
    """
    return str(_Comparison(read(before), read(after)))


class _Side:
    """One side, under the common names."""

    def __init__(self, given: Given, own_names: dict[str, str]) -> None:
        self.given, self.own_names = given, own_names
        number = {name: i for i, group in enumerate(given.groups) for name in group}
        self._numbers = {short: number.get(name, -1) for short, name in own_names.items()}

    def key(self, name: str) -> object:
        """Equal for names that are one here."""
        number = self._numbers.get(name, -1)
        return name if number < 0 else number

    def groups(self, names: Sequence[str]) -> list[list[str]]:
        """The names that are one here, of those that are asked for, in their order."""
        found: dict[object, list[str]] = {}
        for name in names:
            found.setdefault(self.key(name), []).append(name)
        return list(found.values())

    def tensor(self, name: str) -> Any:
        tensors = self.given.tensors
        return None if tensors is None else tensors.get(self.own_names.get(name, ""))


class _Comparison:
    def __init__(self, before: Given, after: Given) -> None:
        first, second = in_common(before.names, after.names)
        self._before, self._after = _Side(before, first), _Side(after, second)
        # A saved answer doesn't say what else there was: all that the other side has may have been.
        if before.is_saved == after.is_saved:
            names = first | second
        else:
            names = second if before.is_saved else first
        self._common = [
            name
            for name in names
            if (before.is_saved or name in first) and (after.is_saved or name in second)
        ]

    def __str__(self) -> str:
        lines = [*self._cut(), *self._made()]
        if not lines:
            return ""
        more = [f"... and {len(lines) - MOST} more"] if len(lines) > MOST else []
        return "\n".join([*lines[:MOST], *more, *self._one_sided()])

    def _cut(self) -> Iterator[str]:
        after = {name: group for group in self._after.groups(self._common) for name in group}
        for group in self._before.groups(self._common):
            anchor, *others = group
            for name in others:
                if self._after.key(name) == self._after.key(anchor):
                    continue
                first = after[name][0]
                now = first if first != name else self._own(name, anchor)
                yield f"{name} was {anchor}, and is now {now}"

    def _own(self, name: str, anchor: str) -> str:
        a, b = self._after.tensor(name), self._after.tensor(anchor)
        known = a is not None and b is not None
        return "a tensor of its own" + (f" ({how_they_compare(a, b)})" if known else "")

    def _made(self) -> Iterator[str]:
        before = {name: group for group in self._before.groups(self._common) for name in group}
        for group in self._after.groups(self._common):
            anchor = group[0]
            for name in group[1:]:
                # One that was cut from another tensor has its own line.
                if self._before.key(name) != self._before.key(anchor) and before[name][0] == name:
                    yield f"{name} and {anchor} were two tensors, and are now one"

    def _one_sided(self) -> Iterator[str]:
        for word, side, other in (
            ("before", self._before, self._after),
            ("after", self._after, self._before),
        ):
            names = [name for name in side.own_names if name not in other.own_names]
            if names and not other.given.is_saved:
                more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
                yield f"only {word}: {', '.join(names[:MOST])}{more}"
