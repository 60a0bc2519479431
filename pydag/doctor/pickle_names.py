# SPDX-License-Identifier: Apache-2.0
"""The names of the tensors in nested containers, as `pydag.files.save` would write them."""

import itertools
import sys
from collections.abc import Container, Iterable, Iterator
from typing import Any

from pydag.files.names import RESERVED, is_writable

from .finding import shown
from .pickle_calls import ARRAYS, is_filled
from .pickle_code import PickleError, TooLong
from .pickle_objects import Dict, Global, NoValues, Opaque, Sparse, Storage, Tensor
from .pickle_values import Pickled

_CONTAINERS = (Dict, Sparse, list, tuple)
_SCALARS = (str, bytes, int, float, complex, bool, type(None))
_KINDS: dict[type, str] = {
    list: "list or set",
    Dict: "dict",
    tuple: "tuple of containers, or a long one",
    TooLong: "very long text or number",
}
_DEEPEST = 200
_MOST_CONTAINERS = 1_000_000
_MOST_TENSORS = 150_000
_MOST_TEXT = 32 << 20  # bytes of all names
_LONGEST_KEY = 64  # items of a tuple
_MOST_PATHS = 100  # of objects that hold tensors


class Walk:
    """Goes through the values of a pickle, path by path.

    Attributes:
        tensors: The tensors by name.
        hidden: The objects that hold further tensors, each with where it is and its class.
        unwritable: What there is besides tensors that a file of arrays can't have.
        has_values: Whether there are values besides.

    Raises:
        PickleError: A container contains itself, or they are nested too deeply; a key isn't text, a
            number, bytes, None, or a tuple of these; a dict has a key twice.
    """

    def __init__(self, pickled: Pickled) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.hidden: list[str] = []
        self.unwritable: str | None = None
        self.has_values = False
        self._seen: set[int] = set()  # objects within those that aren't rebuilt
        size = 0
        for path, tensor in self._tensors(pickled.root):
            name = _name(path, self.tensors)
            size += sys.getsizeof(name)
            if size > _MOST_TEXT or len(self.tensors) >= _MOST_TENSORS:
                raise PickleError(
                    f"the pickle has more than {_MOST_TENSORS} tensors, or their names are longer "
                    f"than {_MOST_TEXT} bytes"
                )
            self.tensors[name] = tensor
        self.hidden.extend(owner.name for owner in pickled.beside if self._is_hiding(owner))

    def _tensors(self, root: Any) -> Iterator[tuple[tuple[Any, ...], Tensor]]:
        """The tensors, each with its path."""
        count = 0
        stack: list[tuple[tuple[Any, ...] | None, Iterator[tuple[Any, Any]], int]] = [
            (None, iter([(None, root)]), 0)
        ]
        open_ids: set[int] = set()
        while stack:
            path, items, own_id = stack[-1]
            for key, value in items:
                if type(value) in _SCALARS:
                    self.has_values = True
                    continue
                way = (*path, key) if path is not None else ()
                if type(value) is Tensor:
                    if any(type(step) in (Global, Opaque) for step in way):
                        self._hide(way, "under a key that is an object")
                        continue
                    if "quantized" in value.reading:
                        self.unwritable = "it has tensors that are quantized"
                    yield way, value
                elif is_filled(value):
                    count += 1
                    if id(value) in open_ids:
                        raise PickleError("a container in the pickle contains itself")
                    if len(way) > _DEEPEST:
                        raise PickleError(f"the pickle is nested more than {_DEEPEST} levels deep")
                    if count > _MOST_CONTAINERS:
                        raise PickleError(f"the pickle has more than {_MOST_CONTAINERS} containers")
                    if type(value) is Sparse:
                        self.unwritable = "it has tensors that are sparse"
                    open_ids.add(id(value))
                    stack.append((way, self._items(way, value), id(value)))
                    break
                elif type(value) not in _CONTAINERS:
                    self._other(way, value)
            else:
                stack.pop()
                open_ids.discard(own_id)

    def _other(self, way: tuple[Any, ...], value: Any) -> None:
        if type(value) is NoValues:
            self.unwritable = "it has tensors on meta, which have no values"
        elif type(value) is Storage:
            self.unwritable = "it has storages without tensors"
        else:
            self.has_values = True
            if type(value) is Opaque and self._is_hiding(value):
                self._hide(way, value.name)

    def _hide(self, way: tuple[Any, ...], what: str) -> None:
        is_told = way and len(self.hidden) < _MOST_PATHS
        self.hidden.append(f"{shown(_text(way))} ({what})" if is_told else what)

    def _items(self, way: tuple[Any, ...], container: Any) -> Iterator[tuple[Any, Any]]:
        if type(container) is not Dict:
            return enumerate(container)
        keys, values = (itertools.islice(container, start, None, 2) for start in (0, 1))
        seen: set[Any] = set()
        for key in itertools.islice(container, 0, None, 2):
            token = _token(key)
            if token in seen:
                raise PickleError(f"malformed pickle: a dict has the key {shown(repr(key))} twice")
            seen.add(token)
            if type(key) is Opaque and self._is_hiding(key):
                self._hide(way, f"a key, {key.name}")
        return zip(keys, values, strict=True)

    def _is_hiding(self, root: Opaque) -> bool:
        """Whether an object that isn't rebuilt holds an array, and it is the first that does."""
        pending: list[Any] = [root]
        is_found = False
        while pending:
            value = pending.pop()
            if type(value) in (Tensor, Storage, NoValues):
                is_found = True
                continue
            if id(value) in self._seen or not (type(value) is Opaque or is_filled(value)):
                continue
            self._seen.add(id(value))
            if type(value) is Opaque:
                is_found |= value.name in ARRAYS
                pending.extend(value.contents)
            else:
                pending.extend(value)
        return is_found


def _token(key: Any) -> Any:
    """Equal for keys that are equal; only text is hashed, since its hashes can't be foreseen."""
    kind = type(key)
    if kind in (str, bytes, Opaque):
        return key
    if kind is Global:
        return kind, key.name
    if kind is tuple and len(key) <= _LONGEST_KEY and all(type(part) in _SCALARS for part in key):
        return kind, tuple(map(_token, key))
    if kind not in _SCALARS:
        raise PickleError(
            "malformed pickle: a key of a dict is no text, number, bytes, None, or tuple of a few "
            f"of these, but a {_KINDS.get(kind, kind.__name__)}"
        )
    if kind is complex and not key.imag:
        key = key.real
    if type(key) is float and key.is_integer():
        key = int(key)
    return int, str(int(key) if type(key) is bool else key)


def _name(path: tuple[Any, ...], taken: Container[str]) -> str:
    """A name that isn't taken: joined by dots, or as Python text."""
    parts = [part for part in map(_part, path) if part is not None]
    if len(parts) == len(path):
        dotted = ".".join(parts) if path else "tensor"
        if dotted not in taken and dotted not in RESERVED:
            return dotted
    name = text = _text(path)
    number = 1
    while name in taken:
        number += 1
        name = f"{text}#{number}"
    return name


def _part(key: Any) -> str | None:
    """A key as part of a name; None if it can't be one."""
    if type(key) is int:
        return str(key)
    return key if type(key) is str and key and is_writable(key) else None


def _text(path: Iterable[Any]) -> str:
    """A path as Python text."""
    return "".join(f"[{key.name if type(key) in (Global, Opaque) else repr(key)}]" for key in path)
