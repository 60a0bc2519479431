# SPDX-License-Identifier: Apache-2.0
"""Heads that have other names than those of `heads`: known by their shape, or roughly by name."""

from collections.abc import Iterator

from .heads import End, Ends, is_in_layer, is_like_a_head
from .model import Model
from .stored import Stored


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
