# SPDX-License-Identifier: Apache-2.0
"""Checks whether head and embedding in the file are tied as the config declares."""

from collections.abc import Iterator

from .compare import (
    are_equal,
    are_equal_as_narrower,
    are_equal_parts,
    are_transposed,
    correlation,
    elements,
    is_constant,
)
from .config import CONFIG, Config
from .finding import Finding, Level, Pairs, shown, size_text
from .heads import End, Ends, has_other_head, is_like_a_head, missing_head, of_one_shape
from .model import Model
from .progress import Bar
from .quantized import Parts
from .stored import Stored

_DRIFTED = 0.5  # the correlation of two arrays that were tied once
_NEARLY = 0.9  # the correlation of two arrays that are nearly equal
_LEAST = 1024  # bytes of an array that no metadata mention
_Names = tuple[str, str]  # of the head and the embedding


def check_heads(model: Model, pairs: Pairs, bar: Bar) -> Iterator[Finding]:
    """Compares head and embedding in the config with those in the file.

    Args:
        pairs: Collects the arrays that were compared.
    """
    config = model.config
    if config is None or config.is_tied is None:
        return
    checks = _Checks(model, config, pairs, bar)
    ends = Ends([*model.arrays, *(name for name in checks.groups if name not in model.arrays)])
    for head, embedding in ends.pairs():
        # If the model has no head for words, `output` is a classifier.
        is_head = head.end != "output" or config.may_have_head
        if is_head and (finding := checks.both(head, embedding)) is not None:
            yield finding
    if (model.is_part or not model.is_known) and not (ends.heads and ends.embeddings):
        return
    main = ends.main_embedding()
    if main is not None and not ends.heads and not _is_broken(model):
        yield from _without_head(model, config, checks, main)
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


class _Checks:
    """Checks of one model. Each gives a finding, or None."""

    def __init__(self, model: Model, config: Config, pairs: Pairs, bar: Bar) -> None:
        self._arrays, self._config, self._pairs, self._bar = model.arrays, config, pairs, bar
        self.groups = {name: i for i, group in enumerate(model.groups()) for name in group}
        self._parts = Parts(model.arrays)

    def _say(self, level: Level, names: _Names, text: str, nbytes: int = 0) -> Finding:
        said = "tied" if self._config.is_tied else "untied"
        what = f"{shown(names[0])} and {shown(names[1])}"
        return Finding(level, names, f"{CONFIG} says {said}, and {what} {text}", nbytes)

    def _twice(self, names: _Names, nbytes: int) -> Finding:
        text = f"are both stored, and equal: {size_text(nbytes)} twice"
        return self._say("waste", names, text, nbytes)

    def both(self, head: End, embedding: End) -> Finding | None:
        """Checks a head and an embedding that the model has."""
        names, is_tied = (head.name, embedding.name), self._config.is_tied
        if self.groups[head.name] == self.groups[embedding.name]:
            return None if is_tied else self._say("doubt", names, "are one array")
        if head.name not in self._arrays or embedding.name not in self._arrays:
            return None  # one of them is an alias of something else
        if not any(are_quantized := [self._is_quantized(end) for end in (head, embedding)]):
            return (self._tied if is_tied else self._untied)(names)
        if not is_tied:
            return None
        return (self._tied_quantized if all(are_quantized) else self._one_quantized)(names)

    def _is_quantized(self, end: End) -> bool:
        array = self._arrays[end.name]
        if end.is_packed or self._parts.module(end.name) is not None:
            return True
        return not array.itemsize or not array.dtype.startswith(("F16", "F32", "F64", "BF16"))

    def _one_quantized(self, names: _Names) -> Finding:
        one, other = (self._arrays[name].signature() for name in names)
        return self._say("doubt", names, f"differ, one is quantized: {one} and {other}")

    def _tied_quantized(self, names: _Names) -> Finding | None:
        head, embedding = map(self._parts.whole, names)
        if not are_equal_parts(self._arrays, head, embedding, self._bar):
            return None
        for part, name in head.items():
            self._pairs.add_copy(embedding[part], name)
        return self._twice(names, sum(self._arrays[name].nbytes for name in head.values()))

    def _tied(self, names: _Names) -> Finding | None:
        one, other = (self._arrays[name] for name in names)
        if names in self._pairs:
            return None
        signatures = f"{one.signature()} and {other.signature()}"
        if one.shape not in (other.shape, other.shape[::-1]):
            return self._say("error", names, f"have different shapes: {signatures}")
        if not (one.is_plain and other.is_plain) or self._are_transposed(one, other):
            return None  # the search for twins reports transposed ones
        if are_equal(one, other, self._bar):
            self._pairs.add_copy(names[1], names[0])
            return self._twice(names, one.nbytes)
        if one.dtype != other.dtype and are_equal_as_narrower(one, other):
            text = f"are both stored, and equal but for their types: {signatures}"
            return self._say("waste", names, text, min(one.nbytes, other.nbytes))
        found = correlation(one, other)
        figure = "no correlation" if found is None else f"correlation {found:.3f}"
        how = "they drifted apart" if (found or 0.0) > _DRIFTED else "a head of its own"
        return self._say("error", names, f"are both stored and different: {how} ({figure})")

    def _are_transposed(self, one: Stored, other: Stored) -> bool:
        return (
            (one.dtype, one.shape) == (other.dtype, other.shape[::-1])
            and one.shape != other.shape
            and elements(one, 64) == elements(other, 64, is_transposed=True)
            and are_transposed(one, other, self._bar)
        )

    def _untied(self, names: _Names) -> Finding | None:
        one, other = (self._arrays[name] for name in names)
        if names in self._pairs or one.nbytes < _LEAST or not one.size:
            return None
        if one.shape not in (other.shape, other.shape[::-1]):
            return None
        found = correlation(one, other) if one.is_plain and other.is_plain else None
        if found is None or found <= _NEARLY:
            return None
        if are_equal(one, other, self._bar):
            if is_constant(one):
                return None
            self._pairs.add(names[1], names[0])
            text = f"are equal: {size_text(one.nbytes)} twice"
            return self._say("doubt", names, text, one.nbytes)
        if self._are_transposed(one, other):
            return self._say("doubt", names, "are equal, transposed")
        return self._say("doubt", names, f"are nearly equal (correlation {found:.3f})")

    def tied_by_shape(self, head: str, embedding: str) -> Finding | None:
        """Checks an array that may be the head: nothing about it is an error."""
        if self.groups[head] == self.groups[embedding]:
            return None
        found = self._tied((head, embedding))
        return found and found._replace(level="doubt" if found.level == "error" else found.level)


def _without_head(model: Model, config: Config, checks: _Checks, end: End) -> Iterator[Finding]:
    """The findings if only an embedding is stored."""
    head, name = missing_head(end), end.name
    alike = of_one_shape(model, end)
    if not config.is_tied:
        if not alike and not has_other_head(model):
            level: Level = "error" if config.is_language_model else "doubt"
            text = f"{CONFIG} says untied, and no head is stored beside {shown(name)}"
            yield Finding(level, (head, name), text)
    elif config.may_have_head:
        named = [other for other in alike if is_like_a_head(other)]
        yield from filter(None, (checks.tied_by_shape(other, name) for other in named))
        if not named:
            text = f"{head} is {shown(name)}: {CONFIG} says tied, and one is stored"
            yield Finding("tie", (name, head), text)
