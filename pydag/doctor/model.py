# SPDX-License-Identifier: Apache-2.0
"""A model under examination: one file, or the files of a directory, with the config beside them."""

import functools
import os
from collections.abc import Hashable, Iterable, Sequence
from operator import attrgetter

from pydag.arrays.names import paired
from pydag.files.header import aliases_in, contradictions

from .config import read_config
from .finding import Damage, Finding, by_form, shown
from .quantized import QuantizedWeights
from .stored import Container, Stored


class Model:
    """The facts about a model from its headers.

    Args:
        is_part: Whether it is one of several files of a model.
        index: The index, or where one should be; None: the model is one file.
    """

    def __init__(
        self,
        path: str,
        folder: str,
        containers: Sequence[Container],
        is_part: bool,
        findings: Iterable[Finding] = (),
        index: str | None = None,
    ) -> None:
        self.revision: str | None = None  # of a repository
        self.has_content = True  # whether arrays may be read, and not only headers
        self.path, self.folder, self.is_part, self.index = path, folder, is_part, index
        self.beside: list[Container] = []  # files that the index doesn't name, with its arrays
        self.not_read: tuple[str, ...] = ()  # other models in the folder
        self.pipeline: dict[str, str] = {}  # of a pipeline: the directory of each part
        self.base: str | None = None  # of an adapter: the model that it is for, "" if unknown
        self.containers = list(containers)
        self.kind = containers[0].kind if containers else "safetensors"
        self.findings = list(findings)
        self.arrays: dict[str, Stored] = {}
        self.aliases: dict[str, str] = {}  # further names, by the metadata
        self.named: set[str] = set()  # all names in all headers
        self.is_known = all(container.named is not None for container in containers)
        for container in containers:
            # Where there are several files, the text says in which it was found.
            where = "" if container.path == path else f"{os.path.basename(container.path)}: "
            self.findings.extend(f._replace(text=where + f.text) for f in container.findings)
            for name, array in container.arrays.items():
                self.arrays.setdefault(name, array)
            self.named.update(container.named or ())
        self._add_aliases()
        self.configure(folder)

    def configure(self, folder: str) -> None:
        """Takes the configuration in a folder for that of the model."""
        self.config, self.config_findings = read_config(folder)

    def _add_aliases(self) -> None:
        """Collects the aliases of all files: what one says of an array of another one counts."""
        is_ours = any(container.structure is not None for container in self.containers)
        tables = {}
        for container in self.containers:
            more = aliases_in(container.metadata, self.named, is_ours)
            tables[os.path.basename(container.path)] = container.aliases | more
        for aliases in tables.values():
            self.aliases.update(aliases)
        for alias, files in contradictions(tables):
            del self.aliases[alias]
            claims = ", and of ".join(f"{shown(name)} by {shown(f)}" for name, f in files.items())
            text = f"{shown(alias)} is an alias of {claims}"
            self.findings.append(Damage("error", (alias, *files), text))

    @functools.cached_property
    def parts(self) -> QuantizedWeights:
        """Its quantized weights."""
        return QuantizedWeights(self.forms.values())

    def close(self) -> None:
        """Closes its files."""
        for container in (*self.containers, *self.beside):
            container.file.close()

    @functools.cached_property
    def forms(self) -> dict[str, list[str]]:
        """The names of its arrays that differ in their digits alone."""
        return by_form(self.arrays)

    def other_names(self) -> list[str]:
        """Further names: aliases, and arrays that are missing or unreadable by a finding."""
        reported = (name for finding in self.findings for name in finding.names)
        others = (*self.aliases, *sorted(self.named - self.arrays.keys()), *reported)
        return [name for name in dict.fromkeys(others) if name not in self.arrays]

    @functools.cached_property
    def storages(self) -> dict[str, Hashable]:
        """What is equal for names that are one array: by alias metadata, or by one storage."""
        found = dict(
            zip(self.arrays, map(attrgetter("storage"), self.arrays.values()), strict=True)
        )
        for alias, name in self.aliases.items():
            if name in self.arrays and alias not in self.arrays:
                found[alias] = self.arrays[name].storage
        return found

    def groups(self) -> list[tuple[str, ...]]:
        """The names that are one array: by alias metadata, or by one storage."""
        return list(map(tuple, paired(self.storages.values(), self.storages).values()))
