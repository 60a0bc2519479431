# SPDX-License-Identifier: Apache-2.0
"""Checks whether head and embedding in the file are tied as the config declares."""

from collections.abc import Iterator

from .compare import (
    are_equal,
    are_equal_as_narrower,
    are_transposed,
    correlation,
    elements,
    is_constant,
)
from .config import CONFIG
from .finding import Finding, Level, shown, size_text
from .heads import End, Ends, is_like_a_head, missing_head
from .model import Model
from .other_heads import has_other_head, of_one_shape
from .pairs import Pairs
from .progress import Bar
from .quantized import Parts
from .stored import Stored

_DRIFTED = 0.5  # the correlation of two arrays that were tied once
_NEARLY = 0.9  # the correlation of two arrays that are nearly equal
_LEAST = 1024  # bytes of an array that no metadata mention


def check_heads(model: Model, pairs: Pairs, bar: Bar) -> Iterator[Finding]:
    """Compares head and embedding in the config with those in the file.

    Args:
        pairs: Collects the arrays that were compared.
    """
    config = model.config
    if config is None or config.is_tied is None:
        return
    groups = {name: number for number, group in enumerate(model.groups()) for name in group}
    ends = Ends([*model.arrays, *(name for name in groups if name not in model.arrays)])
    parts = Parts(model.arrays)
    checks = _Checks(model, pairs, bar, groups, parts, config.is_tied)
    for head, embedding in ends.pairs():
        # Where there is no head for words, `output` is a classifier.
        if head.end != "output" or config.may_have_head:
            yield from checks.both(head, embedding)
    if (model.is_part or not model.is_known) and not (ends.heads and ends.embeddings):
        return
    main = ends.main_embedding()
    if main is not None and not ends.heads and not _is_broken(model):
        yield from checks.no_head(main)
    elif config.is_tied and ends.heads and main is None and config.may_have_head:
        head = ends.heads[0]
        text = f"the embedding is {shown(head.name)}: {CONFIG} says tied, and one is stored"
        yield Finding("tie", (head.name,), text)


def tied_by_config(model: Model) -> tuple[str, str] | None:
    """The embedding and the head that isn't stored, where the config says that they are one."""
    config = model.config
    if config is None or not config.is_tied or not config.may_have_head or model.is_part:
        return None
    ends = Ends([*model.arrays, *model.aliases])
    embedding = ends.main_embedding()
    if embedding is None or ends.heads or embedding.name not in model.arrays or _is_broken(model):
        return None
    if any(map(is_like_a_head, of_one_shape(model, embedding))):
        return None
    return embedding.name, missing_head(embedding)


def _is_broken(model: Model) -> bool:
    """Whether a head is named, but can't be read."""
    return bool(Ends(sorted(model.named - model.arrays.keys())).heads)


def _twice(names: tuple[str, str], what: str, nbytes: int) -> Finding:
    size = size_text(nbytes)
    text = f"{CONFIG} says tied, and {what} are both stored, and equal: {size} twice"
    return Finding("waste", names, text, nbytes)


class _Checks:
    def __init__(
        self,
        model: Model,
        pairs: Pairs,
        bar: Bar,
        groups: dict[str, int],
        parts: Parts,
        is_tied: bool,
    ) -> None:
        self._model, self._pairs, self._bar = model, pairs, bar
        self._groups, self._parts, self._is_tied = groups, parts, is_tied

    def both(self, head: End, embedding: End) -> Iterator[Finding]:
        """The findings about a head and an embedding that the model has."""
        names = (head.name, embedding.name)
        what = f"{shown(head.name)} and {shown(embedding.name)}"
        arrays = self._model.arrays
        if self._groups[head.name] == self._groups[embedding.name]:
            if not self._is_tied:
                yield Finding("doubt", names, f"{CONFIG} says untied, and {what} are one array")
            return
        if head.name not in arrays or embedding.name not in arrays:
            return  # one of them is an alias of something else
        one, other = arrays[head.name], arrays[embedding.name]
        are_quantized = self._is_quantized(head, one), self._is_quantized(embedding, other)
        if any(are_quantized):
            if self._is_tied:
                is_same = all(are_quantized)
                yield from (self._tied_quantized if is_same else self._one_quantized)(names, what)
            return
        yield from (self._tied if self._is_tied else self._untied)(names, what, one, other)

    def _is_quantized(self, end: End, array: Stored) -> bool:
        if end.is_packed or self._parts.module(end.name) is not None:
            return True
        return not array.itemsize or not array.dtype.startswith(("F16", "F32", "F64", "BF16"))

    def _one_quantized(self, names: tuple[str, str], what: str) -> Iterator[Finding]:
        one, other = (self._model.arrays[name].signature() for name in names)
        text = f"{CONFIG} says tied, and of {what} one is quantized: {one} and {other}"
        yield Finding("doubt", names, text)

    def _tied_quantized(self, names: tuple[str, str], what: str) -> Iterator[Finding]:
        arrays, (head, embedding) = self._model.arrays, map(self._whole, names)
        if head.keys() == embedding.keys() and all(
            are_equal(arrays[name], arrays[embedding[part]], self._bar)
            for part, name in head.items()
        ):
            for part, name in head.items():
                self._pairs.add_copy(embedding[part], name)
            yield _twice(names, what, sum(arrays[name].nbytes for name in head.values()))

    def _whole(self, name: str) -> dict[str, str]:
        """All arrays of a quantized weight, by the part that they are."""
        module = self._parts.module(name)
        if module is None:
            return {"": name}
        return {name[len(module) :]: name} | self._parts.more(module)

    def _tied(
        self, names: tuple[str, str], what: str, one: Stored, other: Stored
    ) -> Iterator[Finding]:
        if (names[0], names[1]) in self._pairs:
            return
        is_turned = one.shape != other.shape and one.shape[::-1] == other.shape
        if one.shape != other.shape and not is_turned:
            text = (
                f"{CONFIG} says tied, and {what} have different shapes: {one.signature()} and "
                f"{other.signature()}"
            )
            yield Finding("error", names, text)
            return
        if not (one.is_plain and other.is_plain):
            return
        if is_turned:
            if one.dtype == other.dtype and self._are_transposed(one, other):
                return  # the search for twins reports it
        elif are_equal(one, other, self._bar):
            self._pairs.add_copy(names[1], names[0])
            yield _twice(names, what, one.nbytes)
            return
        elif one.dtype != other.dtype and are_equal_as_narrower(one, other):
            text = (
                f"{CONFIG} says tied, and {what} are both stored, and equal but for their types: "
                f"{one.signature()} and {other.signature()}"
            )
            yield Finding("waste", names, text, min(one.nbytes, other.nbytes))
            return
        found = correlation(one, other)
        how = "a head of its own"
        if found is not None and found > _DRIFTED:
            how = "they drifted apart"
        figure = "no correlation" if found is None else f"correlation {found:.3f}"
        text = f"{CONFIG} says tied, and {what} are both stored and different: {how} ({figure})"
        yield Finding("error", names, text)

    def _are_transposed(self, one: Stored, other: Stored) -> bool:
        if elements(one, 64) != elements(other, 64, is_transposed=True):
            return False
        return are_transposed(one, other, self._bar)

    def _untied(
        self, names: tuple[str, str], what: str, one: Stored, other: Stored
    ) -> Iterator[Finding]:
        if (names[0], names[1]) in self._pairs or one.nbytes < _LEAST or not one.size:
            return
        is_turned = one.shape != other.shape and one.shape[::-1] == other.shape
        if not (one.is_plain and other.is_plain) or (one.shape != other.shape and not is_turned):
            return
        found = correlation(one, other)
        if found is None or found <= _NEARLY:
            return
        if not is_turned and are_equal(one, other, self._bar):
            if not is_constant(one):
                self._pairs.add(names[1], names[0])
                text = f"{CONFIG} says untied, and {what} are equal: {size_text(one.nbytes)} twice"
                yield Finding("doubt", names, text, one.nbytes)
            return
        if is_turned and one.dtype == other.dtype and self._are_transposed(one, other):
            yield Finding("doubt", names, f"{CONFIG} says untied, and {what} are equal, transposed")
            return
        text = f"{CONFIG} says untied, and {what} are nearly equal (correlation {found:.3f})"
        yield Finding("doubt", names, text)

    def no_head(self, embedding: End) -> Iterator[Finding]:
        """The findings if only an embedding is stored."""
        config = self._model.config
        assert config is not None  # or nothing is checked
        head, name = missing_head(embedding), embedding.name
        alike = of_one_shape(self._model, embedding)
        if self._is_tied:
            if not config.may_have_head:
                return
            named = [other for other in alike if is_like_a_head(other)]
            for other in named:
                yield from self._tied_by_shape(other, name)
            if not named:
                text = f"{head} is {shown(name)}: {CONFIG} says tied, and one is stored"
                yield Finding("tie", (name, head), text)
        elif not alike and not has_other_head(self._model):
            level: Level = "error" if config.is_language_model else "doubt"
            text = f"{CONFIG} says untied, and no head is stored beside {shown(name)}"
            yield Finding(level, (head, name), text)

    def _tied_by_shape(self, head: str, embedding: str) -> Iterator[Finding]:
        """The same as of a head and an embedding; but whether it is a head isn't known."""
        arrays = self._model.arrays
        if self._groups[head] == self._groups[embedding]:
            return
        what = f"{shown(head)} and {shown(embedding)}"
        for found in self._tied((head, embedding), what, arrays[head], arrays[embedding]):
            yield found._replace(level="doubt") if found.level == "error" else found
