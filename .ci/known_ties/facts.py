# SPDX-License-Identifier: Apache-2.0
"""What is tied in the models of a class, and what of the config decides: found by building them."""

import itertools
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from transformers import PreTrainedModel

from . import models
from .patterns import described

Ties = tuple[tuple[str, str], ...]
Values = tuple[tuple[str, str | bool | int], ...]
_NAME = re.compile(r"[\w.]+")
_ARRAY = re.compile(r".*\.(?:weight|bias)")
_OTHERS_OF_A_LIST = r".(?![0])\d+"  # as transformers writes it


class Facts(NamedTuple):
    """What is known of a class: see `pydag.doctor.known.Declared`.

    Attributes:
        places: Where the config decides; ties without any of them hold always.
        others: What is tied instead if the config has some values, one or two, at their places.
        is_built: Whether models were built; otherwise the class was read.
    """

    ties: Ties
    prefix: str
    places: tuple[str, ...] = ()
    others: tuple[tuple[Values, Ties], ...] = ()
    is_built: bool = True


def facts_of(name: str, model_class: type[PreTrainedModel]) -> Facts:
    """What is tied in the models of a class. It is read where no model can be built."""
    try:
        return _with_parts(name, model_class) if name in models.PARTS else _plain(model_class)
    except Exception as error:  # whatever a class raises
        print(f"{name} is read, not built: {type(error).__name__}: {str(error).strip()[:100]!r}")
        ties = _read(model_class)
        places = _read_places(model_class) if ties else ()
        return Facts(ties, model_class.base_model_prefix, places, is_built=False)


def _with_parts(name: str, model_class: type[PreTrainedModel]) -> Facts:
    part, kinds, rest = models.PARTS[name]
    found = {}
    for kind in kinds:
        content = {**rest, part: {"model_type": kind}}
        found[kind] = _found(_Builder(model_class, content), content)
    places = tuple(dict.fromkeys(place for facts in found.values() for place in facts.places))
    others = tuple((((f"{part}.model_type", kind),), found[kind].ties) for kind in kinds)
    return Facts((), model_class.base_model_prefix, places, others)


def _plain(model_class: type[PreTrainedModel]) -> Facts:
    content = model_class.config_class().to_dict()
    builder = _Builder(model_class, content)
    model = models.build(model_class, content)
    if not any(getattr(part, "_tied_weights_keys", None) for part in model.modules()):
        return Facts((), model_class.base_model_prefix)
    return _found(builder, content)


class _Builder:
    """Builds models of a class with various configs."""

    def __init__(self, model_class: type[PreTrainedModel], content: Mapping[str, Any]) -> None:
        self.model_class, self._content = model_class, content

    def ties(self, values: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
        """What is tied if the config has some values at some dotted places.

        A name in files that isn't the model's own name is one more name of the same array.
        """
        model = models.build(self.model_class, models.changed(self._content, values))
        ties = models.ties_of(model)
        arrays = models.arrays_of(model)
        literal = {target for target in ties if models.is_literal(model, target)}
        for name, saved in models.names_in_files(model, {*ties, *ties.values()}).items():
            if saved not in arrays:
                if name in literal or name in {ties[target] for target in literal}:
                    literal.add(saved)
                arrays[saved] = arrays[name]
                ties[saved] = ties.get(name, name)
        return frozenset(described(ties, arrays, literal).items())

    def ties_if_allowed(self, values: Mapping[str, Any]) -> frozenset[tuple[str, str]] | None:
        """The same; None where the class rejects such a config."""
        try:
            return self.ties(values)
        except Exception:  # whatever it raises
            return None


def _found(builder: _Builder, content: Mapping[str, Any]) -> Facts:
    model_class = builder.model_class
    fields = models.fields_of(model_class.config_class.from_dict(models.changed(content, {})))
    off = dict.fromkeys(fields.places, False)
    never = builder.ties_if_allowed(off) or frozenset()
    only = {
        place: builder.ties_if_allowed({**off, place: True}) or frozenset()
        for place in fields.places
    }
    every = never.union(*only.values())
    places = tuple(place for place, ties in only.items() if ties > never)
    ties = tuple(sorted(every))
    if never == every:
        return Facts(ties, model_class.base_model_prefix)
    on = dict.fromkeys(places, True)
    for alias in fields.aliases:
        untied = builder.ties_if_allowed({**off, **on, alias: False})
        if untied == never and builder.ties_if_allowed({**off, alias: True}) == every:
            places = (alias, *places)
    others: list[tuple[Values, Ties]] = []
    for count in (1, 2):
        for values in itertools.combinations(fields.switches.items(), count):
            inner = [frozenset(row) for known, row in others if {*known} < {*values}]
            other = builder.ties_if_allowed({**off, **on, **dict(values)})
            # What two values change is noted if it isn't what each of them changes.
            if other is not None and other != (frozenset.intersection(*inner) if inner else every):
                others.append((values, tuple(sorted(other))))
    return Facts(ties, model_class.base_model_prefix, places, tuple(others))


def _read(model_class: type[PreTrainedModel]) -> Ties:
    """What a class declares, where that says whole names, modules, or the others of a list."""
    declared = model_class._tied_weights_keys
    ties = {}
    for target, source in (declared if isinstance(declared, dict) else {}).items():
        origin, module = source.strip("^$"), target.removesuffix(_OTHERS_OF_A_LIST)
        if not _NAME.fullmatch(origin) or not _NAME.fullmatch(module):
            print(f"{model_class.__name__}: left out: {target} and {source}")
        elif _ARRAY.fullmatch(origin) and module == target:
            end = "" if _ARRAY.fullmatch(target) else f".{origin.rpartition('.')[2]}"
            ties[f"{target}{end}"] = origin
        else:
            number = "" if module == target else r"\.\d+"
            ties[rf"{re.escape(module)}{number}\.(.+)"] = rf"{origin}.\1"
    return tuple(sorted(ties.items()))


def _read_places(model_class: type[PreTrainedModel]) -> tuple[str, ...]:
    """The places that decide what the first of them will be in a config; none if it is fixed."""
    try:
        content = model_class.config_class().to_dict()
        places = models.fields_of(model_class.config_class.from_dict(content)).places
        off = dict.fromkeys(places, False)
        values = {place: models.changed(content, {**off, place: True}) for place in places}
        configs = {p: model_class.config_class.from_dict(value) for p, value in values.items()}
        never = model_class.config_class.from_dict(models.changed(content, off))
    except Exception:  # its defaults are for no model
        return (models.TIED,)
    if getattr(never, models.TIED, False):
        return ()
    return tuple(place for place in places if getattr(configs[place], models.TIED, False))
