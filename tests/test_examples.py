# SPDX-License-Identifier: Apache-2.0
"""The programs in examples/, run as a user runs them, with fewer steps."""

import runpy
import sys
from pathlib import Path

import pytest

for library in ("jax", "equinox", "matplotlib", "optax", "sklearn", "tqdm"):
    pytest.importorskip(library)

EXAMPLES = Path(__file__).parents[1] / "examples"
OPTIONS = {
    "object_graph": ["--places", "3", "--panels", "4"],
    "tied_autoencoder": ["--steps", "20"],
    "tied_transformer": ["--steps", "4"],
}
SAYS = {
    "object_graph": ["1 time, the steel being one: True", "by two bridges"],
    "tied_autoencoder": ["reconstruction error", "refused", "one, the sum"],
    "tied_transformer": ["held out", "one table"],
}


def run(name: str, monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    monkeypatch.setattr(sys, "argv", [name, *options])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")


@pytest.mark.parametrize("name", OPTIONS)
def test_it_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ends well, says what it has found, and draws its picture where it is told to."""
    picture = tmp_path / "folder" / "picture.png"
    run(name, monkeypatch, *OPTIONS[name], "--out", str(picture))
    said = capsys.readouterr().out
    for words in (*SAYS[name], str(picture)):
        assert words in said
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_all_examples_are_run() -> None:
    """No example is left out here."""
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(OPTIONS)


@pytest.mark.parametrize("name", OPTIONS)
def test_it_refuses_none(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No steps, or no places, is an error of usage."""
    with pytest.raises(SystemExit):
        run(name, monkeypatch, OPTIONS[name][0], "0")
