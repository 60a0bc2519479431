# SPDX-License-Identifier: Apache-2.0
"""The limit: bare loops in C++ over the same dicts, compiled on the spot."""

import importlib.util
import os
import shlex
import subprocess
import sysconfig
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from models import NODE_COUNTS, Builder, skeletons
from peers import Peers, one, pydag_works, three
from records import Record, Task
from timing import Effort, Work, contest

import pydag

BARE = "bare loop"


class NoCompilerError(Exception):
    """The loops can't be compiled."""


def tasks(peers: Peers, effort: Effort) -> list[Task]:
    """A task for each model; or none, with a message among the missing."""
    try:
        loops = compiled()
    except NoCompilerError as error:
        peers.missing.append(f"the bare C++ loops can't be compiled, and are left out: {error}")
        return []
    return [Task(f"limit, {model}", partial(_race, loops, effort, model)) for model in NODE_COUNTS]


def compiled() -> Any:
    """The module of the loops: `count_leaves(tree)`, `copied(tree)`, `mapped(function, *trees)`."""
    compiler = os.environ.get("CXX") or sysconfig.get_config_var("CXX") or "c++"
    include = sysconfig.get_path("include")
    source = Path(__file__).with_name("bare_walk.cpp")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "bare_walk.so")
        options = ["-std=c++20", "-O3", "-shared", "-fPIC", f"-I{include}"]
        command = [*shlex.split(compiler), *options, str(source), "-o", str(library)]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except OSError as error:
            raise NoCompilerError(str(error)) from error
        except subprocess.CalledProcessError as error:
            raise NoCompilerError(error.stderr.strip().splitlines()[-1]) from error
        spec = importlib.util.spec_from_file_location("bare_walk", library)
        assert spec is not None
        assert spec.loader is not None
        module: Any = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def bare_works(loops: Any, *trees: Any) -> dict[str, Work]:
    """The least that each kind of work on trees of one structure could be."""
    return {
        "flatten": Work(loops.count_leaves, trees[0]),
        "unflatten": Work(loops.copied, trees[0]),
        "copy": Work(loops.copied, trees[0]),
        "map": Work(loops.mapped, one, trees[0]),
        "map of three trees": Work(loops.mapped, three, *trees),
    }


def _race(loops: Any, effort: Effort, model: str) -> list[Record]:
    skeleton = skeletons()[model]
    first, *rests = (Builder().module(skeleton) for _ in range(3))
    if loops.count_leaves(first) != len(pydag.dag_leaves(first)):
        raise AssertionError(f"the bare loop finds other leaves in {model}")
    ours = pydag_works(first, tuple(rests))
    return [
        Record.of(
            "limit",
            {"work": work, "model": model},
            contest({"pydag": ours[work], BARE: bare}, effort),
            nodes=NODE_COUNTS[model],
        )
        for work, bare in bare_works(loops, first, *rests).items()
    ]
