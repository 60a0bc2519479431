# SPDX-License-Identifier: Apache-2.0
"""The ties that a model's `config.json` declares."""

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from pydag.files.header import LARGEST

from .finding import Finding, listed, shown

CONFIG = "config.json"
TIED = "tie_word_embeddings"
# Configurations of parts that have no words.
_WORDLESS = re.compile(r"vision|visual|image|audio|speech|vit|vq|codec|qformer|projector", re.I)
_LANGUAGE_MODEL = re.compile(r".*(ForCausalLM|ForConditionalGeneration)")
_WITH_HEAD = re.compile(
    r".*(ForCausalLM|ForConditionalGeneration|ForMaskedLM|LMHeadModel|ForPreTraining|LMHead)"
)


class Config(NamedTuple):
    """The content of a `config.json`.

    Attributes:
        said: For each place that declares whether the embeddings are tied, its value.
        architectures: The classes that the model is for.
    """

    said: dict[str, bool]
    architectures: tuple[str, ...]

    @property
    def is_tied(self) -> bool | None:
        """Whether head and embedding are tied; None if no place declares it, or they disagree."""
        values = set(self.said.values())
        return values.pop() if len(values) == 1 else None

    @property
    def is_language_model(self) -> bool:
        """Whether the model must have a head."""
        return any(map(_LANGUAGE_MODEL.fullmatch, self.architectures))

    @property
    def may_have_head(self) -> bool:
        """Whether the model has a head, as far as that is known."""
        return not self.architectures or any(map(_WITH_HEAD.fullmatch, self.architectures))

    def check(self) -> Iterator[Finding]:
        """Whether all places agree."""
        tied = [place for place, value in self.said.items() if value]
        untied = [place for place, value in self.said.items() if not value]
        if tied and untied:
            text = f"{CONFIG} says both: tied by {listed(tied)}, untied by {listed(untied)}"
            yield Finding("error", (*tied, *untied), text)


def read_config(folder: str) -> tuple[Config | None, list[Finding]]:
    """The configuration in a folder, or None, and the problems of it."""
    path = os.path.join(folder, CONFIG)
    try:
        if not os.path.isfile(path):
            return None, []
        with open(path, "rb") as file:
            text = file.read(LARGEST + 1)
        if len(text) > LARGEST:
            raise ValueError(f"it has more than {LARGEST} bytes")
        twice: list[str] = []
        whole = json.loads(text.decode(), object_pairs_hook=lambda rows: _object(rows, twice))
        if type(whole) is not dict:
            raise ValueError("it is no JSON object")
        places = dict(_said(whole, ""))
    except (OSError, ValueError, RecursionError) as error:
        return None, [Finding("error", (CONFIG,), f"{CONFIG} can't be read: {error}")]
    named = whole.get("architectures")
    architectures = tuple(n for n in named if type(n) is str) if type(named) is list else ()
    config = Config({k: v for k, v in places.items() if type(v) is bool}, architectures)
    return config, [*config.check(), *_odd(places, twice)]


def _object(rows: list[tuple[str, Any]], twice: list[str]) -> dict[str, Any]:
    twice.extend(key for key, count in Counter(key for key, _ in rows).items() if count > 1)
    return dict(rows)


def _odd(places: dict[str, Any], twice: list[str]) -> Iterator[Finding]:
    """Findings about values that readers may understand in different ways."""
    if twice:
        text = f"{CONFIG} has {listed(twice)} twice: readers may take either"
        yield Finding("doubt", tuple(twice), text)
    for place, value in places.items():
        if type(value) is not bool:
            what = f"{shown(json.dumps(value))} at {shown(place)}"
            yield Finding("doubt", (place,), f"{CONFIG} says {what}: neither true nor false")


def _said(config: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    if config.get(TIED) is not None:
        yield prefix + TIED, config[TIED]
    for key, value in config.items():
        is_config = key.endswith("_config") or key in ("decoder", "encoder")
        if type(value) is dict and is_config and not _WORDLESS.search(key):
            yield from _said(value, f"{prefix}{key}.")
