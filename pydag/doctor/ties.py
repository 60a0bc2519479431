# SPDX-License-Identifier: Apache-2.0
"""What a file itself ties: by alias metadata, or as one of torch's storages."""

import math
from collections.abc import Iterator, Mapping

from pydag.files.memory import first_overlap
from pydag.sharing.memory import MemoryKey

from .compare import are_equal
from .finding import Finding, Pairs, are, limited, listed, shown, size_text
from .model import Model
from .progress import Bar
from .torch_file import View

_MOST_FINDINGS = 1000
_MOST_PAIRS = 10_000  # of tensors whose bytes are interleaved
_MOST_AXES = 32  # that every NumPy can have


def check_aliases(model: Model, pairs: Pairs, bar: Bar) -> Iterator[Finding]:
    """The findings about the aliases of a model.

    Args:
        pairs: Collects the arrays that were compared.
    """
    tied: dict[str, list[str]] = {}
    for alias, name in model.aliases.items():
        if name not in model.arrays:
            if name not in model.named and model.is_known and not model.is_part:
                why = ", an alias itself" if name in model.aliases else ", which isn't there"
                text = f"{shown(alias)} is an alias of {shown(name)}{why}"
                yield Finding("error", (alias, name), text)
        elif alias in model.arrays:
            yield _stored_as_well(model, alias, name, pairs, bar)
        elif alias not in model.named:
            tied.setdefault(name, []).append(alias)
    for name, aliases in tied.items():
        text = f"{are(aliases)} {shown(name)}, by alias metadata"
        yield Finding("tie", (name, *aliases), text)


def _stored_as_well(model: Model, alias: str, name: str, pairs: Pairs, bar: Bar) -> Finding:
    one, other = model.arrays[name], model.arrays[alias]
    pairs.add(name, alias)
    start = f"{shown(alias)} is noted as an alias of {shown(name)}, and "
    if are_equal(one, other, bar):
        pairs.add_copy(name, alias)
        text = f"{start}stored as well: {size_text(other.nbytes)}"
        return Finding("waste", (name, alias), text, other.nbytes)
    how = "they differ"
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        how = f"they are {one.signature()} and {other.signature()}"
    return Finding("error", (name, alias), f"{start}both are stored: {how}")


def check_storages(model: Model) -> Iterator[Finding]:
    """The tensors that are one storage, or parts of one, and how much of each storage is unused."""
    return limited(_of_storages(model), _MOST_FINDINGS)


def _of_storages(model: Model) -> Iterator[Finding]:
    storages: dict[tuple[str, int], dict[View, list[str]]] = {}
    for name, array in model.arrays.items():
        path, view, *_ = array.storage
        if isinstance(view, View) and array.nbytes:
            storages.setdefault((path, view.place), {}).setdefault(view, []).append(name)
    for views in storages.values():
        for first, *others in views.values():
            if others:
                text = f"{are(others)} {shown(first)}, by one storage"
                yield Finding("tie", (first, *others), text)
        yield from _overlap(views)
        yield from _unused(views)


def _overlap(views: Mapping[View, list[str]]) -> Iterator[Finding]:
    """Tensors that share elements with the largest one, and aren't it; else any two."""
    order = sorted(views, key=lambda view: view.begin - view.end)
    if len(order) < 2:
        return
    largest, *others = order
    places = {view: _memory(view) for view in order}
    sharing = [view for view in others if first_overlap({places[largest]: 0, places[view]: 1})]
    pairs = [(largest, view) for view in sharing]
    if not pairs:
        numbers = {place: i for i, place in enumerate(places.values())}
        pair = first_overlap(numbers, _MOST_PAIRS)
        pairs = [(order[pair[0]], order[pair[1]])] if pair is not None else []
    for one, other in pairs:
        first, second = views[one][0], views[other][0]
        if _is_transposed(one, other):
            text = f"{shown(second)} is {shown(first)}, transposed, by one storage"
        else:
            text = f"{shown(second)} and {shown(first)} share a part of one storage"
        yield Finding("tie", (first, second), text)


def _is_transposed(one: View, other: View) -> bool:
    return (one.begin, one.dtype, one.shape[::-1], one.strides[::-1], one.reading) == (
        *(other.begin, other.dtype, other.shape, other.strides, other.reading),
    )


def _memory(view: View) -> MemoryKey:
    """The bytes of a view, without the axes that repeat them."""
    size = view.itemsize
    axes = [(n, step * size) for n, step in zip(view.shape, view.strides, strict=True) if step]
    if len(axes) > _MOST_AXES:
        axes = [((view.end - view.begin) // size, size)]
    shape, strides = zip(*axes, strict=True) if axes else ((), ())
    return MemoryKey("file", view.place + view.begin, view.dtype, shape, strides, size, view)


def _unused(views: Mapping[View, list[str]]) -> Iterator[Finding]:
    """Bytes of a storage that no tensor has."""
    size = next(iter(views)).size
    dense, rest = [], 0
    for view in views:
        axes = zip(view.shape, view.strides, strict=True)
        count = view.itemsize * math.prod(n for n, step in axes if step)
        if count >= view.end - view.begin:
            dense.append((view.begin, view.end))
        else:
            rest += count
    used, last = rest, 0
    for begin, end in sorted(dense):
        used += max(0, end - max(begin, last))
        last = max(last, end)
    if used < size:
        names = tuple(name for own in views.values() for name in own)
        verb = "uses" if len(names) == 1 else "use"
        text = (
            f"{listed(names)} {verb} {size_text(used)} of a storage of {size_text(size)}, which is "
            "stored whole"
        )
        yield Finding("waste", names, text, size - used)
