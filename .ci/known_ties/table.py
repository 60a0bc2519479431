# SPDX-License-Identifier: Apache-2.0
"""How the table is written: each distinct row once, with the names that share it, one a line."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from .facts import Facts

TIED = "tie_word_embeddings"  # written as "="
ENDS = {  # of the names of most classes
    "C": "ForCausalLM",
    "G": "ForConditionalGeneration",
    "I": "ForImageClassification",
    "L": "ForMaskedLM",
    "M": "Model",
    "O": "ForMultipleChoice",
    "Q": "ForQuestionAnswering",
    "S": "ForSequenceClassification",
    "T": "ForTokenClassification",
    "-": "",
}
_SHORT = {end: short for short, end in ENDS.items()}
_PARTED = re.compile(r"(.+?)((?:For[A-Z]|LMHead|Model|With[A-Z]|TextModel|VisionModel).*)")


def text(
    version: str, facts: Mapping[str, Facts], defaults: Mapping[str, Mapping[str, bool]]
) -> str:
    """The whole table, as JSON."""
    assert "=" not in repr([(row.ties, row.others) for row in facts.values()])
    names = defaultdict(list)
    others = defaultdict(list)
    for name, row in sorted(facts.items()):
        names[row.ties, row.prefix, row.places].append(name)
        if row.others:
            others[row.others].append(name)
    declared = []
    for ties, prefix, places in sorted(names):
        rest = [dict(ties), _short(" ".join(places))] if ties or places else []
        declared.append(_compact([_grouped(names[ties, prefix, places]), prefix, *rest]))
    changes = [
        _compact([" ".join(of), [[dict(values), dict(ties)] for values, ties in rows]])
        for rows, of in others.items()
    ]
    types = defaultdict(list)
    for model_type, row in sorted(defaults.items()):
        types[tuple((_short(place), value) for place, value in sorted(row.items()))].append(
            model_type
        )
    known = [_compact([dict(row), " ".join(types[row])]) for row in sorted(types)]
    parts = {"declared": declared, "others": changes, "defaults": known}
    head = f'{{"transformers":"{version}",\n"ends":{_compact(ENDS)}'
    return head + "".join(f',\n"{key}":[\n{_lines(rows)}]' for key, rows in parts.items()) + "}\n"


def _short(places: str) -> str:
    return re.sub(rf"\b{TIED}\b", "=", places)


def _grouped(names: Iterable[str]) -> dict[str, str]:
    """{"C M": "Llama Mistral"} stands for four names."""
    ends = defaultdict(list)
    for name in sorted(names):
        found = _PARTED.fullmatch(name)
        stem, end = found.groups() if found else (name, "")
        ends[stem].append(_SHORT.get(end, end))
    stems = defaultdict(list)
    for stem, of_stem in ends.items():
        stems[" ".join(of_stem)].append(stem)
    return {key: " ".join(stems[key]) for key in sorted(stems)}


def _compact(row: object) -> str:
    return json.dumps(row, separators=(",", ":"))


def _lines(rows: Iterable[str]) -> str:
    return ",\n".join(rows) + "\n"
