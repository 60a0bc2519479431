# SPDX-License-Identifier: Apache-2.0
"""The names of the tensors in nested containers, as `pydag.files.save` would write them."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from .pickle_values import PickleError, Sparse, Tensor

_CONTAINERS = (dict, Sparse, list, tuple)
_DEEPEST = 200
_MOST_CONTAINERS = 1_000_000


class Named(NamedTuple):
    """What is in the values of a pickle."""

    tensors: dict[str, Tensor]
    others: frozenset[type]  # the classes of what else there is: `Sparse`, `int`


def named_tensors(root: Any) -> Named:
    """The tensors in the values of a pickle.

    Raises:
        PickleError: A container contains itself, or they are nested too deeply.
    """
    found: dict[str, Tensor] = {}
    others: set[type] = set()
    for path, tensor in _walk(root, others):
        name = ".".join(map(str, path)) or "tensor"
        if name in found:
            name = "".join(f"[{key!r}]" for key in path)
        found[name] = tensor
    return Named(found, frozenset(others))


def _walk(root: Any, others: set[type]) -> Iterator[tuple[tuple[Any, ...], Tensor]]:
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
        items = container.items() if isinstance(container, dict) else enumerate(container)
        stack.append((path, iter(items), id(container)))

    if type(root) in _CONTAINERS:
        enter((), root)
    while stack:
        path, items, own_id = stack[-1]
        for key, value in items:
            if type(value) is Tensor:
                yield (*path, _plain(key)), value
            elif type(value) in _CONTAINERS and value:
                if type(value) is Sparse:
                    others.add(Sparse)
                count += 1
                if count > _MOST_CONTAINERS:
                    raise PickleError(f"the pickle has more than {_MOST_CONTAINERS} containers")
                enter((*path, _plain(key)), value)
                break
            elif type(value) not in _CONTAINERS:
                others.add(type(value))
        else:
            stack.pop()
            open_ids.remove(own_id)


def _plain(key: Any) -> Any:
    return key if type(key) in (str, int, bool, float, type(None)) else type(key).__name__
