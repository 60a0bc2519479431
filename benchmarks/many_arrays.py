# SPDX-License-Identifier: Apache-2.0
"""Rows of the table of cliffs: files of arrays, beside what else writes and reads such files.

safetensors' own functions are given a flat dict of the same names, which is made before.
"""

import importlib
import logging
import pickle
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from functions import model
from peers import Peers
from rows import Row, at_most
from timing import Effort, Outcome, Work, contest

import pydag

MEMORY = Path("/dev/shm")  # so that no disk is measured
FEW = 1_000  # up to which a tree is one dict
TARGETS = {  # of save, load, load(like=), by the number of arrays
    1: (4, 4, 4),
    100: (1.5, 1.3, 1.4),
    1_000: (1.2, 1.1, 1.4),
    100_000: (1.3, 1.1, 1.4),
}


def rows(peers: Peers, effort: Effort) -> list[Row]:
    """Saving and loading, of NumPy's arrays, of JAX's and of PyTorch's."""
    if "safetensors" not in peers:
        return []
    files, numpy = importlib.import_module("pydag.files"), importlib.import_module("numpy")
    made = partial(numpy.zeros, 4, numpy.float32)
    other = importlib.import_module("safetensors.numpy")
    found = []
    for number, targets in TARGETS.items():
        if number <= FEW or not effort.quick:
            found += _rows(peers, "NumPy's", number, made, files, other, targets)
    if "jax" in peers:
        interop = importlib.import_module("pydag.jaxinterop")
        other = importlib.import_module("safetensors.flax")
        made = partial(peers["jax"].numpy.zeros, 4)
        found += _rows(peers, "JAX's", 1_000, made, interop, other, (1.5, 1.5, 1.5))
    if "torch" in peers:
        torch, other = (importlib.import_module(x) for x in ("torch", "safetensors.torch"))
        targets = (1.2, 1.1, 1.4)
        found += _rows(peers, "PyTorch's", 3_000, lambda: torch.zeros(16), files, other, targets)
    return found


def _rows(
    peers: Peers,
    whose: str,
    number: int,
    leaf: Callable[[], Any],
    ours: Any,
    theirs: Any,
    targets: tuple[float, ...],
) -> list[Row]:
    def race(what: str, effort: Effort) -> Outcome:
        flat_model = {f"layer{i}.w": leaf() for i in range(number)} if number <= FEW else None
        tree = flat_model or model(number // 8, leaf)
        names = [".".join(map(str, path)) for path in pydag.dag_paths(tree)]
        flat = dict(zip(names, pydag.dag_leaves(tree), strict=True))
        with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as place:
            folder = Path(place)
            mine, other, pickled = folder / "pydag", folder / "safetensors", folder / "pickle"
            ours.save(mine, tree)
            theirs.save_file(dict(flat), other)
            pickled.write_bytes(pickle.dumps(tree, 5))
            works = {
                "save": Work(ours.save, mine, tree),
                "load": Work(ours.load, mine),
                "load(like=)": Work(ours.load, mine, tree),
            }
            is_save = what == "save"
            # A fresh dict each time: of one with arrays of JAX it makes one of NumPy arrays.
            written = Work(lambda: theirs.save_file(dict(flat), other))
            dumped = Work(lambda: pickled.write_bytes(pickle.dumps(tree, 5)))
            read = Work(lambda: pickle.loads(pickled.read_bytes()))
            both = {
                "pydag": works[what],
                "safetensors": written if is_save else Work(theirs.load_file, other),
                "pickle": dumped if is_save else read,
            }
            if whose == "JAX's" and "orbax" in peers:
                both["orbax"] = _orbax(peers["orbax"], folder / "orbax", tree, is_save)
            return contest(both, effort)

    return [
        at_most(f"{what} of {number:,} small arrays of {whose}", target, partial(race, what))
        for what, target in zip(("save", "load", "load(like=)"), targets, strict=True)
    ]


def _orbax(orbax: Any, path: Path, tree: Any, is_save: bool) -> Work:
    logging.getLogger("absl").setLevel(logging.ERROR)
    checkpointer = orbax.PyTreeCheckpointer()
    checkpointer.save(path, tree)
    save = partial(checkpointer.save, path, tree, force=True)
    return Work(save if is_save else partial(checkpointer.restore, path))
