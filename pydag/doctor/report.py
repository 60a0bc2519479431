# SPDX-License-Identifier: Apache-2.0
"""The result of `check`: findings, and figures about the model."""

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, NamedTuple

from .finding import LEVELS, Finding, Level, size_text
from .model import Model

JSON_VERSION = 1
WORDS: dict[Level, tuple[str, str]] = {
    "error": ("error", "errors"),
    "doubt": ("doubt", "doubts"),
    "waste": ("waste", "wastes"),
    "tie": ("tie", "ties"),
    "change": ("change", "changes"),
}


class Figures(NamedTuple):
    """The size of a model.

    Attributes:
        files: The files that could be read.
        arrays: The names of arrays in them, without aliases.
        with_ties: Parameters, each array once.
        without_ties: Parameters, if each name had an array of its own.
        stored: Bytes of arrays.
        wasted: Bytes that are stored twice, or that nobody uses.
    """

    files: int
    arrays: int
    with_ties: int
    without_ties: int
    stored: int
    wasted: int


class Report:
    """The findings about a model. It is a sequence of findings, the errors first.

    Attributes:
        path: The path that was checked.
        kind: The format: "safetensors", "torch" or "GGUF".
        findings: All findings.
        figures: Parameters and bytes.
    """

    def __init__(self, path: str, kind: str, findings: Iterable[Finding], figures: Figures) -> None:
        self.path, self.kind = path, kind
        self.findings = tuple(sorted(findings, key=lambda finding: LEVELS.index(finding.level)))
        self.figures = figures

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return not self.at("error")

    def at(self, *levels: Level) -> tuple[Finding, ...]:
        """The findings of some levels."""
        return tuple(finding for finding in self.findings if finding.level in levels)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __bool__(self) -> bool:
        return True  # a report without findings is one, too

    def __repr__(self) -> str:
        return f"Report({self.path!r}, {self._counts()})"

    def __str__(self) -> str:
        files = "1 file" if self.figures.files == 1 else f"{self.figures.files} files"
        head = f"{_printable(self.path)}: {self.kind}, {files}"
        return "\n".join([head, *(f"  {finding}" for finding in self.findings), *self._summary()])

    def _summary(self) -> list[str]:
        figures = self.figures
        parameters = f"{figures.with_ties:,} parameters"
        if figures.without_ties != figures.with_ties:
            parameters += f", {figures.without_ties:,} without ties"
        sizes = f"{size_text(figures.stored)} stored, {size_text(figures.wasted)} wasted"
        return [self._counts(), f"{parameters}; {sizes}"]

    def _counts(self) -> str:
        counts = Counter(finding.level for finding in self.findings)
        shown = (level for level in LEVELS if level != "change" or counts[level])
        return ", ".join(f"{counts[level]} {WORDS[level][counts[level] != 1]}" for level in shown)

    def to_json(self) -> dict[str, Any]:
        """The report as an object of JSON, which has `version` 1."""
        counts = Counter(finding.level for finding in self.findings)
        figures = self.figures
        return {
            "version": JSON_VERSION,
            "path": self.path,
            "format": self.kind,
            "ok": self.ok,
            "findings": [
                {
                    "level": finding.level,
                    "names": list(finding.names),
                    "text": finding.text,
                    "nbytes": finding.nbytes,
                }
                for finding in self.findings
            ],
            "counts": {level: counts[level] for level in LEVELS},
            "files": figures.files,
            "arrays": figures.arrays,
            "parameters": {
                "with_ties": figures.with_ties,
                "without_ties": figures.without_ties,
            },
            "bytes": {"stored": figures.stored, "wasted": figures.wasted},
        }


def as_json_text(content: Any) -> str:
    """JSON as it is printed."""
    return json.dumps(content, indent=2)


def _printable(text: str) -> str:
    return text if text.isprintable() else ascii(text)


def figures_of(model: Model, findings: Iterable[Finding]) -> Figures:
    """The figures of a model."""
    sizes: dict[Hashable, int] = {}
    without = 0
    for array in model.arrays.values():
        sizes[array.storage] = array.size
        without += array.size
    for alias, name in model.aliases.items():
        if name in model.arrays and alias not in model.arrays:
            without += model.arrays[name].size
    stored: dict[Hashable, int] = {array.storage: array.nbytes for array in model.arrays.values()}
    return Figures(
        len(model.containers),
        len(model.arrays),
        sum(sizes.values()),
        without,
        sum(stored.values()),
        sum(finding.nbytes for finding in findings),
    )
