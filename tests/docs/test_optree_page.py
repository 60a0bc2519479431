# SPDX-License-Identifier: Apache-2.0
"""docs/optree.md: the table of optree's names and ours."""

import importlib
import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import optree
import pytest

import pydag
from pydag.public.options import our_name

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "optree.md"


def script() -> ModuleType:
    """The program that writes the page."""
    spec = importlib.util.spec_from_file_location("optree_page", ROOT / ".ci" / "optree_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_script_writes() -> None:
    """Whoever adds a function, or a note, writes the page anew: `python .ci/optree_page.py`."""
    assert script().page() == PAGE.read_text("utf-8")


_PROGRAM = """
import jax
import optree
from jax.tree_util import tree_map as map_by_jax
from optree import PyTreeSpec, register_pytree_node_class, tree_map, treespec_tuple

@register_pytree_node_class(namespace="pairs")
class Pair:
    def __init__(self, *parts):
        self.parts = parts

    def tree_flatten(self):
        return self.parts, None

    @classmethod
    def tree_unflatten(cls, _, parts):
        return cls(*parts)

tree = {"a": Pair(1, 2), "b": [3]}
leaves, spec = optree.tree_flatten(tree, namespace="pairs")
print(leaves, isinstance(spec, optree.PyTreeSpec), isinstance(spec, PyTreeSpec))
print(tree_map(str, [1]), optree.pytree.leaves([2]), optree.treespec.leaf().num_leaves)
print(treespec_tuple([]).num_nodes, optree.treespec_leaf().num_nodes, Pair(1).tree_flatten())
print(jax.tree_util.tree_leaves([1]), map_by_jax(str, [2]))
"""


def test_the_command_ports_a_program(tmp_path: Path) -> None:
    """What the page's command makes of a program prints what the program printed."""
    pytest.importorskip("jax")
    if shutil.which("perl") is None:
        pytest.skip("perl is not installed")
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM, "utf-8")

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout

    printed = run(sys.executable, "program.py")
    [command] = re.findall(r"```sh\n(perl .*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    run("sh", "-c", command)
    assert not re.search(r"optree|(?<!def )(?<![.\w])tree_(?!map as)", program.read_text("utf-8"))
    assert run(sys.executable, "program.py") == printed


def test_every_name_of_optree_is_on_the_page() -> None:
    """Each of its public names is in a row, with a line on sharing."""
    rows = re.findall(
        r"^\| (`\w+`(?:, `\w+`)*) \| (.+?) \|$", PAGE.read_text("utf-8"), re.MULTILINE
    )
    named = [name for names, note in rows for name in re.findall(r"\w+", names) if len(note) > 5]
    assert sorted(named) == sorted(optree.__all__)


@pytest.mark.parametrize("name", optree.__all__)
def test_every_name_of_ours_is_there(name: str) -> None:
    """pydag has each name, and it is the one that the page's rule, or the name's row, gives."""
    if name == "MAX_RECURSION_DEPTH":
        assert not hasattr(pydag, name)
        return
    ours = our_name(name)
    rule = re.sub("^tree", "dag", name).replace("pytree", "pydag")
    assert ours == rule or f"`{name}` | `{ours}`" in PAGE.read_text("utf-8") or name == "PyTreeDef"
    assert hasattr(pydag, ours)


@pytest.mark.parametrize("theirs", list(script().MODULES))
def test_every_module_of_ours_has_their_names(theirs: str) -> None:
    """Each public name of a module of optree's is in ours, under pydag's name for it."""
    ours = script().MODULES[theirs][0]
    for library in ("attrs", "jax", "torch"):
        if theirs.endswith(f".{library}"):
            pytest.importorskip(library)
    names = set(importlib.import_module(theirs).__all__) - {"PyTreeDef"}
    missing = {name for name in names if not hasattr(importlib.import_module(ours), our_name(name))}
    assert missing == set()
