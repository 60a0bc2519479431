# SPDX-License-Identifier: Apache-2.0
"""The programs in examples/, run as a user runs them, with fewer steps."""

import runpy
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

for library in ("jax", "equinox", "matplotlib", "optax", "safetensors", "sklearn", "tqdm"):
    pytest.importorskip(library)

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

import pydag
from pydag import jaxinterop

pytestmark = pytest.mark.once
EXAMPLES = Path(__file__).parents[2] / "examples"
OPTIONS = {
    "derivatives": ["--steps", "3"],
    "doctor": ["--layers", "2"],
    "einsum_graph": ["--occupied", "2", "--virtual", "3", "--channels", "4"],
    "object_graph": ["--places", "3", "--panels", "4"],
    "one_step": ["--steps", "10"],
    "stateful": ["--steps", "4"],
    "tied_autoencoder": ["--steps", "20"],
    "tied_transformer": ["--steps", "4"],
    "train": ["--steps", "6"],
}
SAYS = {
    "derivatives": ["pymbolic", "and from finite differences", "prey at the end by hunt"],
    "doctor": ["1 error", "stored again", "is lm_head.weight, as before"],
    "einsum_graph": ["as it is written", "opt_einsum, by terms", "optimized", "dot_general"],
    "object_graph": ["1 time, the steel being one: True", "by two bridges", "in motion"],
    "one_step": ["NNX      3.81", "the losses agree: True"],
    "stateful": ["right, held out", "the change is lost", "only one reference to a mutable array"],
    "tied_autoencoder": ["reconstruction error", "refused", "one, the sum", "of its error"],
    "tied_transformer": ["held out", "one table", "% apart"],
    "train": ["one table: True", "moments for it: 2", "resumed bit for bit: True"],
}
NEEDS = {"derivatives": "pymbolic", "einsum_graph": "opt_einsum", "one_step": "flax"}


@pytest.fixture(autouse=True)
def _forget_pymbolic() -> Iterator[None]:
    """The example registers classes that outlive it, and may be run again."""
    yield
    if "pymbolic.primitives" in sys.modules:
        for name in ("Sum", "Product", "Quotient", "Power", "Variable"):
            with suppress(ValueError):  # not registered
                pydag.unregister_pydag_node(getattr(sys.modules["pymbolic.primitives"], name))


def run(name: str, monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    pytest.importorskip(NEEDS.get(name, "pydag"))
    monkeypatch.setattr(sys, "argv", [name, *options])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")


@pytest.mark.parametrize("name", OPTIONS)
def test_it_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The example ends well, prints what it found, and draws its picture at the path of --out."""
    draws_views, draws = name == "einsum_graph", name not in ("one_step", "train")
    picture = tmp_path / "folder" / ("picture.html" if draws_views else "picture.png")
    run(name, monkeypatch, *OPTIONS[name], *(["--out", str(picture)] if draws else []))
    said = capsys.readouterr().out
    drawn = [picture] if draws else []
    if draws_views:
        drawn = [picture.with_stem(f"picture_{when}") for when in ("before", "after")]
    for words in (*SAYS[name], *map(str, drawn)):
        assert words in said
    for path in drawn:
        assert path.read_bytes().startswith(b"<!DOCTYPE html>" if draws_views else b"\x89PNG")
    if name == "object_graph":
        assert picture.with_suffix(".gif").read_bytes().startswith(b"GIF89a")


def test_all_examples_are_run() -> None:
    """No example is left out here."""
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(OPTIONS)


def test_a_step_of_the_transformer() -> None:
    """The table stays one with pydag; with plain JAX it is two after one step, and each moved."""
    example = runpy.run_path(str(EXAMPLES / "tied_transformer.py"))
    windows = jnp.arange(2 * 9).reshape(2, 9) % 11
    stepped = {}
    for way in ("step_of_jax", "step_of_pydag"):
        model = example["Transformer"](jax.random.key(0), 11)
        assert model.embed is model.unembed
        start, step = example[way](optax.adamw(1e-3))
        stepped[way], _, loss = step(model, start(model), windows)
        assert float(loss) > 0
    assert stepped["step_of_pydag"].embed is stepped["step_of_pydag"].unembed
    assert float(example["apart"](stepped["step_of_pydag"])) == 0
    assert stepped["step_of_jax"].embed is not stepped["step_of_jax"].unembed
    assert float(example["apart"](stepped["step_of_jax"])) > 0.01


def test_the_gradient_of_the_tied_transformer() -> None:
    """The derivative for one table is the sum of those for two tables of equal content."""
    example = runpy.run_path(str(EXAMPLES / "tied_transformer.py"))
    windows = jnp.arange(2 * 9).reshape(2, 9) % 11
    tied = example["Transformer"](jax.random.key(0), 11)
    untied = eqx.tree_at(lambda m: m.unembed, tied, eqx.nn.Embedding(weight=tied.embed.weight + 0))
    gradient = jaxinterop.jit(jaxinterop.grad(example["loss"]))
    ours, theirs = gradient(tied, windows), gradient(untied, windows)
    assert ours.embed is ours.unembed
    assert theirs.embed is not theirs.unembed
    expected = theirs.embed.weight + theirs.unembed.weight
    assert jnp.allclose(ours.embed.weight, expected, atol=1e-6)
