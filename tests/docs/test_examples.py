# SPDX-License-Identifier: Apache-2.0
"""The programs in examples/, run as a user runs them, with fewer steps."""

import runpy
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

for library in ("jax", "equinox", "matplotlib", "optax", "safetensors", "sklearn", "tqdm"):
    pytest.importorskip(library)

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
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
    "object_graph": ["1 time, the steel being one: True", "by two bridges"],
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
    """It ends well, prints what it has found, and draws its picture at the path of --out."""
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


def test_all_examples_are_run() -> None:
    """No example is left out here."""
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(OPTIONS)


def test_einsums_are_contracted_as_opt_einsum_does() -> None:
    """Of one product, the optimizer makes the contractions that opt_einsum's own path has."""
    oe = pytest.importorskip("opt_einsum")
    example = runpy.run_path(str(EXAMPLES / "einsum_graph.py"))
    optimized = example["optimize"](example["matrices"](7))
    shapes = (7, 4, 5), (7, 5, 8), (7, 8)
    path = oe.contract_path("zij,zjk,zk->zi", *shapes, shapes=True)[1]
    found = example["einsums"](optimized)
    assert [len(node.operands) for node in found] == [2, 2]
    assert sum(map(example["operations"], found)) == path.opt_cost == 2 * 7 * (5 * 8 + 4 * 5)
    assert (type(optimized).__name__, optimized.factor) == ("Scale", 3.0)


def test_equal_contractions_of_several_terms_are_one() -> None:
    """Terms that are permutations of one another share their contractions, and cost less."""
    pytest.importorskip("opt_einsum")
    example = runpy.run_path(str(EXAMPLES / "einsum_graph.py"))
    written = example["coupled_cluster"](3, 4)
    alone = sum(int(example["best_path"](node).opt_cost) for node in example["einsums"](written))
    optimized = example["optimize"](written)
    found = example["einsums"](optimized)
    pairs = [node for node in found if len(node.operands) == 2]
    assert len({(node.subscripts, *map(id, node.operands)) for node in pairs}) == len(pairs) == 11
    assert sum(map(example["operations"], found)) < alone / 2


def test_the_residual_of_the_coupled_cluster() -> None:
    """It is what the textbook's intermediates give, written and optimized."""
    pytest.importorskip("opt_einsum")
    example = runpy.run_path(str(EXAMPLES / "einsum_graph.py"))
    written = example["coupled_cluster"](3, 4)
    t, oovv, oooo, vvvv, ovvo = example["inputs"](
        3, t=(3, 3, 4, 4), oovv=(3, 3, 4, 4), oooo=(3,) * 4, vvvv=(4,) * 4, ovvo=(3, 4, 4, 3)
    )
    t, oovv, oooo, vvvv, ovvo = (np.asarray(x.array, float) for x in (t, oovv, oooo, vvvv, ovvo))
    sum_ = np.einsum

    def antisymmetric(x: Any, *axes: tuple[int, int]) -> Any:
        for pair in axes:
            x = x - np.swapaxes(x, *pair)
        return x

    f_vv = -sum_("mnbf,mnef->be", t, oovv) / 2
    f_oo = sum_("jnef,mnef->mj", t, oovv) / 2
    w_oooo = oooo + sum_("ijef,mnef->mnij", t, oovv) / 4
    w_vvvv = vvvv + sum_("mnab,mnef->abef", t, oovv) / 4
    w_ovvo = ovvo - sum_("jnfb,mnef->mbej", t, oovv) / 2
    expected = (
        oovv
        + antisymmetric(sum_("ijae,be->ijab", t, f_vv), (2, 3))
        - antisymmetric(sum_("imab,mj->ijab", t, f_oo), (0, 1))
        + sum_("mnab,mnij->ijab", t, w_oooo) / 2
        + sum_("ijef,abef->ijab", t, w_vvvv) / 2
        + antisymmetric(sum_("imae,mbej->ijab", t, w_ovvo), (0, 1), (2, 3))
    )
    for expression in (written, example["optimize"](written)):
        got = jaxinterop.jit(example["evaluate"])(expression)
        assert np.allclose(got, expected, rtol=1e-4, atol=1e-4)


def test_the_gradient_by_the_fold() -> None:
    """It is pymbolic's own derivative, and a function that it doesn't know is refused."""
    pytest.importorskip("pymbolic")
    from pymbolic import differentiate, parse
    from pymbolic.mapper.evaluator import evaluate

    example = runpy.run_path(str(EXAMPLES / "derivatives.py"))
    expression = pydag.dag_intern(parse("(x*y + 3)**2 / (x - y*y) + x*x*x"))
    by_name = {
        v.name: v for v in pydag.dag_leaves(expression, is_leaf=is_variable) if is_variable(v)
    }
    found = example["gradient"](expression, by_name | {"z": parse("z")})
    values = {"x": 1.5, "y": -0.5}
    for name, variable in by_name.items():
        expected = evaluate(differentiate(expression, variable), values)
        assert example["evaluate"](found[name], values) == pytest.approx(expected)
    assert found["z"] == 0
    with pytest.raises(TypeError, match="no derivative of Call is known"):
        example["gradient"](parse("f(x)"), by_name)


def is_variable(node: Any) -> bool:
    return type(node).__name__ == "Variable"


def test_the_control_of_the_autoencoder() -> None:
    """The wider model has as many parameters as plain JAX makes of the one that is tied."""
    example = runpy.run_path(str(EXAMPLES / "tied_autoencoder.py"))
    make, key = example["Autoencoder"], jax.random.key(0)
    by_plain_jax = jax.tree.leaves(make(key, 64, example["HIDDEN"]))
    wider = pydag.dag_leaves(make(key, 64, example["WIDER"]))
    assert (len(by_plain_jax), len(wider)) == (5, 3)
    assert sum(x.size for x in by_plain_jax) == sum(x.size for x in wider) == 3184


def test_a_step_of_the_transformer() -> None:
    """By pydag the table stays one; by plain JAX it is two after one step, and each has moved."""
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
    """The derivative by the one table is the sum of those by two tables of equal content."""
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


def test_the_bridge_by_plain_jax() -> None:
    """Plain JAX has a body for each path: those with the weight fall, and no spring holds them."""
    example = runpy.run_path(str(EXAMPLES / "object_graph.py"))
    bridge = pydag.dag_map(jnp.float32, example["Bridge"](panels=2, lorry_at=1.0))
    slide, counts = example["slide"], example["counts"]
    held = slide(jaxinterop.jit, jaxinterop.grad, pydag.dag_map, bridge)
    fallen = slide(jax.jit, jax.grad, jax.tree.map, bridge)
    assert counts(held) == {"numbers": 25, "bodies": 6, "materials": 2}
    assert counts(fallen) == {"numbers": 46, "bodies": 12, "materials": 5}
    assert held.bodies[1] is held.hangers[0].other
    # Of weight 7, it falls by 7 times the rate in each of the steps.
    assert float(fallen.bodies[1].y) == pytest.approx(-300 * 7 * 5e-4, abs=1e-3)
    assert float(fallen.hangers[0].other.y) > -0.1
    for end in (held.cable[0].one, fallen.cable[0].one):
        assert (float(end.x), float(end.y)) == (0.0, 2.5)  # a support


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
