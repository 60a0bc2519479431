# SPDX-License-Identifier: Apache-2.0
"""The base class of a file and of a directory of files: arrays by name, and metadata.

The structure in the metadata describes an array by its name, a text. Any other leaf is an object
with one field: `{"scalar": name}` for one of NumPy's numbers, which is an array without dimensions,
or `{"value": ...}`, which structure/values.py explains. `{"array": name}` is read as an array, too.
"""

import functools
import gc
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from pydag.structure.document import Document, MalformedError, check_version, parse

from .header import KINDS, Entry, aliases_in
from .names import listed

F = TypeVar("F", bound=Callable[..., Any])


def collector_paused(function: F) -> F:
    """The function, with the collector off. No user code may run in it: it could notice."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            if was_enabled:
                gc.enable()

    return call  # type: ignore[return-value]  # it takes the same arguments


class Described:
    """The descriptions of all leaves, checked.

    Args:
        number: The number of leaves of the structure.

    Raises:
        MalformedError: A description is malformed, or names no array of the file.
    """

    def __init__(self, leaves: Any, number: int, entries: Mapping[str, Entry]) -> None:
        if type(leaves) is not list or len(leaves) != number:
            raise MalformedError("leaves", "there must be one for each leaf of the structure")
        self.contents: list[Any] = leaves  # the name or value of each leaf
        self.kinds = ["array"] * number  # what each is: "array", "scalar" or "value"
        names = leaves
        if set(map(type, leaves)) != {str} or not all(map(entries.__contains__, leaves)):
            fields = [_field(i, leaf, entries) for i, leaf in enumerate(leaves)]
            self.kinds = [kind for kind, _ in fields]
            self.contents = [content for _, content in fields]
            names = [content for kind, content in fields if kind != "value"]
        self.names = dict.fromkeys(names)  # of the arrays, each once, in the order of the leaves


def _field(leaf: int, found: Any, entries: Mapping[str, Entry]) -> tuple[str, Any]:
    kind, content = "array", found
    if type(found) is not str:
        if type(found) is not dict or len(found) != 1:
            raise _wrong(leaf, "expected a name, or an object with one field")
        ((kind, content),) = found.items()
    if kind != "value":
        if (kind != "array" and kind != "scalar") or type(content) is not str:
            raise _wrong(leaf, f"unknown kind {kind[:40]!r}")
        if content not in entries:
            raise _wrong(leaf, f"there is no array {content[:200]!r}")
        if kind == "scalar" and entries[content]["shape"]:
            raise _wrong(leaf, f"the array {content[:200]!r} is no single number")
    return kind, content


def _wrong(leaf: int, why: str) -> MalformedError:
    return MalformedError(f"leaves[{leaf}]", why)


FileStructure = tuple[Document, Described]


class ArraySource:
    """Arrays that have names.

    Attributes:
        path: Where they are, for messages.
        entries: The entry of each array, by name.
        metadata: The array of each alias, and anything else that the writer of the file put there.
        text: The structure as JSON; None where pydag didn't write it.
    """

    path: str
    entries: Mapping[str, Entry]
    metadata: Mapping[str, str]
    text: str | None

    def arrays(self, names: Collection[str]) -> dict[str, Any]:
        """The arrays of these names, mapped, read-only. One of booleans is read, and checked."""
        raise NotImplementedError  # pragma: no cover: subclasses have it

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

    def unused(self, described: Described, strict: bool) -> str:
        """Which arrays the structure doesn't use, in words; where `strict`, that is an error."""
        if len(described.names) == len(self.entries):
            return ""
        unused = sorted(self.entries.keys() - described.names.keys())
        if strict:
            raise self.wrong(
                f"the array {unused[0]!r} is not in the structure; strict=False leaves it out"
            )
        return (
            f"{self.path!r}: {len(unused)} of {len(self.entries)} arrays are not in the structure, "
            f"and left out (strict=False): {listed(unused, 8)}"
        )

    def names(self) -> dict[str, str]:
        """The array of each name: of the arrays themselves, and of aliases."""
        return {name: name for name in self.entries} | self.aliases()

    def aliases(self) -> dict[str, str]:
        """The array of each alias, without aliases that are names of arrays."""
        found = aliases_in(self.metadata, self.entries, self.text is not None)
        return {alias: name for alias, name in found.items() if alias not in self.entries}

    @collector_paused
    def structure(self) -> FileStructure | None:
        """The structure in the metadata, and how each of its leaves is described."""
        if self.text is None:
            return None
        try:
            whole = parse(self.text)
            if type(whole) is not dict:
                raise MalformedError("the text", "expected an object")
            check_version(whole.get("pydag"))
            document = Document.read(whole.get("structure"))
            return document, Described(whole.get("leaves"), document.num_leaves, self.entries)
        except MalformedError as error:
            raise self.wrong(str(error)) from None

    def kinds(self) -> dict[str, str]:
        """The kind of leaf of each array, unless it was a plain array."""
        noted = {} if self.text is None else parse(self.text).get(KINDS, {})
        if type(noted) is not dict or not all(type(kind) is str for kind in noted.values()):
            raise self.wrong(f"malformed structure: {KINDS}: expected an object with text")
        return noted

    def wrong(self, what: str) -> ValueError:
        """The error that says what is wrong in this file."""
        return ValueError(f"{self.path!r}: {what}")
