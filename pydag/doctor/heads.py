# SPDX-License-Identifier: Apache-2.0
"""Which arrays are the head and the embedding of a language model: by their names, or by shape."""

import itertools
import os
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .model import Model
from .stored import Stored

HEADS = ("lm_head", "output", "embed_out", "cls.predictions.decoder")
EMBEDDINGS = (
    "embed_tokens",
    "wte",
    "shared",
    "embed_in",
    "word_embeddings",
    "tok_embeddings",
    "token_embd",
)
_PLAIN = ("weight", "kernel", "embedding")  # what a module calls its array
_PACKED = ("qweight", "weight_packed", "weight_q", "W_q", "codes")  # and one that is quantized
_HEADS_OF = {  # the head of an embedding, if it isn't `lm_head`
    "embed_in": "embed_out",
    "tok_embeddings": "output",
    "token_embd": "output",
}
# The names that other models give to a head, and to a list of heads.
_LIKE_A_HEAD = re.compile(
    r"head|score|classif|logits|generator|output|proj_out|ff_out|predict|regress", re.I
)
_LIST_OF_HEADS = re.compile(r"head|score|classif", re.I)
_OF_PICTURES = re.compile(r"vision|visual|image|vit", re.I)
_LAYER = re.compile(r"\d+|(?:.*(?:layers?|blocks?|blk)|h)_?\d+", re.I)


class End(NamedTuple):
    """A head or an embedding."""

    name: str  # of its array
    module: str  # the path of the module
    end: str  # the part of the path by which it is known
    is_packed: bool  # whether its name is that of a quantized weight

    @property
    def parent(self) -> str:
        """The path before `end`."""
        return self.module[: len(self.module) - len(self.end)]


def _end(name: str, ends: Iterable[str]) -> End | None:
    module, _, last = name.rpartition(".")
    if last not in _PLAIN and last not in _PACKED:
        return None
    for end in ends:
        if module == end or module.endswith("." + end):
            found = End(name, module, end, last in _PACKED)
            # A layer has a number, and an end is in none.
            return None if any(part.isdigit() for part in module.split(".")) else found
    return None


class Ends:
    """The heads and the embeddings among some names.

    Args:
        names: The names of arrays, in order.
    """

    def __init__(self, names: Iterable[str]) -> None:
        known = list(names)
        self.embeddings = [end for name in known if (end := _end(name, EMBEDDINGS)) is not None]
        parents = {end.parent for end in self.embeddings}
        self.heads = [
            end
            for name in known
            if (end := _end(name, HEADS)) is not None
            # Other modules are called `output`, too.
            and (end.end != "output" or end.parent in parents)
        ]

    def pairs(self) -> list[tuple[End, End]]:
        """Each head with the embedding that it would be tied to: the nearest one.

        Of several heads for one embedding the nearest counts, as the others may be for anything.
        """
        found: dict[End, End] = {}
        for head in self.heads if self.embeddings else ():
            embedding = max(self.embeddings, key=lambda end: _nearness(head, end))
            other = found.setdefault(embedding, head)
            if _nearness(embedding, head) > _nearness(embedding, other):
                found[embedding] = head
        return [(head, embedding) for embedding, head in found.items()]

    def main_embedding(self) -> End | None:
        """The embedding that is tied if there is no head."""
        return min(self.embeddings, key=lambda end: end.module.count("."), default=None)


def is_in_layer(name: str) -> bool:
    """Whether an array belongs to one of many layers, by a number in its name.

    The numbers of several heads don't count: `lm_heads.0.weight`.
    """
    parts = name.split(".")
    above = list(itertools.takewhile(lambda part: not _LAYER.fullmatch(part), parts))
    return len(above) < len(parts) and not any(map(_LIST_OF_HEADS.search, above))


def is_like_a_head(name: str) -> bool:
    """Whether an array may be a head of any kind, by its name."""
    return bool(_LIKE_A_HEAD.search(name)) and not _OF_PICTURES.search(name)


def _nearness(one_end: End, other_end: End) -> tuple[int, bool, int]:
    """How near the second one is to the first one."""
    first, second = one_end.module.split("."), other_end.module.split(".")
    common = os.path.commonprefix([first, second])  # noqa: RUF071  # of lists it compares items
    return len(common), "encoder" not in second, -len(second)


def missing_head(embedding: End) -> str:
    """The name that the head of an embedding would have."""
    if embedding.end == "word_embeddings" and ".embeddings." in f".{embedding.module}":
        return "cls.predictions.decoder.weight"
    head = _HEADS_OF.get(embedding.end, "lm_head")
    prefix = embedding.parent if head != "lm_head" else ""
    if embedding.parent.startswith("model.language_model.") or not embedding.parent:
        return f"{prefix}{head}.weight"
    folder = embedding.parent.removesuffix("model.").removesuffix("transformer.")
    return f"{prefix or (folder if folder != embedding.parent else '')}{head}.weight"


def _others(model: Model) -> Iterator[tuple[str, Stored]]:
    """The arrays outside of the layers, by each name that isn't known as an embedding's."""
    aliases = {a: model.arrays[name] for a, name in model.aliases.items() if name in model.arrays}
    arrays = aliases | model.arrays
    known = {end.name for end in Ends(arrays).embeddings}
    for name, array in arrays.items():
        if name not in known and len(array.shape) > 1 and not is_in_layer(name):
            yield name, array


def of_one_shape(model: Model, embedding: End) -> list[str]:
    """The arrays that may be the head under a name that isn't known: those of its shape."""
    if embedding.name not in model.arrays:
        return []
    shape = sorted(model.arrays[embedding.name].shape)
    return [name for name, array in _others(model) if sorted(array.shape) == shape]


def has_other_head(model: Model) -> bool:
    """Whether there is a head that isn't one for the words of an embedding, as in a classifier."""
    # A single row values a text; a language model has more than that.
    least = 2 if model.config is not None and model.config.is_language_model else 1
    return any(is_like_a_head(name) and min(array.shape) >= least for name, array in _others(model))
