# SPDX-License-Identifier: Apache-2.0
"""What a file itself ties: by alias metadata, or as one of torch's storages."""

import math
from collections.abc import Iterator, Mapping

from pydag.arrays.memory import MemoryKey, first_overlap

from .compare import are_comparable, are_equal
from .finding import Finding, ReportedPairs, are, limited, listed, shown, size_text
from .model import Model
from .progress import Bar
from .torch_file import TensorView

_MOST_AXES = 32  # that every NumPy can have


def check_aliases(model: Model, pairs: ReportedPairs, bar: Bar) -> Iterator[Finding]:
    """The findings about the aliases of a model."""
    tied: dict[str, list[str]] = {}
    for alias, name in model.aliases.items():
        if name not in model.arrays:
            if name not in model.named and model.is_known and not model.is_part:
                why = "an alias itself" if name in model.aliases else "which isn't there"
                text = f"{shown(alias)} is an alias of {shown(name)}, {why}"
                yield Finding("error", (alias, name), text)
        elif alias in model.arrays:
            yield from _stored_as_well(model, alias, name, pairs, bar)
        elif alias not in model.named:
            tied.setdefault(name, []).append(alias)
    for name, aliases in tied.items():
        text = f"{are(aliases)} {shown(name)}, by alias metadata"
        yield Finding("tie", (name, *aliases), text)


def _stored_as_well(
    model: Model, alias: str, name: str, pairs: ReportedPairs, bar: Bar
) -> Iterator[Finding]:
    one, other = model.arrays[name], model.arrays[alias]
    pairs.add(name, alias)
    start = f"{shown(alias)} is noted as an alias of {shown(name)}, and "
    is_read = model.has_content or not are_comparable(one, other)
    if is_read and are_equal(one, other, bar):
        pairs.add_copy(name, alias)
        text = f"{start}stored as well: {size_text(other.nbytes)}"
        yield Finding("waste", (name, alias), text, other.nbytes)
    elif is_read:
        signatures = one.signature(), other.signature()
        how = "differ" if signatures[0] == signatures[1] else f"are {' and '.join(signatures)}"
        yield Finding("error", (name, alias), f"{start}both are stored: they {how}")


def check_storages(model: Model) -> Iterator[Finding]:
    """The tensors that are one storage, or parts of one, and how much of each storage is unused."""
    return limited(_of_storages(model))


def _of_storages(model: Model) -> Iterator[Finding]:
    storages: dict[tuple[str, int], dict[TensorView, list[str]]] = {}
    for name, array in model.arrays.items():
        if isinstance(array.storage, tuple) and array.nbytes:  # those of torch
            path, view, *_ = array.storage
            storages.setdefault((path, view.place), {}).setdefault(view, []).append(name)
    for views in storages.values():
        for first, *others in views.values():
            if others:
                text = f"{are(others)} {shown(first)}, by one storage"
                yield Finding("tie", (first, *others), text)
        yield from _overlap(views) if len(views) > 1 else ()
        yield from _unused(views)


def _overlap(views: Mapping[TensorView, list[str]]) -> Iterator[Finding]:
    """Tensors that share elements with the largest one, and aren't it."""
    one, *others = sorted(views, key=lambda view: view.begin - view.end)
    memory = _memory(one)
    for other in others:
        if not first_overlap({memory: 0, _memory(other): 1}):
            continue
        first, second = views[one][0], views[other][0]
        text = f"{shown(second)} and {shown(first)} share a part of one storage"
        if one == other._replace(shape=other.shape[::-1], strides=other.strides[::-1]):
            text = f"{shown(second)} is {shown(first)}, transposed, by one storage"
        yield Finding("tie", (first, second), text)


def _memory(view: TensorView) -> MemoryKey:
    """The bytes of a view, without the axes that repeat them."""
    size = view.itemsize
    axes = [(n, step * size) for n, step in zip(view.shape, view.strides, strict=True) if step]
    if len(axes) > _MOST_AXES:
        axes = [((view.end - view.begin) // size, size)]
    shape, strides = zip(*axes, strict=True) if axes else ((), ())
    return MemoryKey("file", view.place + view.begin, view.dtype, shape, strides, size, view)


def _unused(views: Mapping[TensorView, list[str]]) -> Iterator[Finding]:
    """Bytes of a storage that no tensor has."""
    used = last = 0
    for view in sorted(views, key=lambda view: view.begin):
        axes = zip(view.shape, view.strides, strict=True)
        nbytes = view.itemsize * math.prod(n for n, step in axes if step)
        if nbytes < view.end - view.begin:  # others may fill its gaps
            used += nbytes
        else:
            used += max(0, view.end - max(view.begin, last))
            last = max(last, view.end)
    size = next(iter(views)).size
    if used < size:
        names = tuple(name for own in views.values() for name in own)
        verb = "uses" if len(names) == 1 else "use"
        sizes = f"{size_text(used)} of a storage of {size_text(size)}"
        text = f"{listed(names)} {verb} {sizes}, which is stored whole"
        yield Finding("waste", names, text, size - used)
