# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: orbax, files of older releases, other configuration in the code."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from safetensors.numpy import save_file

import pydag
import pydag.files
import pydag.jaxinterop as pj
from pydag.jaxinterop import Dag

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


ocp = pytest.importorskip("orbax.checkpoint")


# Orbax warns whenever nobody says where arrays should go; what a restored one says of
# itself is tested here, not what is said meanwhile.


def wide(seed: int = 0) -> dict[str, Any]:
    w = jax.random.normal(jax.random.key(seed), (128, 128))
    return {"encoder": {"w": w, "b": jnp.zeros(2)}, "decoder": {"w": w, "b": jnp.ones(2)}}


def assert_restored(model: Any) -> None:
    expected = wide()
    assert model["encoder"]["w"] is model["decoder"]["w"]
    assert pydag.dag_structure(model) == pydag.dag_structure(expected)
    for leaf, wanted in zip(pydag.dag_leaves(model), pydag.dag_leaves(expected), strict=True):
        assert leaf.tolist() == wanted.tolist()


def size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


@pytest.fixture
def checkpointer() -> Iterator[Any]:
    with ocp.StandardCheckpointer() as checkpointer:
        yield checkpointer


def written(checkpointer: Any, path: Path, tree: Any) -> Path:
    checkpointer.save(path, tree)
    checkpointer.wait_until_finished()
    return path


def test_a_dag_is_written_once(tmp_path: Path, checkpointer: Any) -> None:
    """The file is half as large as that of the plain model, and the tie comes back."""
    ours = written(checkpointer, tmp_path / "ours", Dag(wide()))
    plain = written(checkpointer, tmp_path / "plain", wide())
    assert size(ours) < 0.6 * size(plain)
    assert_restored(checkpointer.restore(ours, Dag(wide(1))).tree)


class Configured(pj.Module):
    def __init__(self, depth: int = 2, name: str = "net", eps: Any = None) -> None:
        self.w = jnp.zeros(3)
        self.depth, self.name, self.is_deep = depth, name, depth > 2
        self.rates, self.eps = {"drop": 0.25 * depth}, np.float32(1.0) if eps is None else eps
        self.inner = Inner(depth)


class Inner(pj.Module):
    def __init__(self, depth: int) -> None:
        self.b, self.power = jnp.ones(2), depth + 1


@pydag.register_fields(meta_fields=("label",))
class Record:
    def __init__(self, count: int, label: str) -> None:
        self.w, self.count, self.label = jnp.ones(2), count, label


def told(run: Any) -> tuple[Any, list[str]]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        result = run()
    assert {w.filename for w in found} == {__file__}
    return result, [str(w.message) for w in found]


@pytest.mark.parametrize("load", [pj.load, pydag.files.load])
def test_configuration_is_the_code_s(load: Any, tmp_path: Path) -> None:
    """Numbers, flags and text of modules stay as `like` has them; one warning lists them all."""
    saved = Configured(2)
    saved.w = jnp.arange(3.0)
    pj.save(tmp_path / "net.safetensors", {"net": saved, "step": 7, "scale": 0.5})
    like = {"net": Configured(3, "other", np.float32(2.0)), "step": 0, "scale": 1.0}
    loaded, messages = told(lambda: load(tmp_path / "net.safetensors", like))
    net = loaded["net"]
    assert np.asarray(net.w).tolist() == [0.0, 1.0, 2.0]
    assert (net.depth, net.name, net.is_deep, net.rates["drop"]) == (3, "other", True, 0.75)
    assert (net.eps, net.inner.power) == (2.0, 4)
    assert (loaded["step"], loaded["scale"]) == (7, 0.5)
    (message,) = messages
    for line in (
        "tree['net'].depth: 2 in the file, 3 in the code",
        "tree['net'].name: 'net' in the file, 'other' in the code",
        "tree['net'].is_deep: False in the file, True in the code",
        "tree['net'].rates['drop']: 0.5 in the file, 0.75 in the code",
        "tree['net'].inner.power: 3 in the file, 4 in the code",
        "tree['net'].eps: ",
    ):
        assert line in message


def test_records_have_data_and_meta_fields(tmp_path: Path) -> None:
    """A record's number is the file's; its meta field is the code's, with a warning."""
    pj.save(tmp_path / "record.safetensors", [Record(3, "old")])
    loaded, messages = told(lambda: pj.load(tmp_path / "record.safetensors", [Record(5, "new")]))
    assert (loaded[0].count, loaded[0].label) == (3, "new")
    assert "tree[0].label: 'old' in the file, 'new' in the code" in messages[0]
    assert ".count" not in messages[0]
