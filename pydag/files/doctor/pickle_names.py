# SPDX-License-Identifier: Apache-2.0
"""The names of the tensors in nested containers, as `pydag.files.save` would write them."""

from collections.abc import Iterator
from typing import Any

from .pickle_values import PickleError, Tensor

_DEEPEST = 200
_MOST_CONTAINERS = 1_000_000


def named_tensors(root: Any) -> dict[str, Tensor]:
    """The tensors in the values of a pickle.

    Raises:
        PickleError: A container contains itself, or they are nested too deeply.
    """
    found: dict[str, Tensor] = {}
    for path, tensor in _walk(root):
        name = ".".join(map(str, path)) or "tensor"
        if name in found:
            name = "".join(f"[{key!r}]" for key in path)
        found[name] = tensor
    return found


def _walk(root: Any) -> Iterator[tuple[tuple[Any, ...], Tensor]]:
    if type(root) is Tensor:
        yield (), root
        return
    count = 0
    stack: list[tuple[tuple[Any, ...], Iterator[tuple[Any, Any]], int]] = []
    open_ids: set[int] = set()

    def enter(path: tuple[Any, ...], container: Any) -> None:
        if id(container) in open_ids:
            raise PickleError("a container in the pickle contains itself")
        if len(path) > _DEEPEST:
            raise PickleError(f"the pickle is nested more than {_DEEPEST} levels deep")
        open_ids.add(id(container))
        items = container.items() if type(container) is dict else enumerate(container)
        stack.append((path, iter(items), id(container)))

    if type(root) in (dict, list, tuple):
        enter((), root)
    while stack:
        path, items, own_id = stack[-1]
        for key, value in items:
            if type(value) is Tensor:
                yield (*path, _plain(key)), value
            elif type(value) in (dict, list, tuple) and value:
                count += 1
                if count > _MOST_CONTAINERS:
                    raise PickleError(f"the pickle has more than {_MOST_CONTAINERS} containers")
                enter((*path, _plain(key)), value)
                break
        else:
            stack.pop()
            open_ids.remove(own_id)


def _plain(key: Any) -> Any:
    return key if type(key) in (str, int, bool, float, type(None)) else type(key).__name__
