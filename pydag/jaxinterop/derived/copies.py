# SPDX-License-Identifier: Apache-2.0
"""The objects that were made anew when a tree was resolved, and the objects that they stand for."""

from collections.abc import Iterator, Sequence
from typing import Any

import pydag._core as _core

_MISSING = object()


class Copies:
    """What a function is given in the place of the caller's objects.

    Args:
        original: The caller's tree.
        copy: The same tree, resolved.
    """

    def __init__(self, original: Any, copy: Any) -> None:
        # Of each copy that can be changed: the original, and what the copy held.
        self._pairs: list[tuple[Any, Any, dict[Any, Any]]] = []
        self._originals: dict[int, Any] = {}
        pending = [(original, copy)]
        while pending:
            a, b = pending.pop()
            if a is b or type(a) is not type(b) or id(b) in self._originals:
                continue
            held = _held(b)
            if held is not None:
                self._pairs.append((a, b, held))
                self._originals[id(b)] = a
                before = _held(a) or {}
                pending += [(before.get(key), value) for key, value in held.items()]
            elif isinstance(a, tuple):
                pending += zip(a, b, strict=False)

    def hand_on(self) -> None:
        """Changes in the originals what was changed in the copies."""
        for original, copy, before in self._pairs:
            now = _held(copy) or {}
            changed = {k: v for k, v in now.items() if before.get(k, _MISSING) is not v}
            if changed or len(now) != len(before):
                _write(original, {k: self.originals_in(v) for k, v in changed.items()})
                _drop(original, [k for k in before if k not in now])

    def modules_of(self, cls: type) -> list[tuple[Any, Any]]:
        """The originals of a class with their copies, but for dicts and lists."""
        if issubclass(cls, dict | list):
            return []
        return [(a, b) for a, b, _ in self._pairs if type(a) is cls]

    def originals_in(self, tree: Any) -> Any:
        """A tree with the original wherever a copy stands."""
        known = self._originals
        if not known:
            return tree
        is_leaf = lambda node: id(node) in known  # noqa: E731 (a name for what the core calls)
        return _core.rewrite(lambda node: known.get(id(node), node), tree, is_leaf=is_leaf)


def _held(node: Any) -> dict[Any, Any] | None:
    """What an object holds that can be changed, by name, key or index; None if nothing can."""
    if isinstance(node, dict):
        return dict(node)
    if isinstance(node, list):
        return dict(enumerate(node))
    if isinstance(node, tuple):
        return None
    slots = {name: getattr(node, name) for name in _slots(type(node)) if hasattr(node, name)}
    return {**slots, **getattr(node, "__dict__", {})} or None


def _slots(cls: type) -> Iterator[str]:
    for base in cls.__mro__:
        yield from (name for name in _core.own_slots(base) if not name.startswith("__"))


def _write(node: Any, changed: dict[Any, Any]) -> None:
    for key, value in changed.items():
        if isinstance(node, dict):
            node[key] = value
        elif isinstance(node, list):
            node[key : key + 1] = [value]  # the next one where there is none yet
        else:
            setattr(node, key, value)


def _drop(node: Any, keys: Sequence[Any]) -> None:
    for key in reversed(keys):
        if isinstance(node, dict | list):
            del node[key]
        else:
            delattr(node, key)
