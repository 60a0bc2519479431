# SPDX-License-Identifier: Apache-2.0
"""The limit: a bare C++ walk over the same containers, compiled on the spot."""

import importlib.util
import os
import shlex
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from models import MAPPINGS, NODE_COUNTS, Builder, skeletons
from peers import Peers
from records import Record, Task
from timing import Effort, Work, contest

import pydag

BARE = "bare walk"


class NoCompilerError(Exception):
    """The walk can't be compiled."""


def tasks(peers: Peers, effort: Effort) -> list[Task]:
    """A task for each class of mappings; or none, with a message among the missing."""
    try:
        walk = compiled()
    except NoCompilerError as error:
        peers.missing.append(f"the bare C++ walk can't be compiled, and is left out: {error}")
        return []
    return [
        Task(f"limit, {mapping}", partial(_race, walk, effort, mapping)) for mapping in MAPPINGS
    ]


def compiled() -> Callable[[Any], int]:
    """The walk: takes a tree, gives the number of its leaves."""
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
    count: Callable[[Any], int] = module.count_leaves
    return count


def _race(walk: Callable[[Any], int], effort: Effort, mapping: str) -> list[Record]:
    records = []
    for model, nodes in NODE_COUNTS.items():
        tree = Builder(MAPPINGS[mapping]).module(skeletons()[model])
        if walk(tree) != len(pydag.dag_leaves(tree)):
            raise AssertionError(f"the bare walk finds other leaves in {model}")
        contenders = {"pydag": Work(pydag.dag_flatten, tree), BARE: Work(walk, tree)}
        outcome = contest(contenders, effort)
        labels = {"model": model, "mapping": mapping}
        records.append(Record.of("limit", labels, outcome, nodes=nodes))
    return records
