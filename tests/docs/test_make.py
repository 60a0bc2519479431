# SPDX-License-Identifier: Apache-2.0
"""What `make` says: what there is, and in one line what is missing on a machine."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytestmark = pytest.mark.once
ROOT = Path(__file__).parents[2]
ENVIRONMENT = ROOT / ".ci" / "environment.py"

if shutil.which("make") is None:
    pytest.skip("there is no make", allow_module_level=True)


def make(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs make in the repository."""
    return subprocess.run(
        ["make", *arguments],
        cwd=ROOT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=300,
    )


def set_up(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Makes an environment, as make would."""
    return subprocess.run(
        [sys.executable, str(ENVIRONMENT), str(folder), "demo"],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=300,
    )


def program(path: Path, text: str) -> Path:
    """A shell script that can be run."""
    path.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
    path.chmod(0o755)
    return path


def test_make_alone_says_what_there_is() -> None:
    """`make` and `make help` list all targets, and run nothing; they need no Python."""
    said = make(PYTHON="nonesuch").stdout
    assert said == make("help").stdout
    makefile = (ROOT / "Makefile").read_text("utf-8").replace("\\\n", " ")
    targets = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert targets is not None
    listed = set(re.findall(r"^make ([\w-]+)", said, re.MULTILINE))
    assert listed >= set(targets[1].split()) - {"lint", "types", "pytest"}


def test_what_a_linter_finds_stops_nothing(tmp_path: Path) -> None:
    """`make test` runs linters, type checks and tests whichever fail, and then says which did."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "installed").touch()
    for name, body in {
        "ruff": "exit 1",
        "clang-format": "true",
        "codespell": "true",
        "zizmor": "true",
        "mypy": "echo types; exit 1",
        "pytest": "echo tests",
    }.items():
        program(tmp_path / "bin" / name, body)
    done = make("test", f"test={tmp_path}")
    assert done.returncode != 0
    assert {"types", "tests"} <= set(done.stdout.splitlines())
    assert "failed: lint types\n" in done.stderr

    program(tmp_path / "bin" / "ruff", "true")
    program(tmp_path / "bin" / "mypy", "true")
    assert make("test", f"test={tmp_path}").returncode == 0


@pytest.mark.parametrize(
    ("body", "why"),
    [("echo 3.9 False", "is Python 3.9"), ("exit 127", "does not run")],
    ids=["old", "broken"],
)
def test_a_wrong_python(body: str, why: str, tmp_path: Path) -> None:
    """One line: which version is needed, what this one is, and how to name another."""
    python = program(tmp_path / "python", body)
    done = make("demo", f"PYTHON={python}")
    assert done.returncode != 0
    [line] = done.stderr.splitlines()
    assert f'pydag needs Python 3.11 or newer, and "{python}" {why}.' in line
    assert re.search(r"Name another one: make demo PYTHON=\S+\.  Stop\.$", line)


def test_no_compiler(tmp_path: Path) -> None:
    """One line that says how to get one; no environment is begun."""
    done = set_up(tmp_path / "new", PATH=str(tmp_path), CXX="")
    assert done.returncode != 0
    [line] = done.stderr.splitlines()
    assert line.startswith("pydag can't be set up: there is no C++ compiler. Install one (Debian")
    assert not (tmp_path / "new").exists()


def test_a_compiler_that_is_too_old(tmp_path: Path) -> None:
    """One line that says which versions do."""
    compiler = program(tmp_path / "old++", "exit 1")
    done = set_up(tmp_path / "new", CXX=str(compiler))
    [line] = done.stderr.splitlines()
    assert f"{compiler} doesn't compile C++20. Install GCC 11, Clang 14 or newer" in line


@pytest.mark.skipif(
    not Path(sysconfig.get_path("include"), "Python.h").exists() or not shutil.which("c++"),
    reason="this machine lacks what is looked for before the index",
)
def test_packages_are_installed_by_uv(tmp_path: Path) -> None:
    """Where uv is installed; what it says when it fails is passed on."""
    (tmp_path / "bin").mkdir()
    body = f'echo "$@" > {tmp_path}/given; echo error: no such version; exit 1'
    program(tmp_path / "bin" / "uv", body)
    done = set_up(tmp_path / "new", PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
    given = (tmp_path / "given").read_text("utf-8").split()
    assert given[:4] == ["pip", "install", "--python", str(tmp_path / "new/bin/python")]
    assert "optax" in given
    assert "pydag can't be set up: error: no such version (all of it:" in done.stderr


@pytest.mark.skipif(
    not Path(sysconfig.get_path("include"), "Python.h").exists() or not shutil.which("c++"),
    reason="this machine lacks what is looked for before the index",
)
def test_no_index(tmp_path: Path) -> None:
    """One line after those of progress: which index doesn't answer, and how to name another."""
    done = set_up(
        tmp_path / "new",
        PIP_INDEX_URL="http://127.0.0.1:9/simple",
        PIP_CONFIG_FILE=os.devnull,
        PIP_EXTRA_INDEX_URL="",
        PIP_FIND_LINKS="",
        PIP_RETRIES="0",
    )
    assert done.returncode != 0
    progress, packages, line = done.stderr.splitlines()
    assert progress.startswith(f"Setting up {tmp_path / 'new'}.")
    assert packages == "Installing packages"
    assert line.startswith(
        "pydag can't be set up: the package index http://127.0.0.1:9/simple doesn't answer."
    )
