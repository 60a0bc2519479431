# SPDX-License-Identifier: Apache-2.0
"""How the ties of two modules differ, in words."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from torch import nn

from pydag.arrays.names import in_common
from pydag.files.names import listed

from .given import Groups, Reading, Ties, groups_of, read
from .identity import how_they_compare

MOST = 8  # lines about ties, and names in a line


def tie_changes(before: Any, after: Any) -> str:
    """How the ties of two modules differ, in words; empty, and so false, if nothing changed.

    It says which ties were cut, which were made, and which of the tied names are gone or new. For a
    tie that was cut it says whether the two tensors are still equal. Two parameters over one
    memory, which `load_state_dict(tied, assign=True)` makes of one, are a change, since an
    optimizer steps both. Other names that only one side has don't count; if something else differs,
    they are listed. So with ties that a state dict or tree lacks as a whole, such as those of
    buffers that aren't saved. A prefix that only one side has, such as `module.` or `_orig_mod.`,
    is ignored.

    Args:
        before: A module, a result of `module_tree` or `dag_map` for a module, a state dict, a
            result of `ties`, or the dict of `tied_weights_keys`. In that dict, and in a result from
            JSON, each tie counts as one parameter, and names that aren't tied are unknown.
        after: The same, for the other side.

    Raises:
        TypeError: One of them is something else, or holds no tensor.

    >>> embed, head = torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False)
    >>> head.weight = embed.weight
    >>> model = torch.nn.ModuleDict({"embed": embed, "head": head})
    >>> before = ties(model)
    >>> loaded = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    >>> _ = model.load_state_dict(loaded, assign=True)
    >>> print(tie_changes(before, model))
    head.weight was embed.weight, and is now a tensor of its own (equal)
    """
    (one, ours), (two, theirs) = read(before), read(after)
    if (one.names, one, one.parts) == (two.names, two, two.parts):
        return ""  # as most, and quicker than to compare
    return str(TieComparison((one, ours), (two, theirs)))


def first_lines(lines: list[str]) -> list[str]:
    """The first lines, and how many more there are."""
    return lines[:MOST] + ([f"... and {len(lines) - MOST} more"] if len(lines) > MOST else [])


class _Keys(dict[str, object]):
    """A key for each name, equal for names that are one; a name without one is the only one."""

    def __missing__(self, name: str) -> object:
        return name

    def groups(self, names: Iterable[str]) -> Groups:
        """The names with one key, in order."""
        return groups_of(names, self.__getitem__)

    def firsts(self, names: Iterable[str]) -> dict[str, str]:
        """For each name the first one with its key."""
        return {name: group[0] for group in self.groups(names) for name in group}


class _TieSide:
    """One side, under the common names: its tensors, and keys of tensors and of objects."""

    def __init__(self, ties: Ties, tensors: Mapping[str, Any], own_names: dict[str, str]) -> None:
        self.ties, self.names = ties, own_names.keys()
        self.tensors = {x: tensors[name] for x, name in own_names.items() if name in tensors}
        shorts = {name: short for short, name in own_names.items()}
        self.keys, self.objects = _Keys(), _Keys()  # the key of an unknown object is None
        for group, split in zip(ties, ties.parts, strict=True):
            names = [shorts[name] for name in group]
            self.keys.update(dict.fromkeys(names, group))
            self.objects.update(dict.fromkeys(names))
            for part in split or ():
                self.objects.update({shorts[name]: (group, part) for name in part})


class TieComparison:
    """Two sides, of which each is known as far as it was given: what `read` returns."""

    def __init__(self, before: Reading, after: Reading) -> None:
        first, second = in_common(before[0].names, after[0].names)
        self._before, self._after = _TieSide(*before, first), _TieSide(*after, second)
        # Of a saved result only the tied names may be known: then all other names may be there.
        whole = [side for side in (self._before, self._after) if side.ties.has_all_names]
        names = second | first if whole == [self._after] else first | second
        self._common = [name for name in names if all(name in side.names for side in whole)]
        self._reported: set[str] = set()  # names of ties that one side lacks

    def __str__(self) -> str:
        sides = self._before, self._after
        lines = [*self._cut(), *self._lacking(*sides, "{0} was {1}, and is gone")]
        lines += [*self.new_ties(), *self._lacking(*sides[::-1], "{0} is new, and is {1}")]
        return "\n".join([*first_lines(lines), *self._one_sided()]) if lines else ""

    def _cut(self) -> Iterator[str]:
        """Names of one tensor before, and of two after."""
        after, tensors = self._after.keys.firsts(self._common), self._after.tensors
        for name, anchor in self._before.keys.firsts(self._common).items():
            if (now := after[name]) == after[anchor]:
                continue
            if now == name:
                now = "a tensor of its own"
                if name in tensors and anchor in tensors:
                    now += f" ({how_they_compare(tensors[name], tensors[anchor])})"
            yield f"{name} was {anchor}, and is now {now}"
        for names, kind in self._of_one_memory(self._before, self._after):
            yield f"{names} were one {kind}, and are now two over one memory"

    def new_ties(self) -> Iterator[str]:
        """Names of two tensors before, and of one after."""
        before, known = self._before.keys.firsts(self._common), self._before.names
        for name, anchor in self._after.keys.firsts(self._common).items():
            # One that was cut from another tensor has its own line.
            if before[name] == before[anchor] or before[name] != name:
                continue
            if (name in known) == (anchor in known):
                yield f"{name} and {anchor} were two tensors, and are now one"
            else:
                new, old = (name, anchor) if anchor in known else (anchor, name)
                yield f"{new} is new, or was a tensor of its own, and is {old}"
        for names, kind in self._of_one_memory(self._after, self._before):
            yield f"{names} were two {kind}s over one memory, and are now one"

    def _lacking(self, one: _TieSide, other: _TieSide, text: str) -> Iterator[str]:
        """The names of ties on one side that the other side hasn't."""
        common = set(self._common)
        for names in one.keys.groups(one.names):
            kept = [name for name in names if name in common]
            if len(names) == 1 or not (kept or other.ties.of_module):
                continue  # such as buffers that aren't saved, or a part of a model
            lost = [name for name in names if name not in common]
            self._reported.update(lost)
            anchor = (kept or names)[0]
            yield from (text.format(name, anchor) for name in lost if name != anchor)

    def _of_one_memory(self, one: _TieSide, two: _TieSide) -> Iterator[tuple[str, str]]:
        """Names of one object here and of two over one memory there, and the kind of object."""
        objects = two.objects.firsts(self._common)
        for name, anchor in one.objects.firsts(self._common).items():
            keys = one.objects[name], two.objects[anchor], two.objects[name]
            if None in keys or keys[1] == keys[2] or objects[name] != name:
                continue
            if two.keys[name] == two.keys[anchor]:
                known = [x for side in (one, two) if (x := side.tensors.get(name)) is not None]
                is_buffer = known and not any(isinstance(x, nn.Parameter) for x in known)
                yield f"{name} and {anchor}", "buffer" if is_buffer else "parameter"

    def _one_sided(self) -> Iterator[str]:
        sides = ("before", self._before, self._after), ("after", self._after, self._before)
        for word, side, other in sides:
            known = other.names | self._reported
            names = [name for name in side.names if name not in known]
            if names and other.ties.has_all_names:
                yield f"only {word}: {listed(names, MOST)}"
