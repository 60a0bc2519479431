# SPDX-License-Identifier: Apache-2.0
"""The result of `check`: findings, and figures about the model."""

import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

from .finding import LEVELS, Finding, Level, listed, shown, size_text
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
        headers: Whether only headers were read, so that no content was compared.
        read: The names of its files.
        not_read: The names of files of other models in its folder.
        revision: Which one it is in a hub cache, else None.
        base: The model that an adapter is for, "" where it isn't said; None: it is no adapter.
        parts: The report of each part of a pipeline, else empty.
    """

    def __init__(
        self, model: Model, findings: Iterable[Finding], parts: Mapping[str, "Report"] | None = None
    ) -> None:
        self.path, self.kind = model.path, model.kind
        self.headers, self.revision, self.base = not model.has_content, model.revision, model.base
        files = (os.path.basename(container.path) for container in model.containers)
        inner = parts or {}
        self.read, self.not_read = tuple(inner or files), model.not_read
        self.parts, self._own = tuple(inner.values()), tuple(findings)
        named = (f._replace(text=f"{name}: {f.text}") for name in inner for f in inner[name])
        everything = (*self._own, *named)
        self.findings = tuple(sorted(everything, key=lambda finding: LEVELS.index(finding.level)))
        self._counted = Counter(finding.level for finding in self.findings)
        arrays, storages = model.arrays.values(), model.storages.values()
        distinct = dict(zip(map(attrgetter("storage"), arrays), arrays, strict=True))
        shapes = map(attrgetter("shape"), distinct.values())
        sizes = dict(zip(distinct, map(math.prod, shapes), strict=True))
        own = Figures(
            len(model.containers),
            len(arrays),
            sum(sizes.values()),
            sum(map(sizes.__getitem__, storages)),
            sum(map(attrgetter("nbytes"), distinct.values())),
            sum(finding.nbytes for finding in self._own),
        )
        rows = zip(own, *(part.figures for part in self.parts), strict=True)
        self.figures: Figures = Figures(*map(sum, rows))

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
        number = len(self.parts)
        about = [f"{number} part{'s' * (number > 1)}"] if number else [self.kind, files]
        if self.base is not None:
            about.append(f"an adapter of {shown(self.base)}" if self.base else "an adapter")
        about += [f"revision {shown(self.revision)}"] if self.revision else []
        lines = [f"{path}: {', '.join(about)}"]
        if self.not_read:
            lines.append(f"  read: {listed(self.read)}; not read: {listed(self.not_read)}")
        if self.parts:
            lines += [f"  {finding}" for finding in self._own]
            return "\n\n".join(["\n".join(lines), *map(str, self.parts)])
        lines += [f"  {finding}" for finding in self.findings]
        parameters = f"{figures.with_ties:,} parameters"
        if figures.without_ties != figures.with_ties:
            parameters += f", {figures.without_ties:,} without ties"
        sizes = f"{size_text(figures.stored)} stored, {size_text(figures.wasted)} wasted"
        if self.headers:
            sizes += "; only headers were read, and no content was compared"
        return "\n".join([*lines, self._counts(), f"{parameters}; {sizes}"])

    def _counts(self) -> str:
        counts = self._counted
        shown = (level for level in LEVELS if level != "change" or counts[level])
        return ", ".join(count_text(counts[level], level) for level in shown)

    def to_json(self) -> dict[str, Any]:
        """The report as an object of JSON, which has `version` 1."""
        rows = self._own if self.parts else self.findings
        found = [{**finding._asdict(), "names": list(finding.names)} for finding in rows]
        if self.parts:
            reports = [part.to_json() for part in self.parts]
            own = {"findings": found} if found else {}
            return {"version": JSON_VERSION, **own, "reports": reports}
        files, arrays, with_ties, without_ties, stored, wasted = self.figures
        whole = {
            "version": JSON_VERSION,
            "path": self.path,
            "format": self.kind,
            "revision": self.revision,
            "base": self.base,
            "read": list(self.read) if self.not_read else None,
            "not_read": list(self.not_read) or None,
            "headers": self.headers or None,
            "ok": self.ok,
            "findings": found,
            "counts": {level: self._counted[level] for level in LEVELS},
            "files": files,
            "arrays": arrays,
            "parameters": {"with_ties": with_ties, "without_ties": without_ties},
            "bytes": {"stored": stored, "wasted": wasted},
        }
        return {key: value for key, value in whole.items() if value is not None}


def count_text(number: int, level: Level) -> str:
    """A number of findings in words."""
    return f"{number} {level}{'' if number == 1 else 's'}"
