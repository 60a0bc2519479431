# SPDX-License-Identifier: Apache-2.0
"""`_tied_weights_keys`: the ties of a model that transformers knows."""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .given import Groups, ModuleTensors
from .identity import how_they_compare

KEYS = "_tied_weights_keys"


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
    groups = _saved_ties(ModuleTensors(module, "tied_weights_keys(module)"))
    return {alias: anchor for anchor, *aliases in groups for alias in aliases}


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
    lines = _differences(ModuleTensors(model, "check_tied_weights_keys(model)"))
    return "\n".join(text for text, _ in lines)


def cut_ties(model: ModuleTensors) -> list[str]:
    """Which names `_tied_weights_keys` ties and the model doesn't, in words."""
    return [text for text, is_cut in _differences(model) if is_cut] if _declaring(model) else []


def _saved_ties(model: ModuleTensors) -> Groups:
    """Ties without buffers that aren't saved."""
    passing = {prefix + n for prefix, x in model.modules for n in x._non_persistent_buffers_set}
    saved = ([name for name in names if name not in passing] for names in model.ties)
    return tuple(tuple(names) for names in saved if len(names) > 1)


def _declaring(model: ModuleTensors) -> list[tuple[str, Any]]:
    """The modules that say what is tied in them, each once, by its first name."""
    classes = {cls for cls in {type(inner) for _, inner in model.modules} if hasattr(cls, KEYS)}
    rows = [row for row in model.modules if KEYS in row[1].__dict__ or type(row[1]) in classes]
    by_module = {id(row[1]): row for row in reversed(rows)}
    return [row for row in reversed(by_module.values()) if getattr(row[1], KEYS)]


def _differences(model: ModuleTensors) -> Iterator[tuple[str, bool]]:
    """The differences in words, and whether each is a declared tie that is cut."""
    groups = _saved_ties(model)
    anchors = {name: group[0] for group in groups for name in group}
    declared: dict[str, str] = {}  # for names that are declared tied: towards the first

    def first(name: str) -> str:
        while (other := declared.get(name, name)) != name:
            name = other
        return name

    reason = f"{KEYS} doesn't say so"
    for prefix, inner in _declaring(model):
        if not getattr(getattr(inner, "config", None), "tie_word_embeddings", True):
            reason = "config.tie_word_embeddings is false"
            continue
        for alias, aliases, anchor, sources in _declared(model, anchors, prefix, inner):
            for pattern, names in {alias: aliases, anchor: sources}.items():
                if not names:
                    yield f"{KEYS} has {pattern}, which is no parameter or buffer", False
            if not aliases or not sources:
                continue
            if len(aliases) % len(sources):
                numbers = f"{len(aliases)} and {len(sources)} tensors"
                yield f"{KEYS} says that {alias} is {anchor}, and these are {numbers}", False
                continue
            for name, source in zip(aliases, itertools.cycle(sources), strict=False):
                if source is None:
                    yield f"{KEYS} says that {name} is tied: a tensor of its own", True
                    continue
                declared[first(name)] = first(source)
                if anchors.get(name, name) != anchors.get(source, source):
                    how = how_they_compare(model.tensors[name], model.tensors[source])
                    yield f"{KEYS} says that {name} is {source}: a tensor of its own ({how})", True
    for anchor, *aliases in groups:
        visited = {first(anchor)}
        for alias in aliases:
            if first(alias) not in visited:
                visited.add(first(alias))
                yield f"{alias} is {anchor}, and {reason}", False


def _declared(
    model: ModuleTensors, anchors: Mapping[str, str], prefix: str, inner: Any
) -> Iterator[tuple[str, list[str], str, Sequence[str | None]]]:
    """The ties that a module declares: alias and anchor, each with the names that it means."""
    keys, below = getattr(inner, KEYS), _below(model, prefix)

    def matching(key: str) -> list[str]:
        """The names of a key: one name, the names of a module, or those that match a pattern."""
        if prefix + key in model.tensors:
            return [prefix + key]
        found = _below(model, f"{prefix}{key}.")
        return sorted(found or (name for name in below if re.match(key, name[len(prefix) :])))

    if isinstance(keys, Mapping):
        for alias, anchor in keys.items():
            yield alias, matching(alias), anchor, matching(anchor)
    else:  # patterns of names that are tied to anything, as transformers 4 has them
        for key in keys:
            names = [name for name in below if re.search(key, name[len(prefix) :])]
            yield key, names, key, list(map(anchors.get, names))


def _below(model: ModuleTensors, prefix: str) -> list[str]:
    return [name for name in model.tensors if name.startswith(prefix)]
