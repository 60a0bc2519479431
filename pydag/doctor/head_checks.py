# SPDX-License-Identifier: Apache-2.0
"""Checks whether the names that are declared to be one array are one in the file."""

from collections import Counter
from collections.abc import Iterator, Sequence

from .compare import (
    are_equal,
    are_equal_as_narrower,
    are_equal_parts,
    are_transposed,
    correlation,
    elements,
    is_constant,
    largest_difference,
)
from .finding import Finding, Level, ReportedPairs, are, limited, listed, shown, size_text
from .heads import Group, declared_groups, perhaps_tied
from .model import Model
from .progress import Bar
from .stored import Stored

_DRIFTED = 0.5  # the correlation of two arrays that were tied once
_NEARLY = 0.9  # the correlation of two arrays that are nearly equal
_LEAST = 1024  # bytes of an array that nothing ties
_MOST = 16  # names of equal arrays in the finding about one that differs
_NamePair = tuple[str, str]
_Outcome = tuple[Level, str]
_EQUAL: _Outcome = ("waste", "equal")


def check_heads(model: Model, pairs: ReportedPairs, bar: Bar) -> Iterator[Finding]:
    """Compares what config and architecture declare to be one array."""
    checks, config = _Checks(model, pairs, bar), model.config
    if model.kind == "GGUF" or (config is not None and config.contradiction() is not None):
        return  # the names of GGUF are its own
    groups, check = declared_groups(model), checks.tied if checks.is_tied else checks.untied
    yield from limited(found for group in groups for found in check(group))
    is_known = config is not None and config.known
    if not is_known or (checks.is_tied and any(group.alike for group in groups)):
        found = list(checks.by_names())
        yield from found
        if not found and not is_known and checks.is_tied and config and config.architectures:
            text = f"{checks.why}: what is one array isn't known"
            yield Finding("doubt", config.architectures, text)


def tied_by_config(model: Model) -> dict[str, str]:
    """Names that aren't stored, each with the array that it is by config and architecture."""
    found: dict[str, str] = {}
    checks = _Checks(model, ReportedPairs(), Bar())
    for group in declared_groups(model) if checks.is_tied else ():
        stored, missing = checks.split(group)
        if len(stored) == 1 and checks.is_whole(group):
            found.update(dict.fromkeys(missing, stored[0]))
    return found


class _Checks:
    """Checks of one model, whose ties hold or don't by its config, or perhaps hold."""

    def __init__(self, model: Model, pairs: ReportedPairs, bar: Bar) -> None:
        self._model, self._pairs, self._bar = model, pairs, bar
        self.is_tied, self.why = None, "there is no config.json"
        if model.config is not None:
            self.is_tied, self.why = model.config.decide()
        self._numbers = model.storages
        aliases = {a: n for a, n in model.aliases.items() if n in model.arrays}
        self._arrays = {a: model.arrays[n] for a, n in aliases.items()} | model.arrays

    def split(self, group: Group) -> tuple[list[str], list[str]]:
        """The names that are stored, one for each array, and those that aren't."""
        stored = {self._numbers[n]: n for n in reversed(group.names) if n in self._arrays}
        missing = [name for name in group.names if name not in self._arrays]
        return list(stored.values())[::-1], missing

    def is_whole(self, group: Group) -> bool:
        """Whether what isn't found of a group can't be elsewhere, or have another name."""
        model, (_, missing) = self._model, self.split(group)
        is_readable = model.is_known and model.named.isdisjoint(missing)
        return is_readable and not model.is_part and not group.alike

    def tied(self, group: Group) -> Iterator[Finding]:
        """Checks names that are declared to be one array."""
        stored, missing = self.split(group)
        if len(stored) > 1:
            yield from self._several(stored)
        elif missing and stored and self.is_whole(group):
            text = f"{are(missing)} {shown(stored[0])}: {self.why}, and one is stored"
            yield Finding("tie", (stored[0], *missing), text)
        elif not stored and group.is_expected and self.is_whole(group):
            text = f"{self.why}, and none of {listed(group.names)} is stored"
            yield Finding("error", group.names, text)

    def _several(self, names: Sequence[str]) -> Iterator[Finding]:
        """Checks several arrays that are declared to be one."""
        starts = {n: elements(a, 64) if self._is_read(a := self._arrays[n]) else a for n in names}
        counts = Counter(starts.values())
        # Where most are equal, the others differ from these.
        anchor = max(reversed(names), key=lambda name: counts[starts[name]])
        others = [name for name in names if name != anchor and (name, anchor) not in self._pairs]
        found = {n: row for n in others if (row := self._difference(n, anchor)) is not None}
        equal = [name for name in names if name == anchor or found.get(name) == _EQUAL]
        odd = [name for name in found if name not in equal]
        for name in odd:
            level, how = found[name]
            nbytes = min(self._arrays[n].nbytes for n in (name, anchor)) if level == "waste" else 0
            which = f"{shown(name)} and {'each of ' * (len(equal) > 1)}{listed(equal)}"
            text = f"{self.why}, and {which} are both stored and {how}"
            yield Finding(level, (name, *equal[:_MOST]), text, nbytes)
        copies = [self._parts(name) for name in equal if name != anchor]
        for parts in copies:
            for part, one in self._parts(anchor).items():
                (self._pairs.add if odd else self._pairs.add_copy)(one, parts[part])
        if copies:
            nbytes = sum(self._model.arrays[n].nbytes for parts in copies for n in parts.values())
            text = f"{_both(*equal[:2])} are both stored, and equal: {size_text(nbytes)} twice"
            if len(equal) > 2:
                text = f"{listed(equal)} are all stored, and equal: {size_text(nbytes)} again"
            yield Finding("waste", tuple(equal), f"{self.why}, and {text}", nbytes)

    def _is_read(self, array: Stored) -> bool:
        return self._model.has_content and array.is_plain and array.nbytes > 0

    def _parts(self, name: str) -> dict[str, str]:
        return self._model.parts.whole(self._arrays[name].name)

    def _is_quantized(self, array: Stored) -> bool:
        is_float = array.dtype.startswith(("F16", "F32", "F64", "BF16"))
        return self._model.parts.module(array.name) is not None or not is_float

    def _difference(self, name: str, anchor: str) -> _Outcome | None:
        """How an array differs from one that it should be; None: that isn't reported here."""
        one, other = arrays = self._arrays[name], self._arrays[anchor]
        signatures = f"{one.signature()} and {other.signature()}"
        parts, is_read = (self._parts(name), self._parts(anchor)), self._model.has_content
        if is_read and are_equal_parts(self._model.arrays, *parts, self._bar):
            return _EQUAL
        are_quantized = [*map(self._is_quantized, arrays)]
        if any(are_quantized) and (is_read or not all(are_quantized)):
            which = "both are" if all(are_quantized) else "one is"
            return "doubt", f"different: {which} quantized, {signatures}"
        if one.shape not in (other.shape, other.shape[::-1]):
            return "error", f"different: their shapes are {signatures}"
        if not all(map(self._is_read, arrays)) or are_transposed(*arrays, self._bar):
            return None  # the search for twins reports transposed ones
        if one.dtype != other.dtype and are_equal_as_narrower(*arrays):
            return "waste", f"equal but for their types: {signatures}"
        found, largest = correlation(*arrays), largest_difference(*arrays, self._bar)
        figures = "no correlation" if found is None else f"correlation {found:.3f}"
        figures += f", largest difference {largest:.3g}" if largest is not None else ""
        own = "an array" if "embed" in name or len(one.shape) < 2 else "a head"
        how = "they drifted apart" if (found or 0.0) > _DRIFTED else f"{own} of its own"
        return "error", f"different: {how} ({figures})"

    def untied(self, group: Group) -> Iterator[Finding]:
        """Checks heads that are arrays of their own, or may be."""
        stored = [name for name in group.names if name in self._arrays]
        heads = [name for name in stored if name in group.heads]
        *_, other = ["", *(name for name in stored if name not in heads)]
        is_untied = self.is_tied is False
        if other and group.heads and not heads and is_untied and self.is_whole(group):
            text = f"{self.why}, and no head is stored beside {shown(other)}"
            names = (group.heads[0], other)
            yield Finding("error", names, f"{text}: {shown(names[0])} isn't there")
        for head in heads if other else ():
            pair, start = (head, other), f"{self.why}, and {_both(head, other)} are"
            if self._numbers[head] != self._numbers[other]:
                yield from self._alike(pair, start)
            elif is_untied:
                yield Finding("doubt", pair, f"{start} one array")

    def _alike(self, pair: _NamePair, start: str) -> Iterator[Finding]:
        """Checks whether two arrays are alike that nothing ties."""
        one, two = arrays = [self._arrays[name] for name in pair]
        if pair in self._pairs or one.shape not in (two.shape, two.shape[::-1]):
            return
        found = correlation(one, two) if all(map(self._is_compared, arrays)) else None
        if found is None or found < (_DRIFTED if self.is_tied is None else _NEARLY):
            return
        if are_equal(one, two, self._bar):
            self._pairs.add(*pair)
            text = f"{start} equal: {size_text(one.nbytes)} twice"
            yield Finding("doubt", pair, text, one.nbytes)
        elif are_transposed(one, two, self._bar):
            if self.is_tied is False:  # the search for twins reports them as well
                yield Finding("doubt", pair, f"{start} equal, transposed")
        else:
            how = "nearly equal" if found > _NEARLY else "alike"
            yield Finding("doubt", pair, f"{start} {how} (correlation {found:.3f})")

    def _is_compared(self, array: Stored) -> bool:
        is_large = self._is_read(array) and array.nbytes >= _LEAST
        return is_large and not self._is_quantized(array) and not is_constant(array)

    def by_names(self) -> Iterator[Finding]:
        """Checks what names alone suggest: no more than doubts follow from them."""
        reported: set[str] = set()
        for pair in perhaps_tied(self._model, any_head=bool(self.is_tied)):
            is_one = self._numbers[pair[0]] == self._numbers[pair[1]] or pair in self._pairs
            start = f"{self.why}; by their names {_both(*pair)} are perhaps one array, and are"
            if is_one or pair[0] in reported or not self._is_compared(self._arrays[pair[0]]):
                continue
            if self.is_tied:
                reported.update(pair)
                how = self._difference(*pair)
                if how is not None and how != _EQUAL:
                    yield Finding("doubt", pair, f"{start} both stored and {how[1]}")
            else:
                found = list(self._alike(pair, start))
                reported.update(pair[:1] if found else ())
                yield from found


def _both(one: str, other: str) -> str:
    return f"{shown(one)} and {shown(other)}"
