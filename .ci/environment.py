# SPDX-License-Identifier: Apache-2.0
"""Make a virtual environment with pydag in it: what `make` does before it runs anything.

    python3 .ci/environment.py FOLDER GROUP [SETTING ... | --requirements-only]

GROUP is one of the dependency groups in pyproject.toml.

A SETTING is an option of `pip install`. Environments and clones share what they compile, by ccache
where it is installed.

Shows what it is doing. What can be wrong with a machine (no compiler, no headers, no package index)
is looked for first, and told in one line that says what to do. All that pip and the compiler say is
in FOLDER/setup.log.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

Progress = Callable[[str], str]

ROOT = Path(__file__).parents[1]
START = time.monotonic()
EVERY = 30  # seconds between two lines of progress where there is no terminal
WIDTH = 76
REQUIREMENTS_ONLY = "--requirements-only"  # without the project itself
EDITABLE = "--editable"  # the sources themselves, not a copy of them
# Paths in commands become relative; a precompiled header is taken for what was compiled, not for
# when; and what a clone is called doesn't count.
CCACHE = [
    f"CCACHE_BASEDIR={ROOT}",
    "CCACHE_NOHASHDIR=1",
    # What is included counts by its whole text. By what is left of it after preprocessing, a
    # precompiled header would be found that the compiler takes for another file than its source.
    "CCACHE_DEPEND=1",
    "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime",
]
last_shown = START
ESTIMATE = "The first time this takes two to five minutes on two cores."


def fail(text: str) -> NoReturn:
    """End with one line."""
    show("")
    sys.exit(f"pydag can't be set up: {text}")


def show(text: str, *, stays: bool = False) -> None:
    """A line of progress. On a terminal it takes the place of the one before, unless that stays.

    Elsewhere, such as into a file, it is printed if it stays, or if nothing was for half a minute.
    """
    global last_shown
    now = time.monotonic()
    if sys.stderr.isatty():
        print(f"\r{text[:WIDTH]:{WIDTH}}", end="\n" if stays else "\r", file=sys.stderr, flush=True)
    elif text and (stays or now >= last_shown + EVERY):
        print(text, file=sys.stderr, flush=True)
        last_shown = now


# --- what must be there ---


def check_venv() -> None:
    """Debian and Ubuntu leave out a part of Python that `python -m venv` needs."""
    if importlib.util.find_spec("ensurepip") is None:
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        fail(
            f"{sys.executable} can't make virtual environments. "
            f"Install python{version}-venv, or name another Python: make ... PYTHON=..."
        )


def check_compiler() -> None:
    """A C++ compiler that knows C++20, and Python's headers."""
    named = os.environ.get("CXX")
    compiler = next(filter(shutil.which, [named] if named else ["c++", "g++", "clang++"]), None)
    if compiler is None:
        missing = f"CXX={named} can't be run" if named else "there is no C++ compiler"
        fail(
            f"{missing}. Install one (Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++;"
            " macOS: xcode-select --install), or name it: make ... CXX=..."
        )
    headers = sysconfig.get_path("include")
    if not Path(headers, "Python.h").exists():
        fail(
            f"the headers of {sys.executable} are missing ({headers}/Python.h). Install them "
            "(Debian, Ubuntu: python3-dev; Fedora: python3-devel), or name another Python."
        )
    program = "#include <compare>\n#include <span>\nstatic_assert(__cplusplus >= 202002L);\n"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "try.cpp")
        source.write_text(program, "utf-8")
        command = [compiler, "-std=c++20", "-fsyntax-only", str(source)]
        if subprocess.run(command, capture_output=True).returncode:
            fail(
                f"{compiler} doesn't compile C++20. Install GCC 11, Clang 14 or newer, or name "
                "another compiler: make ... CXX=..."
            )


# --- what is installed ---


def requirements(group: str) -> list[str]:
    """What the project needs to be built, to run, and for a group, without the project itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"]
    groups = project["dependency-groups"]
    found: dict[str, None] = {}

    def add(items: Sequence[str | dict[str, str]]) -> None:
        for item in items:
            if isinstance(item, dict):
                add(groups[item["include-group"]])
            elif more := re.fullmatch(rf"{project['project']['name']}\[(.*)\]", item):
                for name in more[1].split(","):
                    add(extras[name.strip()])
            else:
                found[item] = None

    add(project["build-system"]["requires"])
    add(["cmake", "ninja", *project["project"]["dependencies"], *groups[group]])
    return list(found)


class Environment:
    """A virtual environment that is being made."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "setup.log"
        self.python = folder / "bin" / "python"

    def run(
        self, command: Sequence[str | Path], progress: Callable[[str], str]
    ) -> list[str] | None:
        """Run a command; what it printed if it failed, else None.

        Args:
            command: The command.
            progress: What to show after a line of its output; "" if that says nothing new.
        """
        variables = {**os.environ, "PYTHONUNBUFFERED": "1"}
        variables["PATH"] = (
            f"{self.python.parent.resolve()}{os.pathsep}{os.environ.get('PATH', '')}"
        )
        lines: list[str] = []
        with (
            self.log.open("a", encoding="utf-8") as log,
            subprocess.Popen(
                list(map(str, command)),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env=variables,
            ) as process,
        ):
            for line in process.stdout or ():
                log.write(line)
                lines.append(line.rstrip())
                if text := progress(lines[-1].strip()):
                    show(f"  {text}")
        return lines if process.returncode else None

    def pip(self, arguments: Sequence[str], progress: Progress) -> list[str] | None:
        """Run `pip install`."""
        options = ["--disable-pip-version-check", "--no-input", "--progress-bar", "off"]
        options += ["--retries", "2", "--no-compile"]  # six of ten modules are never imported
        # Of what has no wheel for this Python, such as one without the GIL, an older one that has:
        # another language's compiler isn't asked for.
        options.append("--prefer-binary")
        command = [str(self.python), "-m", "pip", "install", *options, *arguments]
        return self.run(command, progress)

    def packages(self, wanted: Sequence[str]) -> list[str] | None:
        """Install packages, by uv where it is there: it takes seconds where pip takes minutes."""
        if (uv := shutil.which("uv")) is None:
            return self.pip(wanted, _package)
        command = [uv, "pip", "install", "--python", str(self.python), *wanted]
        return self.run(command, lambda line: "")

    def make(self) -> None:
        """Make the environment itself, if it isn't there."""
        if self.python.exists():
            return
        show(f"Setting up {self.folder}. {ESTIMATE}", stays=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        if said := self.run([sys.executable, "-m", "venv", self.folder], lambda line: ""):
            shutil.rmtree(self.folder)
            fail(f"{sys.executable} -m venv failed: {' '.join(said)[-400:]}")

    def install_requirements(self, group: str) -> None:
        """Install everything but the project; nothing is asked for twice."""
        wanted = requirements(group)
        stamp = self.folder / "requirements.txt"
        text = "\n".join(wanted)
        if stamp.exists() and stamp.read_text("utf-8") == text:
            return
        show("Installing packages", stays=True)
        if said := self.packages(wanted):
            self._blame_index(said)
        stamp.write_text(text, "utf-8")

    def _blame_index(self, said: Sequence[str]) -> NoReturn:
        output = "\n".join(said)
        errors = [line for line in said if line.startswith("ERROR:")]
        errors = errors or [*said[-1:], "the installer failed"]
        if re.search(r"Retrying \(|connect|Max retries|Temporary failure in name", output):
            index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple")
            fail(
                f"the package index {index} doesn't answer. Check the network, or name another "
                "one: PIP_INDEX_URL=https://... make ..."
            )
        fail(f"{errors[0].removeprefix('ERROR: ')} (all of it: {self.log})")

    def install_project(self, settings: Sequence[str]) -> None:
        """Compile the core and install the package."""
        show("Compiling the core, for a minute or more", stays=True)
        build = [
            "-v",
            "--no-build-isolation",
            "--no-deps",
            "--config-settings",
            f"build-dir={self.folder}/build",
        ]
        if ccache := shutil.which("ccache"):
            launcher = ";".join(["env", *CCACHE, ccache])
            build += ["--config-settings", f"cmake.define.CMAKE_CXX_COMPILER_LAUNCHER={launcher}"]
        project = ["--editable", "."] if EDITABLE in settings else ["."]
        options = [setting for setting in settings if setting != EDITABLE]
        if said := self.pip([*build, *options, *project], _object):
            print("\n".join(_errors(said)), file=sys.stderr)
            fail(f"the core can't be compiled; what was said is above and in {self.log}")


def _package(line: str) -> str:
    """What pip is at."""
    if found := re.match(r"(Collecting|Downloading|Installing collected packages)\b(.*)", line):
        what, rest = found[1].split()[0].lower(), found[2].strip(" :").split(" (from ")[0]
        return f"{what} {rest.rpartition('/')[2]}" if what != "installing" else "putting in place"
    return "trying again: the index doesn't answer" if "Retrying" in line else ""


def _errors(said: Sequence[str]) -> list[str]:
    """What a failed build says, without what went well before and pip's words after it."""
    start = next((i for i, line in enumerate(said) if "FAILED:" in line), len(said) - 20)
    end = next((i for i, line in enumerate(said) if "ninja: build stopped" in line), len(said))
    return list(said[max(start, 0) : end])[:60]


def _object(line: str) -> str:
    """What the compiler is at."""
    found = re.match(r"\[(\d+)/(\d+)\] (?:Building|Linking)", line)
    seconds = time.monotonic() - START
    return f"{found[1]} of {found[2]} files, after {seconds:.0f} s" if found else ""


def main() -> None:
    """Make the environment, or bring it up to date."""
    folder, group, *settings = sys.argv[1:]
    os.chdir(ROOT)
    check_venv()
    check_compiler()
    environment = Environment(Path(folder))
    environment.make()
    environment.log.unlink(missing_ok=True)
    environment.install_requirements(group)
    if settings != [REQUIREMENTS_ONLY]:
        environment.install_project(settings)
    show(f"Ready, after {time.monotonic() - START:.0f} s", stays=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        show("")
        sys.exit("Interrupted. The same command again goes on from here.")
