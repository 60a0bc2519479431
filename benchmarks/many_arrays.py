# SPDX-License-Identifier: Apache-2.0
"""Rows of the table of cliffs: files with many small arrays, beside safetensors' own functions.

To those a flat dict of the same names is given, which is made before.
"""

import importlib
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

OTHER = "safetensors"
MEMORY = Path("/dev/shm")  # so that no disk is measured


def rows(peers: Peers, effort: Effort) -> list[Row]:
    """Saving and loading, of NumPy's arrays and of JAX's."""
    try:
        files = importlib.import_module("pydag.files")
        numpy, other = (importlib.import_module(name) for name in ("numpy", "safetensors.numpy"))
    except ImportError:
        return []
    number = 4_000 if effort.quick else 100_000
    made = lambda: numpy.zeros(4, numpy.float32)  # noqa: E731 (a name for what makes an array)
    found = _rows("NumPy's", number, made, files, other)
    if "jax" in peers:
        interop = importlib.import_module("pydag.jaxinterop")
        other = importlib.import_module("safetensors.flax")
        found += _rows("JAX's", number // 10, lambda: peers["jax"].numpy.zeros(4), interop, other)
    return found


def _rows(whose: str, number: int, leaf: Callable[[], Any], ours: Any, theirs: Any) -> list[Row]:
    def race(what: str, effort: Effort) -> Outcome:
        tree = model(number // 8, leaf)
        names = [".".join(map(str, path)) for path in pydag.dag_paths(tree)]
        flat = dict(zip(names, pydag.dag_leaves(tree), strict=True))
        with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
            path, other = Path(folder) / "ours", Path(folder) / "theirs"
            ours.save(path, tree)
            theirs.save_file(dict(flat), other)
            works = {
                "save": Work(ours.save, path, tree),
                "load": Work(ours.load, path),
                "load(like=)": Work(ours.load, path, tree),
            }
            is_save = what == "save"
            # A fresh dict each time: of one with arrays of JAX it makes one of NumPy arrays.
            written = Work(lambda: theirs.save_file(dict(flat), other))
            peer = written if is_save else Work(theirs.load_file, other)
            return contest({"pydag": works[what], OTHER: peer}, effort)

    return [
        at_most(f"{what} of {number:,} small arrays of {whose}", 1.5, partial(race, what))
        for what in ("save", "load", "load(like=)")
    ]
