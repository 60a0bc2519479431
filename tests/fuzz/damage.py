# SPDX-License-Identifier: Apache-2.0
"""Damaged pickles, JSON and files: refused in words, or read as something that works."""

import contextlib
import importlib.util
import json
import pickle
import random
import tempfile
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import specimens as sp
import trees
from rounds import ALLOWED, Round, expect, scenario

import pydag
from pydag import PyDagSpec

REFUSALS = (ValueError, TypeError, RuntimeError)
HAS_FILES = importlib.util.find_spec("safetensors") is not None
NODE = 8  # bytes of a node in a state: kind, flags, two of nothing, the number of children

REFERENCES: list[Any] = [
    *((("a",), None), (("b", "a"), (1, 0)), ((), None), 3, None, list, OrderedDict, deque, (0,)),
    *(sp.Point, sp.Nothing, time.struct_time, (sp.Box, ""), (sp.Module, ""), (sp.Chosen, "")),
    *((sp.Named, ""), (sp.Local, sp.NAMESPACE), (pydag.Anchor, ""), (("x",), None, 1), -1, 2**64),
    *(((1, 1.0), None), ((sp.Unsortable("u"), []), (0, 1)), ("w", "b"), ("name",), ("m",)),
]


def damaged_bytes(rng: random.Random, data: bytes, unit: int = 1) -> bytes:
    """Bytes that are flipped, repeated, exchanged, cut off or put in."""
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        if not changed:
            break
        place = rng.randrange(len(changed))
        start = place - place % unit
        other = rng.randrange(len(changed) // unit + 1) * unit
        action = rng.randrange(7)
        if action == 0:
            del changed[start : start + unit]
        elif action == 1:
            changed[start : start + unit] = changed[other : other + unit]
        elif action == 2:
            changed[place] ^= 1 << rng.randrange(8)
        elif action == 3:
            changed[start] = rng.randrange(14)
        elif action == 4:
            del changed[place:]
        elif action == 5:
            changed[start:start] = changed[other : other + rng.randrange(4) * unit]
        else:
            changed[place] = rng.choice([0, 1, 2, 127, 255])
    return bytes(changed)


def damaged_value(rng: random.Random, value: Any, others: list[Any]) -> Any:
    """A value in which one part, at any depth, is another one, is missing or stands twice."""
    if isinstance(value, tuple | list) and value and rng.random() < 0.85:
        items = list(value)
        place = rng.randrange(len(items))
        action = rng.randrange(8)
        if action == 0:
            del items[place]
        elif action == 1:
            items.insert(place, rng.choice(items))
        elif action == 2:
            items[place] = rng.choice(items)
        else:
            items[place] = damaged_value(rng, items[place], others)
        return type(value)(items)
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        if rng.random() < 0.2:
            return {k: v for k, v in value.items() if k != key}
        if rng.random() < 0.2:
            return value | {rng.choice([*value, "value", "x"]): value[key]}
        return value | {key: damaged_value(rng, value[key], others)}
    if type(value) is bytes and rng.random() < 0.7:
        return damaged_bytes(rng, value)
    if type(value) is int and rng.random() < 0.7:
        return value + rng.choice([1, -1, 7, 2**31, 2**63, -(2**70)])
    return rng.choice(others)


def is_whole(spec: PyDagSpec, other: PyDagSpec) -> None:
    """Uses a structure that was read: it must be as good as any other one."""
    expect("read: text", len(repr(spec)) > 0)
    expect("read: paths", len(spec.paths()) == len(spec) == spec.num_leaves)
    expect("read: shared", spec.num_shared == len(spec.shared))
    again = PyDagSpec.__new__(PyDagSpec)
    again.__setstate__(spec.__getstate__())
    expect("read: written again, it differs", repr(again) == repr(spec))
    expect("read: hash", hash(spec) == hash(again))
    for use in (
        lambda: spec.flatten_up_to(spec.unflatten(list(range(len(spec))))),
        lambda: str(pydag.explain(spec, other)),
        lambda: (spec <= other, other < spec, spec == other, spec == again),
        lambda: spec.broadcast_to_common_suffix(other),
        lambda: spec.compose(other).num_paths,
        lambda: PyDagSpec.from_json(spec.to_json()),
        lambda: (spec.children(), spec.one_level(), spec.entries(), spec.accessors()),
        lambda: pydag.deref(spec.unflatten(list(range(len(spec))))),
        lambda: spec.walk(list(range(len(spec))), lambda *x: None, lambda x: x),
    ):
        with contextlib.suppress(*ALLOWED):  # classes may refuse what they are built of
            use()


def _spec(this: Round) -> PyDagSpec:
    options: dict[str, Any] = {
        "none_is_leaf": this.often(0.3),
        "namespace": this.rng.choice(["", sp.NAMESPACE]),
    }
    return pydag.dag_structure(this.tree(), **options)


@scenario(weight=10)
def pickles(this: Round) -> None:
    """The state of a structure with flipped bytes, exchanged references, cut off."""
    spec = _spec(this)
    version, none_is_leaf, namespace, nodes, places, refs = spec.__getstate__()
    for _ in range(5):
        state: Any = [version, none_is_leaf, namespace, nodes, places, refs]
        for _ in range(this.rng.randrange(1, 3)):
            what = this.rng.randrange(5)
            if what <= 1:
                state[3] = damaged_bytes(this.rng, nodes, NODE)
            elif what == 2:
                state[4] = damaged_bytes(this.rng, places)
            elif what == 3:
                state[5] = damaged_value(this.rng, refs, REFERENCES)
            else:
                state[this.rng.randrange(6)] = this.rng.choice([None, "one", b"", (), 1, True])
        read = PyDagSpec.__new__(PyDagSpec)
        try:
            read.__setstate__(tuple(state))
        except REFUSALS:
            with contextlib.suppress(*ALLOWED):
                repr(read), len(read), pickle.dumps(read)
            continue
        is_whole(read, spec)


TEXTS: list[Any] = [
    None,
    0,
    1,
    -1,
    True,
    2**40,
    1.5,
    "",
    "*",
    "&*",
    "a",
    "list",
    [],
    {},
    ["list", 1],
]
KINDS = ["dict", "&list", "tuple", "deque", "namedtuple", "fields", "custom", "structseq"]
TEXTS += [*KINDS, {"class": "list"}, {"keys": ["a"]}, {"value": 1}, {"tuple": []}, {"int": "9"}]


@scenario(weight=6)
def documents(this: Round) -> None:
    """JSON with other parts or other characters."""
    tree = this.tree(shapes=trees.KNOWN, keys=["x", 0, 1.5, b"b", (1, "a"), True, None])
    try:
        spec = pydag.dag_structure(tree, namespace=sp.NAMESPACE)
        text = spec.to_json()
    except TypeError:
        return  # a key or aux_data that can't be written
    for _ in range(5):
        if this.often(0.7):
            document = json.loads(text)
            for _ in range(this.rng.randrange(1, 4)):
                document = damaged_value(this.rng, document, TEXTS)
            changed = json.dumps(document)
        else:
            changed = damaged_bytes(this.rng, text.encode()).decode("utf-8", "replace")
        try:
            read = PyDagSpec.from_json(changed)
        except ValueError:
            continue
        is_whole(read, spec)


@scenario(weight=2)
def files(this: Round) -> None:
    """A file with another header, another structure, flipped or missing bytes."""
    if not HAS_FILES:
        return
    leaves: list[Callable[[], Any]] = [
        lambda: np.ones(this.rng.randrange(5), dtype=this.rng.choice(["f4", "i2", "?"]))
    ]
    leaves += [lambda: this.rng.choice([1, 2.5, None, "text", b"b", True])] * 2
    tree = this.tree(shapes=trees.BUILTIN[:7] + trees.FIELDS[:3], keys="xyz", leaves=leaves)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.safetensors"
        try:
            pydag.files.save(path, tree)
        except (TypeError, ValueError):
            return  # two namedtuples of one name, and the like
        whole = path.read_bytes()
        for _ in range(4):
            path.unlink()
            path.write_bytes(_damaged_file(this.rng, whole))
            like = this.rng.choice([None, None, tree])
            try:
                read = pydag.files.load(path, like=like)
            except (ValueError, OSError):
                continue
            repr(pydag.dag_structure(read))
            for leaf in pydag.dag_leaves(read):
                if isinstance(leaf, np.ndarray):
                    leaf.tobytes()
            del read


def _damaged_file(rng: random.Random, whole: bytes) -> bytes:
    size = int.from_bytes(whole[:8], "little")
    header, data = whole[8 : 8 + size], whole[8 + size :]
    what = rng.randrange(4)
    if what == 0:
        return damaged_bytes(rng, whole)
    if what == 1:
        header = damaged_bytes(rng, header)
    elif what == 2:
        header = json.dumps(damaged_value(rng, json.loads(header), TEXTS)).encode()
    else:
        document = json.loads(header)
        kept = document.get("__metadata__", {})
        for name, text in kept.items():
            if text.startswith(("{", "[")):
                kept[name] = json.dumps(damaged_value(rng, json.loads(text), TEXTS))
        header = json.dumps(document).encode()
    return len(header).to_bytes(8, "little") + header + data
