# SPDX-License-Identifier: Apache-2.0
"""The base class of a file and of a directory of files: arrays by name, and metadata."""

from collections.abc import Collection, Mapping
from typing import Any

from pydag.structure.document import Document, MalformedError, check_version, parse

from .aliases import aliases_in
from .collector import collector_paused
from .described import Described
from .header import Entry
from .package import KINDS


class Source:
    """Arrays that have names.

    Attributes:
        path: Where they are, for messages.
        entries: The entry of each array, by name.
        metadata: Further names, each with the array that it means; and anything else that the
            program that wrote the file put there.
        text: The structure as JSON; None where pydag didn't write it.
    """

    path: str
    entries: Mapping[str, Entry]
    metadata: Mapping[str, str]
    text: str | None

    def arrays(self, names: Collection[str]) -> dict[str, Any]:
        """The arrays of these names, mapped, read-only. One of booleans is read, and checked."""
        raise NotImplementedError

    def array(self, name: str) -> Any:
        """One of them."""
        return self.arrays([name])[name]

    def open_for(self, names: Collection[str] | None) -> None:
        """Opens the files that have these arrays; None: all files. This adds their `metadata`."""

    def check_aliases(self) -> None:
        """Checks the table of aliases, in a file that has our structure."""
        for alias, name in self.metadata.items():
            if alias == "format" and name not in self.entries:
                continue  # by convention the framework that wrote the file
            if alias in self.entries:
                raise self.wrong(f"{alias!r} is an array and an alias of {name!r}")
            if name not in self.entries:
                raise self.wrong(f"{alias!r} is an alias of {name!r}, which is no array in it")

    def check_complete(self, described: Described) -> None:
        """Checks that the structure uses every array."""
        if len(described.names) < len(self.entries):
            unused = self.entries.keys() - described.names.keys()
            raise self.wrong(
                f"the array {min(unused)!r} is not in the structure; strict=False leaves it out"
            )

    def names(self) -> dict[str, str]:
        """The array that each name means: names of arrays, and aliases."""
        return {name: name for name in self.entries} | self.aliases()

    def aliases(self) -> dict[str, str]:
        """The array that each alias means: none has the name of an array itself."""
        found = aliases_in(self.metadata, self.entries, self.text is not None)
        return {alias: name for alias, name in found.items() if alias not in self.entries}

    @collector_paused()
    def structure(self) -> tuple[Document, Described] | None:
        """The structure in the metadata, and how each of its leaves is described."""
        if self.text is None:
            return None
        try:
            return _checked(parse(self.text), self.entries)
        except MalformedError as error:
            raise self.wrong(str(error)) from None

    def kinds(self) -> dict[str, str]:
        """What kind of leaf each array stands for, where that was no plain array."""
        noted = {} if self.text is None else parse(self.text).get(KINDS, {})
        if type(noted) is not dict or not all(type(kind) is str for kind in noted.values()):
            raise self.wrong(f"malformed structure: {KINDS}: expected an object with text")
        return noted

    def wrong(self, what: str) -> ValueError:
        """The error that says what is wrong in this file."""
        return ValueError(f"{self.path!r}: {what}")


def _checked(whole: Any, entries: Mapping[str, Entry]) -> tuple[Document, Described]:
    if type(whole) is not dict:
        raise MalformedError("the text", "expected an object")
    check_version(whole.get("pydag"))
    document = Document.read(whole.get("structure"))
    return document, Described(whole.get("leaves"), document.num_leaves, entries)
