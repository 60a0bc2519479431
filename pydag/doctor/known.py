# SPDX-License-Identifier: Apache-2.0
"""What transformers declares as tied, for each of its architectures: a table of facts.

`make known-ties` writes it; neither transformers nor PyTorch is needed to read it.
"""

import functools
import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

TABLE = Path(__file__).with_name("known_ties.json")
_TIED = "tie_word_embeddings"


class Declared(NamedTuple):
    r"""What transformers declares for an architecture.

    Attributes:
        ties: Each target, once, with its source. A target is a name, or a regular expression that
            must match a whole name; then the source is a template for the match: `head.0.\1`. A `*`
            in it is a number that depends on the config, so that no array may have this very name.
            A name that an array has in files, and not in the model, is a target, too.
        prefix: That of the base model in front of its names, such as `model`; may be empty.
        is_always_tied: Whether the ties hold whatever the config says.
        places: The dotted places of the config, each of which is enough for the ties if it is true.
            If the class reads an old name of a place, that is the first one, and alone decides.
    """

    ties: tuple[tuple[str, str], ...]
    prefix: str
    is_always_tied: bool
    places: tuple[str, ...]


def value_at(config: Any, place: str) -> Any:
    """The value at a dotted place of a config; None if there is none."""
    for name in place.split("."):
        config = config.get(name) if isinstance(config, Mapping) else None
    return config


def declared(architecture: str, config: Mapping[str, Any] | None = None) -> Declared | None:
    """What is declared for an architecture; None if it isn't in the table.

    Args:
        config: The content of a `config.json`. In some architectures it changes what is tied.
    """
    row, fit = _tables().architectures.get(architecture), defaultdict[int, list[set[Any]]](list)
    for values, ties in _tables().others.get(architecture, ()):
        if all(value_at(config, place) == value for place, value in values.items()):
            fit[len(values)].append(set(ties.items()))
    if row is None or not fit:
        return row
    # What is known of several values together counts before what is known of each.
    return row._replace(ties=tuple(sorted(set.intersection(*fit[max(fit)]))))


def default_tied(model_type: str, place: str = _TIED) -> bool | None:
    """Whether a config of some `model_type` that leaves a place out is tied; None: unknown."""
    return _tables().defaults.get(model_type, {}).get(place)


def known_count() -> int:
    """How many architectures the table has."""
    return len(_tables().architectures)


class _Tables(NamedTuple):
    architectures: dict[str, Declared]
    others: dict[str, list[tuple[dict[str, str | bool | int], dict[str, str]]]]
    defaults: dict[str, dict[str, bool]]


@functools.cache
def _tables() -> _Tables:
    """The table, read when it is needed first; what it has often is shorter there."""
    table = json.loads(TABLE.read_text("utf-8").replace("=", _TIED))
    architectures: dict[str, Declared] = {}
    for groups, prefix, *rest in table["declared"]:
        ties, places = rest or ({}, "")
        ties, places = tuple(ties.items()), tuple(places.split())
        row = Declared(ties, prefix, bool(ties) and not places, places)
        for ends, stems in groups.items():  # {"C M": "Llama Mistral"} stands for four names
            for end in ends.split():
                end = table["ends"].get(end, end)
                architectures |= {stem + end: row for stem in stems.split()}
    others = {name: rows for names, rows in table["others"] for name in names.split()}
    defaults = {name: row for row, names in table["defaults"] for name in names.split()}
    return _Tables(architectures, others, defaults)
