# SPDX-License-Identifier: Apache-2.0
"""`_tied_weights_keys`: the ties of a model that transformers knows."""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .given import Groups, groups_of, named_tensors
from .identity import how_they_compare


def tied_weights_keys(module: Any) -> dict[str, str]:
    """The `_tied_weights_keys` for transformers 5: for each alias, the name of its anchor.

    Buffers that aren't saved don't count.

    Args:
        module: The model with its intended ties; it may be on `meta`.

    >>> embed, head = torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False)
    >>> head.weight = embed.weight
    >>> tied_weights_keys(torch.nn.ModuleDict({"embed": embed, "head": head}))
    {'head.weight': 'embed.weight'}
    """
    return {alias: anchor for anchor, *aliases in _saved_ties(module) for alias in aliases}


def check_tied_weights_keys(model: Any) -> str:
    """Where `_tied_weights_keys` and the ties of a model differ, in words; empty if nowhere.

    The keys of the model and of the models in it count, each as transformers reads it: not at all
    where `config.tie_word_embeddings` is false; as names, as modules, or as patterns; and the list
    of patterns of transformers 4.

    Args:
        model: The model. It need not be one of transformers'.

    >>> embed, head = torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False)
    >>> model = torch.nn.ModuleDict({"embed": embed, "head": head})
    >>> model._tied_weights_keys = {"head.weight": "embed.weight"}
    >>> print(check_tied_weights_keys(model))
    _tied_weights_keys says that head.weight is embed.weight: a tensor of its own (different)
    """
    return "\n".join(_Check(model).lines())


def cut_ties(model: Any) -> list[str]:
    """Which names `_tied_weights_keys` ties and the model doesn't, in words."""
    check = _Check(model)
    list(check.lines())
    return check.cut


def _saved_ties(module: Any) -> Groups:
    tensors = named_tensors(module)
    for path, inner in module.named_modules(remove_duplicate=False):
        for name in inner._non_persistent_buffers_set:
            tensors.pop(f"{path}.{name}".removeprefix("."), None)
    return groups_of(tensors)


KEYS = "_tied_weights_keys"


class _Check:
    """Compares the ties that a model declares with its actual ties."""

    def __init__(self, model: Any) -> None:
        self._model, self._tensors = model, named_tensors(model)
        self._groups = _saved_ties(model)
        self._anchors = {name: group[0] for group in self._groups for name in group}
        self._said: dict[str, str] = {}  # for names that are declared tied: towards the first
        self.cut: list[str] = []  # the lines about names that are declared tied, and aren't

    def lines(self) -> Iterator[str]:
        """The differences, line by line."""
        silent = False
        for path, inner in self._model.named_modules():
            prefix = f"{path}." if path else ""
            keys = getattr(inner, KEYS, None)
            if not keys:
                continue
            if not getattr(getattr(inner, "config", None), "tie_word_embeddings", True):
                silent = True
            elif isinstance(keys, Mapping):
                yield from self._pairs(prefix, keys)
            else:
                yield from self._patterns(prefix, keys)
        reason = "config.tie_word_embeddings is false" if silent else f"{KEYS} doesn't say so"
        for anchor, *aliases in self._groups:
            seen = {self._first(anchor)}
            for alias in aliases:
                if (first := self._first(alias)) not in seen:
                    seen.add(first)
                    yield f"{alias} is {anchor}, and {reason}"

    def _pairs(self, prefix: str, keys: Mapping[str, str]) -> Iterator[str]:
        """Aliases and their anchors, as transformers 5 has them."""
        for alias, anchor in keys.items():
            aliases, anchors = self._matching(prefix, alias), self._matching(prefix, anchor)
            for said, names in ((alias, aliases), (anchor, anchors)):
                if not names:
                    yield f"{KEYS} has {said}, which is no parameter or buffer"
            if not aliases or not anchors:
                continue
            if len(aliases) % len(anchors):
                yield (
                    f"{KEYS} says that {alias} is {anchor}, and these are {len(aliases)} and "
                    f"{len(anchors)} tensors"
                )
                continue
            for name, other in zip(aliases, itertools.cycle(anchors), strict=False):
                self._said[self._first(name)] = self._first(other)
                if self._anchors.get(name, name) != self._anchors.get(other, other):
                    how = how_they_compare(self._tensors[name], self._tensors[other])
                    self.cut.append(
                        f"{KEYS} says that {name} is {other}: a tensor of its own ({how})"
                    )
                    yield self.cut[-1]

    def _patterns(self, prefix: str, keys: Iterable[str]) -> Iterator[str]:
        """Names that are tied to something, as transformers 4 has them."""
        for key in keys:
            names = [name for name in self._below(prefix) if re.search(key, name[len(prefix) :])]
            if not names:
                yield f"{KEYS} has {key}, which is no parameter or buffer"
            for name in names:
                if name not in self._anchors:
                    self.cut.append(f"{KEYS} says that {name} is tied: a tensor of its own")
                    yield self.cut[-1]
                else:
                    self._said[self._first(name)] = self._first(self._anchors[name])

    def _first(self, name: str) -> str:
        """The same name for all names that are declared tied."""
        while (other := self._said.get(name, name)) != name:
            name = other
        return name

    def _matching(self, prefix: str, key: str) -> list[str]:
        """The names of a key: one name, the names of a module, or those that match a pattern."""
        if prefix + key in self._tensors:
            return [prefix + key]
        return sorted(
            self._below(f"{prefix}{key}.")
            or (name for name in self._below(prefix) if re.match(key, name[len(prefix) :]))
        )

    def _below(self, prefix: str) -> list[str]:
        return [name for name in self._tensors if name.startswith(prefix)]
