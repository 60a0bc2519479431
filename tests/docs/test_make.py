# SPDX-License-Identifier: Apache-2.0
"""What `make` says: what there is, and in one line what is missing on a machine."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.once
ROOT = Path(__file__).parents[2]

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
