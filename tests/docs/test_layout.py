# SPDX-License-Identifier: Apache-2.0
"""The folders of the Python side are its architecture: who may import what."""

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = sorted((ROOT / "pydag").rglob("*.py"))

# Each room imports from itself and from those before it.
ROOMS = [
    "pydag._core",
    "pydag.errors",
    "pydag.typing",
    "pydag.accessors",
    "pydag.arrays",
    "pydag.registry",
    "pydag.dataclasses",
    "pydag.structure",
    "pydag.public",
    "pydag.ops",
    "pydag.optree_api",
    "pydag.functools",
    "pydag.sharing",
    "pydag.files",
    "pydag.doctor",
    "pydag.views",
    "pydag.integrations",
    "pydag.dag",
    "pydag.dagspec",
    "pydag",
    "pydag.__main__",
    "pydag.jaxinterop.help",
    "pydag.jaxinterop.typed",
    "pydag.jaxinterop.foreign",
    "pydag.jaxinterop.naming",
    "pydag.jaxinterop.content",
    "pydag.jaxinterop.treatments",
    "pydag.jaxinterop.updates",
    "pydag.jaxinterop.notices",
    "pydag.jaxinterop.refs",
    "pydag.jaxinterop.calls",
    "pydag.jaxinterop.compiled",
    "pydag.jaxinterop.wrappers",
    "pydag.jaxinterop.derived",
    "pydag.jaxinterop.registries",
    "pydag.jaxinterop.optimizers",
    "pydag.jaxinterop.files",
    "pydag.jaxinterop.tree",
    "pydag.jaxinterop",
    "pydag.integrations.jax",
]


def module_of(file: Path) -> str:
    """The name of the module that a file is."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    """The room that a module, or a name in one, belongs to."""
    parts = module.split(".")
    return next(
        room for length in range(len(parts), 0, -1) if (room := ".".join(parts[:length])) in ROOMS
    )


def imported(source: str, module: str, is_package: bool = False) -> Iterator[str]:
    """What a module imports from the package: modules, or names in them.

    The core calls for what Python does at its errors, and a function may import what is only needed
    when it runs; so an import within a function counts, and one for types alone does, too.
    """
    package = module if is_package else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "pydag")
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1]
            start = ".".join(base) if node.level else ""
            name = ".".join(part for part in (start, node.module) if part)
            if name == "pydag":  # the package itself is asked, also where the name is a module's
                yield name
            elif name.split(".")[0] == "pydag":
                yield from (f"{name}.{alias.name}" for alias in node.names)


def downward_imports(source: str, module: str, is_package: bool = False) -> list[str]:
    """What a module imports from a room below its own, or from the package's own `__init__`."""
    room = ROOMS.index(room_of(module))
    return [
        name
        for name in imported(source, module, is_package)
        if ROOMS.index(room_of(name)) > room or room_of(name) == "pydag" != room_of(module)
    ]


# The core or a user calls these; what does the work is imported when they are called.
CALLED = {
    "pydag.__main__",
    "pydag._core",
    "pydag.structure.spec_methods",
    "pydag.files.check",
}


def test_modules_import_upward() -> None:
    """A module imports from its own room and from those above it, and never the package itself."""
    found = {
        module: downward_imports(file.read_text("utf-8"), module, file.name == "__init__.py")
        for file in PYTHON
        if (module := module_of(file)) not in CALLED
    }
    assert {module: names for module, names in found.items() if names} == {}


def shadowed(package: object) -> list[str]:
    """The modules of a package that its attribute of the same name is not."""
    assert inspect.ismodule(package)
    return [
        name
        for _, name, _ in pkgutil.iter_modules(package.__path__)
        if name in vars(package) and not inspect.ismodule(vars(package)[name])
    ]


@pytest.mark.parametrize("name", ["pydag", "pydag.jaxinterop"])
def test_no_module_is_called_like_a_function(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`from pydag import x` and `import pydag.x` never mean two things."""
    if name == "pydag.jaxinterop":
        pytest.importorskip("jax")
    package = importlib.import_module(name)
    assert shadowed(package) == []
    monkeypatch.setattr(package, "files", lambda: None, raising=False)
    assert shadowed(package) == ["files"]


BOUNDARY = ROOT / "pydag" / "jaxinterop"
README = (BOUNDARY / "README.md").read_text("utf-8")


def test_the_page_about_the_boundary_has_every_room() -> None:
    """`pydag/jaxinterop/README.md` names each folder, and no other."""
    folders = {f"{file.parent.name}/" for file in BOUNDARY.glob("*/__init__.py")}
    rooms = README.partition("## The rooms")[2].partition("## What is remembered")[0]
    assert set(re.findall(r"`(\w+/)`", rooms)) == folders


# A table of a module's that forgets by itself.
TABLE = re.compile(r"^_?\w+(?:: [^=\n]*)? = (?:\(\n\s*)?(?:weakref\.Weak|WeakTable)", re.MULTILINE)


def test_the_page_about_the_boundary_has_every_cache() -> None:
    """What its list of caches names is there; and each module with a weak table is named."""
    remembered = README.partition("## What is remembered")[2]
    files = {
        str(file.relative_to(BOUNDARY).with_suffix("")): file.read_text("utf-8")
        for file in BOUNDARY.rglob("*.py")
    }
    named = re.findall(
        r"`([\w./]+)`", "".join(re.findall(r"^\| (`.*?) \|", remembered, re.MULTILINE))
    )
    for name in named:
        module, _, rest = name.partition(".")
        of_class = rf"^class {module}\b"
        found = [
            text
            for file, text in files.items()
            if file == module
            or (module[-1] == "/" and file.startswith(module))
            or re.search(of_class, text, re.MULTILINE)
        ]
        assert found, name
        assert any(rest in text for text in found), name
    rooms = [name for name in named if name.endswith("/")]
    missing = [
        file
        for file, text in files.items()
        if TABLE.search(text) and file not in remembered and not file.startswith(tuple(rooms))
    ]
    assert missing == []
