# SPDX-License-Identifier: Apache-2.0
"""Which names of a model are one array: by what transformers declares, or perhaps by the names.

An adapter of peft has arrays that are added to a base model, which isn't here.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pydag.arrays.names import grouped, unwrapped

from .config import CONFIG, read_object
from .finding import Finding, listed, shown
from .known import Declared
from .model import Model

# The names that suggest a head, or an embedding. What follows from them is a doubt.
_HEADS = r"\w*lm_head|embed_out|unembed\w*|(?:lm_head|predictions)\.decoder|output_projection"
_HEADS += "|proj_out|vocab_projector|lm_loss"
_EMBEDDINGS = r"(?!unembed|embed_out)\w*emb\w*|wte|shared"
_HEAD, _EMBEDDING = (
    re.compile(rf"(?:.*\.)?(?:{names})\.(?:weight|kernel|embedding)")
    for names in (_HEADS, _EMBEDDINGS)
)
_IN_A_LAYER = re.compile(r"(?:^|\.)(?:[^.]*(?:layers?|blocks?|blk)_?|h_?)?\d+(?:\.|$)", re.I)
_NAME = re.compile(r"[\w.\-]+")  # a name, and no pattern
_MOST = 16  # arrays that are compared because of their names; ties from a name to its source


class Group(NamedTuple):
    """Names that are declared to be one array, as the file has them or would have them."""

    names: tuple[str, ...]  # the source last
    heads: tuple[str, ...]  # those that are arrays of their own if the config says untied
    is_expected: bool  # whether one of them must be there, since other names of the class are
    alike: tuple[str, ...]  # arrays of other modules that are called like what isn't stored


def declared_groups(model: Model) -> list[Group]:
    """The groups that are declared for the classes of a model, with the names of the file."""
    config = model.config
    rows = [row for row in config.known if row.ties] if config is not None else []
    if config is None or not rows or model.kind == "GGUF":
        return []
    own, outer = _own_names(model), grouped(_outer(model), _end)
    # If the config says untied of a class whose names are always tied, that is meant of the head.
    untied = False in config.declared_ties.values()
    groups = (_groups(own, row, outer, row.is_always_tied and untied) for row in rows)
    return list(dict.fromkeys(itertools.chain.from_iterable(groups)))


def _own_names(model: Model) -> dict[str, str]:
    """Each name without what wrappers put into it, with the one that the file has."""
    names = [*model.arrays, *model.aliases, *sorted(model.named - model.arrays.keys())]
    own = {unwrapped(name): name for name in reversed(names)}
    for name in model.arrays:
        if (module := model.parts.module(name)) is not None:
            own.setdefault(f"{unwrapped(module)}.weight", name)
    return own


def _groups(
    own: Mapping[str, str], row: Declared, outer: Mapping[str, list[str]], is_headless: bool
) -> Iterator[Group]:
    base = f"{row.prefix}." if row.prefix else ""
    plain = {target: source for target, source in row.ties if _NAME.fullmatch(target)}
    patterns = [(re.compile(row[0]), row[1]) for row in row.ties if row[0] not in plain]
    left_out, prefix = _layout(own, {*plain, *plain.values()}, base)
    starts = {name.partition(".")[0] for name in (*plain, *plain.values(), base)} - {""}
    is_named = any(n.partition(".")[0] in starts for n in _of_class(own, left_out, prefix))
    known = dict.fromkeys(_of_class(own, left_out, prefix) if patterns else ())
    targets: dict[str, list[str]] = {}  # by their source
    for target in plain | known:
        source = target
        for _ in range(_MOST):
            matches = ((p.fullmatch(source), template) for p, template in patterns)
            other = plain.get(source) or next((m.expand(t) for m, t in matches if m), source)
            if other == source:
                break
            source = other
        if source != target:
            targets.setdefault(source, []).append(target)
    files = {n: prefix + n.removeprefix(left_out) for n in (*plain, *known, *targets)}
    found = {name: own.get(file, file) for name, file in files.items()}
    declared = {found[name] for source, names in targets.items() for name in (source, *names)}
    for source, names in targets.items():
        names = [*names, source]
        in_base = [name for name in names if base and name.startswith(base)]
        outside = [name for name in names if name not in in_base]
        heads = [n for n in outside if n.endswith(".weight") and not _EMBEDDING.fullmatch(n)]
        heads = [name for name in heads if name != source] or heads
        names = [name for name in names if "*" not in name]  # "*" depends on the config
        if is_headless:
            names, heads = [name for name in names if name not in heads], []
        if len(names) > 1:
            missing = {_end(files[name]) for name in names if files[name] not in own}
            alike = (n for end in missing for n in outer.get(end, ()) if n not in declared)
            yield Group(
                names=tuple(found[name] for name in names),
                heads=tuple(found[name] for name in heads),
                is_expected=is_named and (bool(in_base) or not left_out),
                alike=tuple(alike),
            )


def _layout(own: Iterable[str], names: set[str], base: str) -> tuple[str, str]:
    """How most names of the class are in a file: a prefix that is left out, and one before it.

    The first is that of the base model, if it was saved alone; the other one is a wrapper's.
    """
    found: Counter[tuple[str, str]] = Counter()
    for left_out in {"", base}:
        ends = tuple(name.removeprefix(left_out) for name in names)
        for name in own:
            for end in ends if name.endswith(ends) else ():
                if name == end or name.endswith(f".{end}"):
                    found[left_out, name.removesuffix(end)] += 1
    order = sorted(found, key=lambda row: (-found[row], row[0], len(row[1])))
    return order[0] if order else ("", "")


def _of_class(own: Iterable[str], left_out: str, prefix: str) -> Iterator[str]:
    """What the class may call the arrays of a file."""
    for name in own:
        if name.startswith(prefix):
            yield (inner := name[len(prefix) :])
            if left_out:
                yield left_out + inner


def giving_way(model: Model) -> set[str]:
    """The names that give way to others of their array, which readers look for."""
    names = set(filter(_HEAD.fullmatch, model.arrays))
    for group in declared_groups(model):
        names.update(group.names[:-1] if group.names[-1] in model.arrays else group.heads)
    return names


def perhaps_tied(model: Model, any_head: bool) -> Iterator[tuple[str, str]]:
    """Each array that may be a head, by its name or with any, with its possible embeddings."""
    names = [name for name in _outer(model) if len(model.arrays[name].shape) > 1]
    embeddings = sorted(filter(_EMBEDDING.fullmatch, names), key=lambda name: name.count("."))
    if any_head and not embeddings and model.config is not None:
        embeddings = [n for n in names if model.config.vocab_size in model.arrays[n].shape]
    heads = names if any_head else list(filter(_HEAD.fullmatch, names))
    for embedding in embeddings[:_MOST]:
        shape = model.arrays[embedding].shape
        alike = (n for n in heads if model.arrays[n].shape in (shape, shape[::-1]))
        yield from ((n, embedding) for n in itertools.islice(alike, _MOST) if n != embedding)


def is_end(name: str) -> bool:
    """Whether a name suggests a head or an embedding."""
    return bool(_HEAD.fullmatch(name) or _EMBEDDING.fullmatch(name))


def _end(name: str) -> str:
    """The name of the innermost module, and of its array."""
    return ".".join(name.rsplit(".", 2)[-2:])


def _outer(model: Model) -> list[str]:
    """The arrays that are in none of many layers, by their names."""
    forms = model.forms.values()
    return [n for names in forms if not _IN_A_LAYER.search(names[0]) for n in names]


ADAPTER_CONFIG = "adapter_config.json"


def configure_adapter(model: Model) -> None:
    """Takes a model for an adapter, if there is its configuration beside it.

    A copy of a module that the base model ties unties it. Whether it does isn't known here.
    """
    whole = read_object(model.folder, ADAPTER_CONFIG, model.findings)
    if whole is None:
        return
    keys = ("base_model_name_or_path", "modules_to_save", "ensure_weight_tying")
    base, saved, keeps_ties = map(whole.get, keys)
    model.base = base if type(base) is str else ""
    modules = map(str, saved if type(saved) is list else ())
    own = [module for module in modules if is_end(f"{module}.weight")]
    is_tied = None if model.config is None else model.config.decide()[0]
    model.config, model.config_findings = None, []  # a head that isn't stored is the base model's
    if own and keeps_ties is not True and is_tied is not False:
        name = shown(model.base or "its base model")
        tied = f"{CONFIG} says tied" if is_tied else f"perhaps {name} is tied"
        text = f"{tied}, and the adapter has {listed(own)} of its own, which unties it: see "
        model.findings.append(Finding("doubt", tuple(own), text + "ensure_weight_tying of peft"))
