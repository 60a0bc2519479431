# SPDX-License-Identifier: Apache-2.0
"""The result of `check`: findings, and figures about the model."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from .finding import LEVELS, Finding, Level, size_text
from .model import Model

JSON_VERSION = 1


class Figures(NamedTuple):
    """The size of a model."""

    files: int  # that could be read
    arrays: int  # names in them, without aliases
    with_ties: int  # parameters, each array once
    without_ties: int  # parameters, if each name had an array of its own
    stored: int  # bytes of arrays
    wasted: int  # bytes that are stored twice, or that nobody uses


class Report:
    """The findings about a model. It is a sequence of findings, the errors first.

    Attributes:
        path: The path that was checked.
        kind: The format: "safetensors", "torch" or "GGUF".
        findings: All findings.
        figures: Parameters and bytes.
    """

    def __init__(self, model: Model, findings: Iterable[Finding]) -> None:
        self.path, self.kind = model.path, model.kind
        self.findings = tuple(sorted(findings, key=lambda finding: LEVELS.index(finding.level)))
        arrays = model.arrays
        distinct = {array.storage: array for array in arrays.values()}.values()
        aliases = [arrays[n] for a, n in model.aliases.items() if n in arrays and a not in arrays]
        self.figures = Figures(
            len(model.containers),
            len(arrays),
            sum(array.size for array in distinct),
            sum(array.size for array in (*arrays.values(), *aliases)),
            sum(array.nbytes for array in distinct),
            sum(finding.nbytes for finding in self.findings),
        )

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
        return True  # also without findings

    def __repr__(self) -> str:
        return f"Report({self.path!r}, {self._counts()})"

    def __str__(self) -> str:
        figures = self.figures
        path = self.path if self.path.isprintable() else ascii(self.path)
        files = "1 file" if figures.files == 1 else f"{figures.files} files"
        parameters = f"{figures.with_ties:,} parameters"
        if figures.without_ties != figures.with_ties:
            parameters += f", {figures.without_ties:,} without ties"
        sizes = f"{size_text(figures.stored)} stored, {size_text(figures.wasted)} wasted"
        lines = [f"{path}: {self.kind}, {files}", *(f"  {finding}" for finding in self.findings)]
        return "\n".join([*lines, self._counts(), f"{parameters}; {sizes}"])

    def _counts(self) -> str:
        counts = Counter(finding.level for finding in self.findings)
        shown = (level for level in LEVELS if level != "change" or counts[level])
        return ", ".join(count_text(counts[level], level) for level in shown)

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
                {**finding._asdict(), "names": list(finding.names)} for finding in self.findings
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


def count_text(number: int, level: Level) -> str:
    """A number of findings in words."""
    return f"{number} {level}{'' if number == 1 else 's'}"
