# SPDX-License-Identifier: Apache-2.0
"""The programs in examples/, run as a user runs them, with fewer steps."""

import runpy
import sys
from pathlib import Path

import pytest

for library in ("jax", "equinox", "matplotlib", "optax", "sklearn", "tqdm"):
    pytest.importorskip(library)

import jax
import jax.numpy as jnp

import pydag
from pydag import jaxinterop

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


def test_the_gradient_of_the_tied_transformer() -> None:
    """The derivative by the one table is the sum of those by the untied twin's two tables."""
    example = runpy.run_path(str(EXAMPLES / "tied_transformer.py"))
    windows = jnp.arange(2 * 9).reshape(2, 9) % 11
    tied, twin = (
        example["Transformer"](jax.random.key(0), 11, tied=is_tied) for is_tied in (True, False)
    )
    gradient = jaxinterop.jit(jaxinterop.grad(example["loss"]))
    ours, theirs = gradient(tied, windows), gradient(twin, windows)
    assert ours.embed is ours.unembed
    assert theirs.embed is not theirs.unembed
    expected = theirs.embed.weight + theirs.unembed.weight
    assert jnp.allclose(ours.embed.weight, expected, atol=1e-6)


def test_the_bridges_of_the_object_graph() -> None:
    """A solved bridge is in equilibrium, and its bodies are still those that its springs hold."""
    example = runpy.run_path(str(EXAMPLES / "object_graph.py"))
    bridge = jaxinterop.jit(example["settle"])(
        pydag.dag_map(jnp.float32, example["Bridge"](panels=2, lorry_at=1.0))
    )
    assert float(example["largest_force"](bridge)) < 2e-3
    cable, deck = bridge.bodies
    assert bridge.hangers[0].one is bridge.cable[0].other is bridge.cable[1].one is cable
    assert bridge.hangers[0].other is deck
    # The hanger carries what stands on the deck, and what the deck, pulled up, pulls down.
    pull = sum(spring.tension() * deck.y / spring.length() for spring in bridge.deck)
    assert float(bridge.hangers[0].tension()) == pytest.approx(7.0 + float(pull), abs=1e-2)
    assert float(cable.x) == pytest.approx(1.0, abs=1e-4)
