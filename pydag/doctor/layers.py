# SPDX-License-Identifier: Apache-2.0
"""Layers that are missing in a row of numbers, and arrays that one layer of a row lacks.

A row is what differs in one number: `model.layers.0`, `model.layers.1`, or the experts of a layer.
Its layers are copies of one module only if they have the same names, with the same shapes. In other
rows numbers have holes by right: modules without arrays, layers of several kinds.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise

from .finding import Finding, by_form, limited, listed, shown
from .model import Model

_INNERMOST = re.compile(r"(?:.*\.)?\d{1,4}(?=\.)", re.DOTALL)
_NUMBER = re.compile(r"(?<![^.])\d{1,4}(?![^.])")
_DEEPEST = 8  # numbers in a name
_LEAST = 3  # names of a layer, or other layers: chains of simple modules have fewer
_MOST_FINDINGS = 20
# Of a training not every parameter has a state, and an adapter is for some layers.
_OTHER = re.compile(r"(?:^|\.)(?:optimizer\w*|state|lora_\w+)\.")

_NamesByPath = dict[str, frozenset[str]]  # within a layer: by the path with which they begin


def check_layers(model: Model, reported: Iterable[Finding]) -> Iterator[Finding]:
    """Finds missing layers, and arrays that one layer lacks.

    A part of a model has no whole rows. A structure that pydag wrote says itself what is missing:
    a list may have None, or a shared block, between other blocks.

    Args:
        reported: The findings about other arrays that are missing.
    """
    has_structure = any(container.structure is not None for container in model.containers)
    if model.is_part or not model.is_known or model.base is not None or has_structure:
        return iter(())
    missing = (name for finding in reported for name in finding.names)
    others = by_form([*model.other_names(), *missing])
    layers = defaultdict[str, list[str]](list)  # the innermost ones
    for form, alike in (*model.forms.items(), *others.items()):
        if (found := _INNERMOST.match(form)) and not model.parts.is_more(alike[0]):
            end, rest = found.end(), alike[0][found.end() + 1 :]
            is_one = rest == form[end + 1 :]  # without digits it is that of all
            for name in alike:
                layers[name[:end]].append(rest if is_one else name[end + 1 :])
    rows = defaultdict[str, dict[int, _NamesByPath]](lambda: defaultdict(dict))
    known: dict[tuple[str, ...], frozenset[str]] = {}
    for form, alike in by_form(layers).items():
        places = [found.span() for found in islice(_NUMBER.finditer(form), _DEEPEST)]
        for layer in alike:
            key = tuple(layers[layer])
            own = known.get(key) or known.setdefault(key, frozenset(key))
            for begin, end in places:
                if end - begin == 1 or layer[begin] != "0":
                    rows[layer[:begin]][int(layer[begin:end])][layer[end + 1 :]] = own
    inner_first = sorted(rows, key=lambda path: (-path.count("."), path))
    reported_arrays: set[str] = set()
    findings = (
        found for path in inner_first for found in _check(model, path, rows[path], reported_arrays)
    )
    return limited(findings, _MOST_FINDINGS)


def _whole(names: _NamesByPath) -> set[str]:
    return {f"{path}.{name}" if path else name for path, own in names.items() for name in own}


def _check(
    model: Model, path: str, row: dict[int, _NamesByPath], reported_arrays: set[str]
) -> Iterator[Finding]:
    """The findings about one row; `reported_arrays` has those that were reported, and gets more."""
    numbers = sorted(row)
    for number in numbers[:2]:  # one of them is like most, or there are two odd ones
        odd = list(islice((other for other in numbers if row[other] != row[number]), 2))
        if len(odd) < 2:
            break
    same = [number for number in numbers if number not in odd]
    steps = {after - before for before, after in pairwise(numbers)}
    # Between layers at equal distances there may be others, without arrays.
    is_dense = not odd and (steps <= {1} or (len(numbers) > 2 and len(steps) == 1))
    if is_dense or len(odd) > 1 or (odd and odd[0] in (numbers[0], numbers[-1])):
        return
    names = _whole(row[same[0]])
    if _OTHER.search(f"{path}{min(names)}.") or not _are_alike(model, path, same, names):
        return
    for before, after in pairwise(numbers) if not odd and len(names) >= _LEAST else ():
        last = min(after, before + len(numbers) + 1)
        layers = [f"{path}{number}" for number in range(before + 1, last)]
        missing = [f"{layer}.{name}" for layer in layers for name in sorted(names)]
        if missing:
            reported_arrays.update(missing)
            are = "is" if after - before == 2 else f"to {shown(f'{path}{after - 1}')} are"
            between = f"{shown(f'{path}{before}')} and {shown(f'{path}{after}')}"
            text = f"{shown(layers[0])} {are} missing between {between}"
            yield Finding("error", tuple(missing), text)
    if not odd:
        return
    own = _whole(row[odd[0]])
    missing = [f"{path}{odd[0]}.{name}" for name in sorted(names - own)]
    # Three blocks of a network for images may differ by a module.
    is_row = len(same) >= _LEAST or (len(names) >= _LEAST and len(missing) == 1)
    left = [name for name in missing if name not in reported_arrays]
    if is_row and left and own < names and _are_alike(model, path, [same[0], odd[0]], own):
        reported_arrays.update(left)
        verb, them = ("is", "it") if len(left) == 1 else ("are", "them")
        others = f"the {len(same)} others of {shown(path + '*')} have {them}"
        yield Finding("error", tuple(left), f"{listed(left)} {verb} missing: {others}")


def _are_alike(model: Model, path: str, numbers: Iterable[int], names: Iterable[str]) -> bool:
    """Whether arrays have the same shape in each layer, as far as shapes are known."""
    for name in names:
        full = (f"{path}{number}.{name}" for number in numbers)
        arrays = (model.arrays.get(model.aliases.get(name, name)) for name in full)
        if len({array.shape for array in arrays if array is not None}) > 1:
            return False
    return True
