# SPDX-License-Identifier: Apache-2.0
"""Rules of the source that a machine can check."""

import ast
import inspect
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

import pydag
from pydag import _core

pytestmark = pytest.mark.once
ROOT = Path(__file__).parents[2]
CORE = sorted(p for p in (ROOT / "pydag/core").rglob("*") if p.suffix in (".h", ".cpp"))
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
PYTHON = sorted(
    path
    for folder in ("pydag", "tests", "examples", "benchmarks")
    for path in (ROOT / folder).rglob("*.py")
)


def name_of(file: Path) -> str:
    """The path of a file within the repository, since two folders may have files of one name."""
    return file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else file.name


def places(pattern: str, files: list[Path]) -> list[str]:
    """Where a pattern occurs: "file:line"."""
    return [
        f"{name_of(file)}:{number}"
        for file in files
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1)
        if re.search(pattern, line)
    ]


def read_where_moved(text: str) -> list[str]:
    """Names that one argument of a call moves from, and another one reads.

    Which of them comes first is the compiler's choice.
    """
    found = []
    text = re.sub(r"//.*", "", text)
    for moved in re.finditer(r"std::move\((\w+)\)", text):
        begin, end = moved.span()
        while (begin := _open_before(text, begin)) >= 0:
            end = text.find(")", end) + 1
            while text.count("(", begin, end) > text.count(")", begin, end):
                end = text.find(")", end) + 1
            rest = text[begin : moved.start()] + text[moved.end() : end]
            if re.search(rf"(?<![\w.]){moved[1]}\b", rest):
                found.append(moved[1])
                break
    return found


def _open_before(text: str, position: int) -> int:
    """The innermost parenthesis around a position in a statement; -1 if there is none."""
    depth = 0
    while position > 0 and text[position - 1] not in ";{}":
        position -= 1
        depth += (text[position] == ")") - (text[position] == "(")
        if depth < 0:
            return position
    return -1


def test_nothing_is_read_where_it_is_moved() -> None:
    """An object that one argument of a call takes over isn't read in another argument."""
    assert read_where_moved("visit(std::move(x), is_leaf(x.ptr()));") == ["x"]
    assert read_where_moved("visit(g(std::move(x)), n, x);") == ["x"]
    allowed = "T(A x) : x_(std::move(x)) {} if (x) y = f(std::move(x), a.x, n); else g(x);"
    assert read_where_moved(allowed) == []
    found = {name_of(file): read_where_moved(file.read_text("utf-8")) for file in CORE}
    assert {name: names for name, names in found.items() if names} == {}


def long_files(files: list[Path]) -> list[str]:
    """The files with more than 250 lines."""
    return [name_of(file) for file in files if len(file.read_text("utf-8").splitlines()) > 250]


def test_core_files_are_short(tmp_path: Path) -> None:
    """No file of the core has more than 250 lines; one line more would be found."""
    assert long_files(CORE) == []
    source = tmp_path / "source.cpp"
    source.write_text("\n" * 250, "utf-8")
    assert long_files([source]) == []
    source.write_text("\n" * 251, "utf-8")
    assert long_files([source]) == ["source.cpp"]


COUNTED = r"\bPy_X?(INC|DEC)REF\b|\bPY_VERSION_HEX\b"  # what capi.h alone has


def test_only_capi_counts_references() -> None:
    """References are counted by hand, and Python's version is asked for, in capi.h alone."""
    others = [file for file in CORE if file != ROOT / "pydag/core/base/capi.h"]
    assert places(COUNTED, others) == []


KIND = r"\bcase Kind::|[=!]= *Kind::|Kind::\w+ *[=!]="  # kinds told apart
INDEXED = r"\brefs_?(\(\))?\["  # a reference by its index


def test_kinds_are_told_apart_in_nodes() -> None:
    """What a kind of node means is known to nodes/, and to the table of kinds, alone."""
    core = ROOT / "pydag/core"
    known = [*(core / "nodes").iterdir(), core / "types/kind.h"]
    assert places(KIND, [file for file in CORE if file not in known]) == []


def test_references_are_found_by_typed_views() -> None:
    """Where among a node's references which one stands is known to node_refs.h alone."""
    node_refs = ROOT / "pydag/core/structure/node_refs.h"
    assert places(INDEXED, [file for file in CORE if file != node_refs]) == []


# Each includes from its own folder and from those before it.
FOLDERS = ["base", "types", "structure", "spec", "nodes", "walks", "rewrites"]
FOLDERS += ["optree_api", "jit", "bind"]


def downward_includes(source: str, folder: str) -> list[str]:
    """What a source in a folder of the core includes though it must not."""
    above = FOLDERS[: FOLDERS.index(folder) + 1]
    included = re.findall(r'^[ \t]*#[ \t]*include[ \t]*"([^"]*)"', source, re.MULTILINE)
    return [path for path in included if path.partition("/")[0] not in above or "/" not in path]


def test_core_files_include_upward() -> None:
    """A file of the core includes from its own folder and from those above it in the README."""
    found = {
        str(file.relative_to(ROOT / "pydag/core")): downward_includes(
            file.read_text("utf-8"), file.parent.name
        )
        for file in CORE
    }
    assert {name: paths for name, paths in found.items() if paths} == {}
    readme = (ROOT / "pydag/core/README.md").read_text("utf-8")
    assert re.findall(r"^\| `(\w+)/` \|", readme, re.MULTILINE) == FOLDERS


# A static variable within a function or class (those are indented), and what it starts with.
STATIC = re.compile(
    r"^ +(?:static|thread_local) (?!constexpr)([^;(){}=]*)(=[^;]*|\{[^;]*);", re.MULTILINE
)


def lazy_statics(source: str) -> list[str]:
    """The variables of a source that are made when a function first runs, by a call."""
    code = re.sub(r"//.*", "", source)
    starts = {name: re.sub(r"\w+_cast<[^>]*>", "", start) for name, start in STATIC.findall(code)}
    return [name for name, start in starts.items() if re.search(r"[\w>]\s*\(", start)]


def test_nothing_is_made_at_first_use() -> None:
    """What the core needs is made with the module, not by a call when a function first runs.

    Other threads would wait for that call, which waits for them as soon as it runs Python code.
    """
    found = {name_of(file): lazy_statics(file.read_text("utf-8")) for file in CORE}
    assert {name: statics for name, statics in found.items() if statics} == {}


# What other libraries don't promise to keep, and how it is asked for.
PRIVATE = {
    # As an attribute or by its text. Names such as `__version__` are Python's own, and public.
    "optree": r'\boptree(\.\w+)*(\.|, *["\'])_(?!_\w+__\b)',
    # Its internal packages, and an option without a documentation.
    "jax": r"\b_src\b|\bjax\.(extend|interpreters)\b|_private_parameters",
    # How NNX stores what a module and a Variable hold.
    "flax": r"\b_pytree__|\b_raw_value\b|\b_var_metadata\b",
    # Private modules and names, and what the closures of functions are asked for.
    "equinox": r"\b(equinox|eqx)(\.\w+)*\._|\b_inferences\b",
    "chex": r"\bchex(\.\w+)*\._",
    "optax": r"\boptax(\.\w+)*\._",
}


def test_private_names_of_others_are_in_one_place() -> None:
    """What other libraries don't promise to keep is looked up in one file for each."""
    package = [path for path in PYTHON if "pydag" in path.relative_to(ROOT).parts]
    for library, names in PRIVATE.items():
        others = [path for path in package if path.stem != f"{library}_private"]
        assert places(names, others) == [], library


@pytest.mark.parametrize("file", TESTS, ids=name_of)
def test_every_test_makes_a_claim(file: Path) -> None:
    """Every test has a docstring: the claim that it defends, which names its subject."""
    functions = [
        node
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")
    ]
    assert [f.name for f in functions if not ast.get_docstring(f)] == []
    pronoun = re.compile(r"(And|By|It|Nor|So|They)\b")
    assert [f.name for f in functions if pronoun.match(ast.get_docstring(f) or "")] == []


def help_in(stub: ast.ClassDef | ast.FunctionDef) -> str:
    """The help of a class or function of a stub, as nanobind writes it, on one line."""
    words, decorators = ast.get_docstring(stub) or "", map(ast.unparse, stub.decorator_list)
    if isinstance(stub, ast.FunctionDef) and "property" not in decorators:
        assert stub.returns is not None
        words = f"{stub.name}({ast.unparse(stub.args)}) -> {ast.unparse(stub.returns)} {words}"
    return " ".join(words.replace("builtins.", "").split())


def test_stub_says_what_the_core_says() -> None:
    """The stub has the help of the core's classes and the numbers of its functions' arguments.

    (That both have the same names is tested in test_type_checkers.py.)
    """
    stub = ast.parse((ROOT / "pydag/_core.pyi").read_text("utf-8"))
    named = {
        node.name: node for node in stub.body if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }
    for name, node in named.items():
        thing = getattr(_core, name)
        if isinstance(node, ast.ClassDef):
            assert " ".join(thing.__doc__.split()) == help_in(node)
        elif type(thing).__name__ != "nb_func":
            with pytest.raises(TypeError, match=f"expected {len(node.args.posonlyargs)} arguments"):
                thing(*[None] * 99)
    for method in named["PyDagSpec"].body:
        if isinstance(method, ast.FunctionDef) and ast.get_docstring(method):
            thing = inspect.getattr_static(pydag.PyDagSpec, method.name)
            assert thing.__doc__.replace(" = ", "=").split() == help_in(method).split()


WAIVER = re.compile(
    r"NOLINT(NEXTLINE|BEGIN)?(\([^)]*\))?"
    r"|type: ignore(\[[^\]]*\])?"
    r"|pragma: no cover|GCOVR_EXCL_(LINE|START)"
    r"|noqa(: *[A-Z]+[0-9]+(, *[A-Z]+[0-9]+)*)?"
)


def comments(file: Path) -> Iterator[tuple[int, str]]:
    """The comments of a file, with their lines."""
    text = file.read_text("utf-8")
    if file.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
    else:
        for number, line in enumerate(text.splitlines(), 1):
            yield number, line.partition("//")[2]


def test_waivers_have_reasons() -> None:
    """A check that is waived on a line is followed, on that line, by the reason in words."""
    unexplained = [
        f"{name_of(file)}:{line}"
        for file in CORE + PYTHON
        for line, comment in comments(file)
        if (waiver := WAIVER.search(comment))
        and not re.search(r"[a-z]{2}", comment[waiver.end() :])
    ]
    assert unexplained == []
