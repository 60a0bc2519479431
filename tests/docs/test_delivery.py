# SPDX-License-Identifier: Apache-2.0
"""What is delivered: bounds agree with each other, workflows and metadata are well-formed."""

import contextlib
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import pydag

yaml = pytest.importorskip("yaml")
packaging = pytest.importorskip("packaging.requirements")

pytestmark = pytest.mark.once
ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
USERS = [
    *PROJECT["project"]["dependencies"],
    *(x for extra in PROJECT["project"]["optional-dependencies"].values() for x in extra),
]


@pytest.mark.parametrize("requirement", USERS)
def test_bounds(requirement: str) -> None:
    """What is installed here is allowed; the group `lowest` pins the lowest version of a bound."""
    parsed = packaging.Requirement(requirement)
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        assert parsed.specifier.contains(importlib.metadata.version(parsed.name))
    lowest = {
        pin.name: pin.specifier
        for item in PROJECT["dependency-groups"]["lowest"]
        if isinstance(item, str) and (pin := packaging.Requirement(item))
    }
    if parsed.name in lowest:
        [bound] = [x.version for x in parsed.specifier if x.operator == ">="]
        assert lowest[parsed.name].contains(bound)


@pytest.mark.parametrize(
    ("file", "package"),
    [
        ("pydag/registry/optree_private.py", "optree"),
        ("pydag/jaxinterop/foreign/jax_private.py", "jax"),
    ],
)
def test_messages_say_the_bounds(file: str, package: str) -> None:
    """The message about a library's version names the versions that the metadata demands."""
    [bound] = [x for x in USERS if re.match(rf"{package}\b", x)]
    assert f'"{bound}"' in (ROOT / file).read_text("utf-8")


def test_safetensors_that_is_too_old(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One sentence says which version is installed, and which works: that of the metadata."""
    safetensors = pytest.importorskip("safetensors")
    monkeypatch.setattr(safetensors, "__version__", "0.7.1")
    [bound] = [x for x in USERS if x.startswith("safetensors")]
    with pytest.raises(ImportError) as raised:
        pydag.files.save(tmp_path / "x", {})
    assert str(raised.value) == (
        f'pydag.files needs safetensors 0.8 or newer, and this is 0.7.1: pip install "{bound}"'
    )


def test_pythons() -> None:
    """Each Python of the classifiers, which were run, gets a wheel; no wheel is free-threaded."""
    named = {
        found[1]
        for line in PROJECT["project"]["classifiers"]
        if (found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line))
    }
    built = re.findall(r"cp3(\d+)-", PROJECT["tool"]["cibuildwheel"]["build"])
    assert named <= {f"3.{minor}" for minor in built}
    assert PROJECT["project"]["requires-python"] == f">={min(named, key=lambda v: int(v[2:]))}"
    assert f"3.{sys.version_info[1]}" in named
    assert not any("Free Threading" in line for line in PROJECT["project"]["classifiers"])


def test_classifiers_are_what_the_workflow_runs() -> None:
    """A Python or a system is in the classifiers exactly if a job of the workflow runs on it."""
    jobs = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text("utf-8"))["jobs"]
    pythons, systems = set(), set()
    for job in jobs.values():
        matrix = job.get("strategy", {}).get("matrix", {})
        [setup] = [s for s in job["steps"] if s.get("uses", "").startswith("actions/setup-python@")]
        rows = matrix.get("include", [{"python": p} for p in matrix.get("python", [])]) or [{}]
        for row in rows:
            python = row.get("python", setup["with"]["python-version"])
            pythons.add(f"Programming Language :: Python :: {python}")
            systems.add(row.get("os", job["runs-on"]).partition("-")[0])
    names = {"ubuntu": "POSIX :: Linux", "macos": "MacOS", "windows": "Microsoft :: Windows"}
    found = PROJECT["project"]["classifiers"]
    assert {x for x in found if re.search(r"Python :: 3\.\d+$", x)} == pythons
    assert {x for x in found if x.startswith("Operating System")} == {
        f"Operating System :: {names[system]}" for system in systems
    }


def test_the_bounds_that_the_workflow_lifts(tmp_path: Path) -> None:
    """The job `unbounded` leaves no upper bound of JAX and of optree, and every other one."""
    workflow = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text("utf-8"))
    job = workflow["jobs"]["unbounded"]
    assert job["continue-on-error"] is True
    [command] = [s["run"] for s in job["steps"] if s.get("run", "").startswith("sed ")]
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    (tmp_path / "pyproject.toml").write_text(text, "utf-8")
    subprocess.run(command, shell=True, cwd=tmp_path, check=True)
    lifted = (tmp_path / "pyproject.toml").read_text("utf-8").splitlines()
    changed = [(a, b) for a, b in zip(text.splitlines(), lifted, strict=True) if a != b]
    assert changed == [
        (f'{start}"{bound}"]', f'{start}"{bound.partition(",")[0]}"]')
        for start, package in (("dependencies = [", "optree"), ("jax = [", "jax"))
        for bound in USERS
        if re.match(rf"{package}\b", bound)
    ]


@pytest.mark.parametrize(
    "file", sorted((ROOT / ".github/ISSUE_TEMPLATE").iterdir()), ids=lambda f: f.name
)
def test_forms_of_issues(file: Path) -> None:
    """Each form has a name, a description and fields with labels, of types that there are."""
    form = yaml.safe_load(file.read_text("utf-8"))
    assert form["name"]
    assert form["description"]
    fields = [part for part in form["body"] if part["type"] != "markdown"]
    assert {part["type"] for part in fields} <= {"textarea", "input", "dropdown", "checkboxes"}
    assert all(part["attributes"]["label"] for part in fields)
    assert len({part["id"] for part in fields}) == len(fields)
    if file.name == "bug.yml":
        required = {p["id"] for p in fields if p.get("validations", {}).get("required")}
        assert required >= {"versions", "program", "output"}


def test_the_command_of_the_readme() -> None:
    """`.ci/run` runs what the README gives for the tests and more; the workflow `make test-all`."""
    commands = re.findall(r"^(make test\S*) +#", (ROOT / "README.md").read_text(), re.M)
    run = (ROOT / ".ci" / "run").read_text("utf-8")
    assert "\nrun make test\n" in run  # with python3
    assert '\nrun make test-all PYTHON="$newest" PYTEST_ARGS=--ignore=tests/core\n' in run
    assert '\nrun make sanitize PYTHON="$newest"\n' in run  # the core's tests
    assert commands == ["make test"]
    workflow = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text("utf-8"))
    steps = [step.get("run") for step in workflow["jobs"]["all"]["steps"]]
    assert "make test-all" in steps


def test_the_locked_versions_are_allowed() -> None:
    """.ci/locked.txt has an allowed version of each package that a group of tests names."""

    def parsed(text: str) -> tuple[str, Any]:
        found = packaging.Requirement(text)
        return re.sub(r"[-_.]+", "-", found.name).lower(), found.specifier

    locked: dict[str, list[str]] = {}
    for line in (ROOT / ".ci" / "locked.txt").read_text("utf-8").splitlines():
        name, pin = parsed(line)
        locked.setdefault(name, []).append(str(pin).removeprefix("=="))
    groups = PROJECT["dependency-groups"]
    named = [item for group in ("test", "test-all", "test-core", "docs") for item in groups[group]]
    for item in named:
        if isinstance(item, str) and not item.startswith("pydag-tree"):
            name, allowed = parsed(item)
            assert all(map(allowed.contains, locked[name]))


def test_version_of_the_citation() -> None:
    """CITATION.cff names this version."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert str(citation["version"]) == pydag.__version__


@pytest.mark.parametrize(
    "file", sorted((ROOT / ".github" / "workflows").iterdir()), ids=lambda f: f.name
)
def test_workflows(file: Path) -> None:
    """Each job has a machine and steps; what it runs by `make` is a target that there is.

    Actions of others are named by the hash of a commit, and the credentials of a checkout are not
    kept for the steps after it.
    """
    workflow = yaml.safe_load(file.read_text("utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for job in workflow["jobs"].values():
        if "uses" in job:
            assert (ROOT / job["uses"]).is_file()
            continue
        assert job["runs-on"]
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            if uses := step.get("uses"):
                assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", uses), uses
                if uses.startswith("actions/checkout@"):
                    assert step["with"]["persist-credentials"] is False
            for target in re.findall(r"^make ([\w-]+)", step.get("run", ""), re.MULTILINE):
                assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_what_is_published_was_tested() -> None:
    """`publish` needs the tests, the wheels, an address, an installed sdist named by the tag."""
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text("utf-8"))
    jobs = workflow["jobs"]
    assert jobs["publish"]["needs"] == ["tests", "sdist", "wheels"]
    assert jobs["tests"]["uses"] == "./.github/workflows/tests.yml"
    steps = "\n".join(step.get("run", "") for step in jobs["sdist"]["steps"])
    assert "pydag_tree-${GITHUB_REF_NAME#v}.tar.gz" in steps
    assert "pip install dist/*.tar.gz" in steps
    assert "grep -q '^Repository = \"https' pyproject.toml" in steps


def test_what_is_in_the_core_is_named() -> None:
    """The licenses of the core's libraries and of the table of ties go with each distribution."""
    project = PROJECT["project"]
    assert project["license"] == "Apache-2.0 AND BSD-3-Clause AND MIT"
    notices = {path.name for path in (ROOT / "licenses").iterdir()}
    assert notices == {"nanobind.txt", "robin_map.txt", "transformers.txt"}
    assert "licenses/*.txt" in project["license-files"]
