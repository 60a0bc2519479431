# SPDX-License-Identifier: Apache-2.0
"""How the ties of two modules differ, in words."""

from collections.abc import Callable, Iterator
from typing import Any

from torch import nn

from pydag.files.names import listed
from pydag.sharing.prefixes import in_common

from .given import Given, read
from .identity import how_they_compare

MOST = 8  # lines about ties, and names in a line


def tie_changes(before: Any, after: Any) -> str:
    """How the ties of two modules differ, in words; empty, and so false, if nothing changed.

    It says which ties were cut and which were made. For a tie that was cut it says whether the two
    tensors are still equal. Two parameters over one memory, which
    `load_state_dict(tied, assign=True)` makes of one, are a change, since an optimizer steps both.
    Names that only one side has don't count; if something else differs, they are listed. A prefix
    that only one side has, such as `module.` or `_orig_mod.`, is ignored.

    Args:
        before: A module, a result of `module_tree` or `dag_map` for a module, a state dict, or a
            result of `ties`. In a result from JSON each tie counts as one parameter.
        after: The same, for the other side.

    Raises:
        TypeError: One of them is something else.

    >>> embed, head = torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False)
    >>> head.weight = embed.weight
    >>> model = torch.nn.ModuleDict({"embed": embed, "head": head})
    >>> before = ties(model)
    >>> loaded = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    >>> _ = model.load_state_dict(loaded, assign=True)
    >>> print(tie_changes(before, model))
    head.weight was embed.weight, and is now a tensor of its own (equal)
    """
    return str(_Comparison(read(before), read(after)))


def first_lines(lines: list[str]) -> list[str]:
    """The first lines, and how many more there are."""
    return lines[:MOST] + ([f"... and {len(lines) - MOST} more"] if len(lines) > MOST else [])


class _Side:
    """One side, under the common names."""

    def __init__(self, given: Given, own_names: dict[str, str]) -> None:
        self.given, self.own_names = given, own_names
        number = {name: i for i, group in enumerate(given.ties) for name in group}
        parts: dict[str, object] = {}  # the object of each name; None if it isn't known
        for i, (group, split) in enumerate(zip(given.ties, given.ties.parts, strict=True)):
            parts.update(dict.fromkeys(group))
            parts.update({name: (i, j) for j, part in enumerate(split or ()) for name in part})
        self._numbers = {short: number.get(name, short) for short, name in own_names.items()}
        self._parts = {short: parts.get(name, short) for short, name in own_names.items()}

    def key(self, name: str) -> object:
        """Equal for names of one tensor."""
        return self._numbers.get(name, name)

    def object(self, name: str) -> object:
        """Equal for names of one object; None if it isn't known."""
        return self._parts.get(name, name)

    def tensor(self, name: str) -> Any:
        tensors = self.given.tensors
        return None if tensors is None else tensors.get(self.own_names.get(name, ""))


class _Comparison:
    def __init__(self, before: Given, after: Given) -> None:
        first, second = in_common(before.names, after.names)
        self._before, self._after = _Side(before, first), _Side(after, second)
        # A saved result lists only tied names: all names of the other side may have existed.
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
        return "\n".join([*first_lines(lines), *self._one_sided()]) if lines else ""

    def _groups(self, key: Callable[[str], object]) -> list[list[str]]:
        """The common names with one key, in order."""
        found: dict[object, list[str]] = {}
        for name in self._common:
            found.setdefault(key(name), []).append(name)
        return list(found.values())

    def _cut(self) -> Iterator[str]:
        after = {name: group for group in self._groups(self._after.key) for name in group}
        for anchor, *others in self._groups(self._before.key):
            for name in others:
                if self._after.key(name) == self._after.key(anchor):
                    continue
                first = after[name][0]
                now = first if first != name else self._own(name, anchor)
                yield f"{name} was {anchor}, and is now {now}"
        for names, kind in self._of_one_memory(self._before, self._after):
            yield f"{names} were one {kind}, and are now two over one memory"

    def _own(self, name: str, anchor: str) -> str:
        a, b = self._after.tensor(name), self._after.tensor(anchor)
        known = a is not None and b is not None
        return "a tensor of its own" + (f" ({how_they_compare(a, b)})" if known else "")

    def _made(self) -> Iterator[str]:
        before = {name: group for group in self._groups(self._before.key) for name in group}
        for anchor, *others in self._groups(self._after.key):
            for name in others:
                # One that was cut from another tensor has its own line.
                if self._before.key(name) != self._before.key(anchor) and before[name][0] == name:
                    yield f"{name} and {anchor} were two tensors, and are now one"
        for names, kind in self._of_one_memory(self._after, self._before):
            yield f"{names} were two {kind}s over one memory, and are now one"

    def _of_one_memory(self, one: _Side, two: _Side) -> Iterator[tuple[str, str]]:
        """Names of one object here and of two over one memory there, and the kind of object."""
        others = {name: group for group in self._groups(two.object) for name in group}
        for anchor, *names in self._groups(one.object):
            for name in names:
                objects = one.object(name), two.object(anchor), two.object(name)
                if None in objects or objects[1] == objects[2] or others[name][0] != name:
                    continue
                if two.key(name) == two.key(anchor):
                    tensors = [side.tensor(n) for side in (one, two) for n in (anchor, name)]
                    known = [tensor for tensor in tensors if tensor is not None]
                    is_buffer = known and not any(isinstance(x, nn.Parameter) for x in known)
                    yield f"{name} and {anchor}", "buffer" if is_buffer else "parameter"

    def _one_sided(self) -> Iterator[str]:
        for word, side, other in (
            ("before", self._before, self._after),
            ("after", self._after, self._before),
        ):
            names = [name for name in side.own_names if name not in other.own_names]
            if names and not other.given.is_saved:
                yield f"only {word}: {listed(names, MOST)}"
