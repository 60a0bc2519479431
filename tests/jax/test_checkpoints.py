# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of others, and files of older releases, read into a training run."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from safetensors.numpy import save_file

import pydag
import pydag.jaxinterop as pj

pytestmark = pytest.mark.filterwarnings("ignore:Sharding info not provided")


@pydag.register_module
class Net:
    """A tied weight, and a list in a dict with keys that can't be sorted."""

    def __init__(self, scale: float) -> None:
        self.head = self.embed = jnp.full(2, scale)
        self.parts = {"a.b": [jnp.full(1, 2 * scale)], 3: jnp.full(1, 3 * scale)}


def run_of(model: Any) -> dict[str, Any]:
    return {"model": model, "state": pj.optimizer(optax.adam(0.1)).init(model)}


def test_moments_written_as_models_are_read(tmp_path: Path) -> None:
    """Older releases wrote the moments of an optimizer as trees like the model, ties and all."""
    arrays = {"state.0.count": np.array(7, np.int32)}
    aliases = {"model.head": "model.embed"}
    for number, root in enumerate(("model", "state.0.mu", "state.0.nu")):
        first, *steps = root.split(".")
        python = f"['{first}']" + "".join(f"[{s}]" if s == "0" else f".{s}" for s in steps)
        scale = np.float32(10 * number + 1)
        arrays[f"{root}.embed"] = np.full(2, scale)
        arrays[f"{root}.parts.a.b.0"] = np.full(1, 2 * scale)
        arrays[f"{python}.parts[3]"] = np.full(1, 3 * scale)
        aliases[f"{root}.head"] = f"{root}.embed"
    save_file(arrays, tmp_path / "run", aliases)
    run = pj.load(tmp_path / "run", run_of(Net(0.0)))
    assert run["model"].embed is run["model"].head
    assert pj.tree.structure(run) == pj.tree.structure(run_of(Net(0.0)))
    state = run["state"][0]
    assert [run["model"].embed[0], state.mu["embed"][0], state.nu["embed"][0]] == [1, 11, 21]
    assert [state.mu["parts"]["a.b"][0][0], state.nu["parts"]["3"][0]] == [22, 63]
    assert state.count == 7


def test_a_run_that_orbax_restores_without_a_target(tmp_path: Path) -> None:
    """A key is a whole path, through the state of an optimizer and an inner Dag, too."""
    ocp = pytest.importorskip("orbax.checkpoint")
    run = run_of({"embed": (w := jnp.ones((2, 2))), "head": w}) | {"average": pj.Dag([w + 1])}
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "run", pj.Dag(run))
        checkpointer.wait_until_finished()
        restored = checkpointer.restore(tmp_path / "run")
    assert len(restored) == 5
    zeros = pj.tree.map(jnp.zeros_like, run)
    again = pj.from_checkpoint(zeros, restored)
    assert again["model"]["embed"] is again["model"]["head"]
    assert again["average"].tree[0][0, 0] == 2
    assert all(jax.tree.leaves(jax.tree.map(np.array_equal, again, run)))


@pytest.mark.parametrize("kind", ["state", "pure", "with value", "paths", "flat"])
def test_states_and_pure_dicts_of_nnx(kind: str) -> None:
    """A Variable is found with `value` at the end of its path and without."""
    nnx = pytest.importorskip("flax.nnx")

    class Model(nnx.Module):  # type: ignore[misc, name-defined]  # untyped base
        def __init__(self, seed: int) -> None:
            self.head = self.embed = nnx.Embed(4, 2, rngs=nnx.Rngs(seed))

    model = Model(0)
    pure = nnx.to_pure_dict(nnx.state(model))
    [array] = jax.tree.leaves(pure)
    restored = {
        "state": nnx.state(model),
        "pure": pure,
        "with value": {"embed": {"embedding": {"value": array}}},
        "paths": {"tree.head.embedding.value": array},
        "flat": {("head", "embedding"): array},
    }[kind]
    again = pj.from_checkpoint(Model(1), restored)
    assert again.embed is again.head
    assert again.embed.embedding[...] is array


def test_a_misfit_says_what_to_do() -> None:
    """Without options that `from_checkpoint` doesn't have."""
    with pytest.raises(ValueError, match="saved, or cast and reshape what was restored") as caught:
        pj.from_checkpoint({"a": jnp.ones(1)}, {"a": jnp.ones(3)})
    assert "only=" not in str(caught.value)


def test_a_module_of_nnx_is_saved_without_its_structure(tmp_path: Path) -> None:
    """Which can't be written: the error names the reason and the way to read it."""
    nnx = pytest.importorskip("flax.nnx")
    model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
    message = r"structure=False\) writes arrays alone, for load\(\.\.\., like=\)"
    with pytest.raises(TypeError, match=message):
        pj.save(tmp_path / "model", model)
    pj.save(tmp_path / "model", model, structure=False)
    again = pj.load(tmp_path / "model", nnx.Linear(2, 2, rngs=nnx.Rngs(1)))
    assert np.array_equal(again.kernel[...], model.kernel[...])
