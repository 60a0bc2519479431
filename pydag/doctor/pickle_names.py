# SPDX-License-Identifier: Apache-2.0
"""The names of the tensors in nested containers, as `pydag.files.save` would write them."""

import itertools
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from pydag.files.names import RESERVED, is_writable

from .finding import shown
from .pickle_calls import ARRAYS, CONTAINERS, is_filled
from .pickle_objects import Dict, Frozen, Global, Meta, Opaque, PickleError, Sparse, Storage, Tensor
from .pickle_values import Pickled

_JOINED = (tuple, Frozen)
_SCALARS = (str, bytes, int, float, complex, bool, type(None))
_BAD_KEY = (
    "malformed pickle: a key of a dict is no text, number, bytes or None that isn't long, or a few "
    "of these in a tuple or frozenset, but a {}"
)
_UNWRITABLE: dict[type, str] = {
    Meta: "it has tensors on meta, which have no values",
    Storage: "it has storages without tensors",
    Sparse: "it has tensors that are sparse",
}
_DEEPEST = 200
_MOST_CONTAINERS = 1_000_000
_MOST_ITEMS = 4_000_000  # of containers at all their places; two more for each byte of the pickle
_MOST_TENSORS = 150_000
_MOST_TEXT = 32 << 20  # bytes of all names
_LONGEST_KEY = 64  # parts of a tuple, all in all; 200 characters are a part
_MOST_PATHS = 100  # of objects that hold tensors


class NameWalk:
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
        self._open: set[int] = set()  # containers around the present one
        self._visited: set[int] = set()  # objects within those that aren't rebuilt
        self._checked: set[int] = set()  # dicts whose keys were compared
        self._containers_left = _MOST_CONTAINERS
        self._items_left = _MOST_ITEMS + 2 * pickled.size
        self._text_left = _MOST_TEXT
        self._visit(pickled.root, ())
        self.hidden.extend(owner.name for owner in pickled.beside if self._is_hiding(owner))

    def _visit(self, value: Any, path: tuple[Any, ...]) -> None:
        kind = type(value)
        self.unwritable = _UNWRITABLE.get(kind, self.unwritable)
        if kind is Tensor:
            self._add(value, path)
        elif kind is Opaque and self._is_hiding(value):
            self._hide(path, value.name)
        elif kind not in (Meta, Storage, *CONTAINERS):
            self.has_values = True
        elif is_filled(value):
            if id(value) in self._open:
                raise PickleError("a container in the pickle contains itself")
            if len(path) > _DEEPEST:
                raise PickleError(f"the pickle is nested more than {_DEEPEST} levels deep")
            self._open.add(id(value))
            for key, item in self._items(value, path):
                if type(item) in _SCALARS:
                    self.has_values = True
                else:
                    self._visit(item, (*path, key))
            self._open.discard(id(value))

    def _add(self, tensor: Tensor, path: tuple[Any, ...]) -> None:
        if any(type(step) in (Global, Opaque) for step in path):
            self._hide(path, "under a key that is an object")
            return
        if "quantized" in tensor.reading:
            self.unwritable = "it has tensors that are quantized"
        name = next(name for name in _names(path) if name not in self.tensors)
        self._text_left -= sys.getsizeof(name)
        if self._text_left < 0 or len(self.tensors) >= _MOST_TENSORS:
            raise PickleError(
                f"the pickle has more than {_MOST_TENSORS} tensors, or their names are longer than "
                f"{_MOST_TEXT} bytes"
            )
        self.tensors[name] = tensor

    def _hide(self, path: tuple[Any, ...], what: str) -> None:
        is_listed = path and len(self.hidden) < _MOST_PATHS
        self.hidden.append(f"{shown(_text(path))} ({what})" if is_listed else what)

    def _items(self, container: Any, path: tuple[Any, ...]) -> Iterable[tuple[Any, Any]]:
        """The items of a container, each with its key."""
        self._containers_left -= 1
        self._items_left -= len(container)
        if self._containers_left < 0:
            raise PickleError(f"the pickle has more than {_MOST_CONTAINERS} containers")
        if self._items_left < 0:
            raise PickleError("the pickle has long containers at more places than can be gone to")
        if type(container) is not Dict:
            return enumerate(container)
        keys = container[::2]
        visited: set[Any] = set()
        for key in keys if id(container) not in self._checked else ():
            token = _token(key)
            if token in visited:
                raise PickleError(f"malformed pickle: a dict has the key {shown(repr(key))} twice")
            visited.add(token)
            if type(key) is Opaque and self._is_hiding(key):
                self._hide(path, f"a key, {key.name}")
        self._checked.add(id(container))
        return zip(keys, container[1::2], strict=True)

    def _is_hiding(self, root: Opaque) -> bool:
        """Whether an object that isn't rebuilt holds an array, and it is the first that does."""
        pending: list[Any] = [root]
        is_found = False
        while pending:
            value = pending.pop()
            is_found |= type(value) in (Tensor, Storage, Meta)
            if id(value) in self._visited or not (type(value) is Opaque or is_filled(value)):
                continue
            self._visited.add(id(value))
            is_found |= type(value) is Opaque and value.name in ARRAYS
            pending.extend(value.contents if type(value) is Opaque else value)
        return is_found


def _token(key: Any) -> Any:
    """Equal for keys that are equal; only text is hashed, since its hashes can't be foreseen."""
    kind = type(key)
    if kind in (str, bytes, Opaque):
        return key
    if kind is Global:
        return kind, key.name
    parts = list(itertools.islice(_parts(key), _LONGEST_KEY + 1))
    size = len(parts) + sum(len(part) // 200 for part in parts if type(part) in (str, bytes))
    if size > _LONGEST_KEY or not {*map(type, parts)} <= {*_JOINED, *_SCALARS}:
        raise PickleError(_BAD_KEY.format(kind.__name__))
    if kind in _JOINED:
        tokens = map(_token, key)
        return kind, tuple(tokens) if kind is tuple else frozenset(tokens)
    if kind is complex and not key.imag:
        key = key.real
    if type(key) is float and key.is_integer():
        key = int(key)
    return int, str(int(key) if type(key) is bool else key)


def _parts(key: Any) -> Iterator[Any]:
    """A key, and all that it consists of."""
    yield key
    for part in key if type(key) in _JOINED else ():
        yield from _parts(part)


def _names(path: tuple[Any, ...]) -> Iterator[str]:
    """The names that a tensor may get, the best first: joined by dots, or as Python text."""
    if all(type(key) is int or (type(key) is str and key and is_writable(key)) for key in path):
        dotted = ".".join(map(str, path)) if path else "tensor"
        if dotted not in RESERVED:
            yield dotted
    text = _text(path)
    yield text
    yield from (f"{text}#{number}" for number in itertools.count(2))


def _text(path: Iterable[Any]) -> str:
    """A path as Python text."""
    return "".join(f"[{key.name if type(key) in (Global, Opaque) else repr(key)}]" for key in path)
