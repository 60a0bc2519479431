# SPDX-License-Identifier: Apache-2.0
"""What a model's `config.json` says of its ties, and what its class and family declare."""

import json
import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from .finding import Finding, listed, shown
from .known import Declared, declared, default_tied, known_count, value_at
from .paths import small_file

CONFIG = "config.json"
TIED = "tie_word_embeddings"
_WORDS = ("untied", "tied")
# Configurations of parts that have no words.
_WORDLESS = re.compile(r"vision|visual|image|audio|speech|vit|vq|codec|qformer|projector", re.I)


class Config(NamedTuple):
    """The content of a `config.json`."""

    declared_ties: dict[str, bool]  # for each place that declares whether names are tied, its value
    architectures: tuple[str, ...]  # the classes that the model is for
    known: tuple[Declared, ...]  # what is declared for them, where that is known
    model_type: str  # its family; may be empty
    vocab_size: object

    def decide(self) -> tuple[bool | None, str]:
        """Whether the declared ties hold, None if that is unknown; and by what."""
        names, rows = listed(self.architectures), [row for row in self.known if row.ties]
        if any(row.is_always_tied for row in rows) and True not in self.declared_ties.values():
            return True, f"{names} is always tied"
        unknown = f"{names} isn't known ({known_count()} are); " if names and not self.known else ""
        places = [place for row in rows for place in row.places]
        given = [place for place in places if place in self.declared_ties] or list(
            self.declared_ties
        )
        if given:  # an old name of a place decides alone
            old = [place for place in given[:1] if not place.endswith(TIED)]
            is_tied = any(self.declared_ties[place] for place in old or given)
            return is_tied, f"{unknown}{CONFIG} says {_WORDS[is_tied]}"
        places = [*places, TIED, f"text_config.{TIED}"]
        defaults = {default_tied(self.model_type, place) for place in places} - {None}
        if len(defaults) != 1:
            return None, f"{unknown}{CONFIG} doesn't say what is tied"
        is_tied = True in defaults
        return is_tied, f"{unknown}{shown(self.model_type)} is {_WORDS[is_tied]} by default"

    def contradiction(self) -> Finding | None:
        """The finding that places disagree. The defaults of some families do."""
        declared_ties = {
            place: value for place, value in self.declared_ties.items() if place.endswith(TIED)
        }
        tied, untied = (
            [p for p, value in declared_ties.items() if value is word] for word in (True, False)
        )
        defaults = {place: default_tied(self.model_type, place) for place in declared_ties}
        if not tied or not untied or defaults == declared_ties:
            return None
        text = f"{CONFIG} says both: tied by {listed(tied)}, untied by {listed(untied)}"
        return Finding("error", (*tied, *untied), text)


def read_object(folder: str, name: str, findings: list[Finding]) -> dict[str, Any] | None:
    """The JSON object in a small file of a folder; None if there is none, or it is a finding."""
    try:
        found = json.loads(small_file(os.path.join(folder, name)).decode())
        if type(found) is not dict:
            raise ValueError("it is no JSON object")
    except (FileNotFoundError, IsADirectoryError):
        return None
    except (OSError, ValueError, RecursionError) as error:
        findings.append(Finding("error", (name,), f"{name} can't be read: {error}"))
        return None
    return found


def read_config(folder: str) -> tuple[Config | None, list[Finding]]:
    """The configuration in a folder, or None, and the problems of it."""
    findings: list[Finding] = []
    whole = read_object(folder, CONFIG, findings)
    if whole is None:
        return None, findings
    named, family = whole.get("architectures"), whole.get("model_type")
    named = [n for n in named if type(n) is str] if type(named) is list else []
    known = dict.fromkeys(row for n in named if (row := declared(n, whole)) is not None)
    values = dict(_flags(whole))
    values |= {place: value_at(whole, place) for row in known for place in row.places}
    declared_ties = {place: value for place, value in values.items() if type(value) is bool}
    for place, value in values.items():
        if value is not None and place not in declared_ties:
            what = f"{shown(json.dumps(value))} at {shown(place)}"
            text = f"{CONFIG} says {what}: neither true nor false"
            findings.append(Finding("doubt", (place,), text))
    family = family if type(family) is str else ""
    architectures = tuple(dict.fromkeys(named))
    config = Config(declared_ties, architectures, tuple(known), family, whole.get("vocab_size"))
    return config, [*filter(None, [config.contradiction()]), *findings]


def _flags(config: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Each place of a config, and of those in it, that says what is tied, with its value."""
    left = [("", config)]
    while left:
        prefix, config = left.pop()
        yield prefix + TIED, config.get(TIED)
        for key, value in reversed(config.items()):
            is_config = key.endswith("_config") or key in ("decoder", "encoder")
            if type(value) is dict and is_config and not _WORDLESS.search(key):
                left.append((f"{prefix}{key}.", value))
