# SPDX-License-Identifier: Apache-2.0
"""`save`, `load` and `from_checkpoint`: models, training runs, checkpoints of others."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import NamedSharding
from safetensors.numpy import load_file, save_file

import pydag
import pydag.files
import pydag.jaxinterop as pj
from pydag import SharingError
from pydag.files.save import STRUCTURE
from pydag.jaxinterop import Dag
from pydag.registry.names import class_name

pytestmark = pytest.mark.filterwarnings("ignore:Sharding info not provided")

PartitionSpec: Any = jax.sharding.PartitionSpec
partial: Any = jax.tree_util.Partial


def tied(seed: int = 0) -> Any:
    w = jax.random.normal(jax.random.key(seed), (4, 2))
    return {"encoder": {"w": w, "b": jnp.zeros(2, jnp.bfloat16)}, "decoder": [w, 0.5, "text"]}


def assert_tied(model: Any) -> None:
    assert model["encoder"]["w"] is model["decoder"][0]
    assert pydag.dag_structure(model) == pydag.dag_structure(tied())
    for leaf, wanted in zip(pydag.dag_leaves(model), pydag.dag_leaves(tied()), strict=True):
        assert type(leaf) is type(wanted)
        assert not hasattr(leaf, "dtype") or leaf.dtype == wanted.dtype
        assert np.asarray(leaf).tolist() == np.asarray(wanted).tolist()


def test_round_trip(path: Path) -> None:
    """JAX's arrays come back as JAX's, shared as they were, with and without `like`."""
    pj.save(path, tied())
    assert_tied(pj.load(path))
    assert_tied(pj.load(path, tied(1)))
    assert_tied(pj.load(path, pj.jit(tied).eval_shape()))


def test_only(path: Path) -> None:
    """A part is read; elsewhere stands None, or the leaf of `like`."""
    pj.save(path, tied())
    found = pj.load(path, only="*['w']")
    assert isinstance(found["decoder"][0], jax.Array)
    assert found["encoder"]["b"] is None
    like = tied(1)
    assert pj.load(path, like, "*['b']")["decoder"][0] is like["decoder"][0]


def test_shardings(path: Path) -> None:
    """Arrays are placed as a prefix of shardings says, or as those of `like` are."""
    mesh = jax.make_mesh((1,), ("x",))
    rows = NamedSharding(mesh, PartitionSpec("x"))
    whole = NamedSharding(mesh, PartitionSpec())
    pj.save(path, tied())
    for shardings in (rows, {"encoder": rows, "decoder": rows}):
        found = pj.load(path, shardings=shardings)
        assert_tied(found)
        assert found["encoder"]["w"].sharding == rows
    like = pydag.dag_map(
        lambda x: jax.device_put(x, whole) if isinstance(x, jax.Array) else x, tied(1)
    )
    assert pj.load(path, like)["encoder"]["w"].sharding == whole
    with pytest.raises(SharingError, match="one object is both given"):
        pj.load(path, shardings={"encoder": rows, "decoder": whole})


def test_64_bits(path: Path) -> None:
    """An array that JAX would cut down is an error with its path, not other numbers."""
    pydag.files.save(path, {"a": np.ones(1)})
    with pytest.raises(ValueError, match=r"tree\['a'\] is float64.*(?s:.*)jax_enable_x64"):
        pj.load(path)


@pydag.register_fields
class Layer:
    def __init__(self, w: Any, b: Any) -> None:
        self.w, self.b = w, b


def plain(model: Any) -> Any:
    """The model as others write it: every copy, in dicts and lists."""
    encoder, (w, number, text) = model["encoder"], model["decoder"]
    return {"encoder": {k: v + 0 for k, v in encoder.items()}, "decoder": [w + 0, number, text]}


@pytest.mark.parametrize("missing", [None, "encoder", "decoder"])
def test_a_checkpoint_with_copies(missing: str | None) -> None:
    """All copies of a shared array, or one of them, fill the model, which stays tied."""
    found = plain(tied())
    if missing == "encoder":
        del found["encoder"]["w"]
    if missing == "decoder":
        found["decoder"][0] = None
    assert_tied(pj.from_checkpoint(tied(1), found))
    assert_tied(pj.from_checkpoint(pj.Dag(tied(1)), found).tree)


def test_copies_that_differ() -> None:
    """Copies that differ are an error with both names."""
    found = plain(tied())
    found["encoder"]["w"] += 1
    with pytest.raises(
        ValueError, match=r"restored\['decoder'\]\[0\].*restored\['encoder'\]\['w'\]"
    ):
        pj.from_checkpoint(tied(), found)


def test_missing_and_surplus() -> None:
    """What is missing or too much is an error, unless strict=False."""
    found = plain(tied())
    del found["encoder"]["b"]
    found["more"] = jnp.ones(1)
    with pytest.raises(ValueError, match=r"(?s)missing: encoder\.b.*surplus: restored\['more'\]"):
        pj.from_checkpoint(tied(1), found)
    like = tied(1)
    with pytest.warns(UserWarning, match="strict=False") as caught:
        again = pj.from_checkpoint(like, found, strict=False)
    assert again["encoder"]["b"] is like["encoder"]["b"]
    assert [warning.filename for warning in caught] == [__file__]
    assert str(caught[0].message).splitlines() == [
        "strict=False: the checkpoint has 1 of the 2 arrays of `like`; 1 are missing and stay as "
        "they are, 1 are surplus",
        "  missing: encoder.b",
        "  surplus: restored['more']",
    ]


def test_a_checkpoint_of_which_nothing_fits(tmp_path: Path) -> None:
    """The checkpoint is an error, strict or not, whoever reads it: names may be a level deeper."""
    save_file({"params.encoder.b": np.ones(2, np.float32)}, tmp_path / "deeper")
    for strict in (True, False):
        with pytest.raises(ValueError, match="strict=False is no help: no array fits"):
            pj.from_checkpoint(tied(1), {"params": plain(tied())}, strict)
        with pytest.raises(ValueError, match="strict=False is no help: no array fits"):
            pj.load(tmp_path / "deeper", tied(1), strict=strict)


def test_what_was_left_out_of_a_file(tmp_path: Path) -> None:
    """`pj.load` warns once at the caller's line, and is silent where everything fits."""
    pj.save(tmp_path / "m", {"a": jnp.ones(2), "b": jnp.ones(2)})
    with pytest.warns(
        UserWarning, match=r"has 1 of the 2 .*\n  missing: c\n  surplus: b$"
    ) as caught:
        pj.load(tmp_path / "m", {"a": jnp.ones(2), "c": jnp.ones(2)}, strict=False)
    assert [warning.filename for warning in caught] == [__file__]
    pj.load(tmp_path / "m", {"a": jnp.ones(2), "b": jnp.ones(2)}, strict=False)


def test_what_is_only_described_is_missing() -> None:
    """Where a checkpoint has no array orbax leaves its description, which is no value."""
    described: Any = jax.ShapeDtypeStruct  # untyped
    outline, number = described((2,), jnp.float32), described((), jnp.int32)
    like = {"a": jnp.zeros(2), "b": (b := jnp.zeros(2)), "c": b, "step": 3}
    with pytest.raises(ValueError, match=r"missing: b \(ShapeDtypeStruct alone\)\n"):
        pj.from_checkpoint(like, {"a": jnp.ones(2), "b": outline, "step": 4})
    with pytest.raises(ValueError, match=r"missing: step \(ShapeDtypeStruct alone\)\n"):
        pj.from_checkpoint(like, {"a": b, "b": b, "step": number})
    with pytest.warns(UserWarning, match="has 1 of the 2 arrays"):
        again = pj.from_checkpoint(like, {"a": jnp.ones(2), "b": outline}, strict=False)
    assert again["b"] is again["c"] is b
    again = pj.from_checkpoint(like, {"a": jnp.ones(2), "b": outline, "c": jnp.ones(2)})
    assert again["b"].tolist() == [1, 1]
    with pytest.raises(ValueError, match="missing: a"):
        pj.from_checkpoint({"a": outline}, {"a": outline})


def test_forms_of_names() -> None:
    """Attributes may be keys, numbers text, whole paths keys, and a model a Dag."""
    w, b = jnp.ones(2), jnp.zeros(3)
    layer = Layer(w + 1, b)
    like = [layer, layer]
    for restored in (
        [{"w": w, "b": b}] * 2,
        {"0": {"w": w, "b": b}},
        {"1.w": w, "0.b": b},
        {"tree[0].w": w, "tree[0].b": b},
        {"[1].w": w, "[0].b": b},
        pj.Dag([Layer(w, b)]),
    ):
        one, two = pj.from_checkpoint(like, restored)
        assert one is two
        assert (one.w.tolist(), one.b.tolist()) == ([1.0, 1.0], [0.0] * 3)


@pytest.mark.parametrize(
    "tree",
    [
        pytest.param(lambda: partial(Point, 1.0), id="Partial"),
        pytest.param(lambda: Registered(1.0, 3), id="register_dataclass"),
        pytest.param(lambda: Point(1.0), id="register_pydag_node"),
    ],
)
def test_classes_with_functions_are_refused(path: Path, tree: Any) -> None:
    """JAX's classes and ours are built where the caller names them, or has them in `like`."""
    saved = [tree()]
    cls = type(saved[0])
    try:
        pj.save(path, saved)
    except TypeError:  # the function, or the structure, is no value: by hand
        text = pydag.dag_structure(Registered(1.0, 3)).to_json()
        text = text.replace(class_name(Registered), class_name(cls))
        whole = json.dumps({"pydag": 1, "structure": json.loads(text), "leaves": [{"value": 1.0}]})
        save_file({}, path, metadata={STRUCTURE: whole})
    for load in (pj.load, pydag.files.load):
        with pytest.raises(ValueError, match=rf"at tree.*{cls.__name__}(?s:.)*=\[{cls.__name__}"):
            load(path)
    assert made == []


made: list[Any] = []


class Point:
    def __init__(self, x: Any) -> None:
        self.x = x


def build(_: Any, children: Any) -> Point:
    made.append(children)
    return Point(*children)


pydag.register_pydag_node(Point, lambda p: ((p.x,), None), build)


def test_numbers_of_a_checkpoint() -> None:
    """A checkpoint's number isn't changed to fit a model, nor put where no number stands."""
    assert pj.from_checkpoint({"n": 0}, {"n": 2**70}) == {"n": 2**70}
    for like, restored in (
        *((3, 1.9), (3, True), (0.5, 2**53 + 1), (3, np.inf), (3, 1j), (True, 1)),
        *((3, jnp.float32(7)), (3, jax.random.key(0)), ("text", 3), (3, np.ones(1))),
    ):
        with pytest.raises(ValueError, match=r"(?s)'n'\]' doesn't fit `like`|\['n'\].*doesn't fit"):
            pj.from_checkpoint({"n": like}, {"n": restored})


class Registered:
    def __init__(self, x: Any, number: int) -> None:
        self.x, self.number = x, number


jax.tree_util.register_dataclass(Registered, ("x",), ("number",))


def test_an_equinox_model_with_its_structure(path: Path) -> None:
    """Arrays, ties, numbers, flags and static fields come back, in modules of the same classes."""
    eqx: Any = pytest.importorskip("equinox")
    dropout = eqx.nn.Dropout(0.25, inference=True)
    layer = eqx.nn.Linear(2, 2, key=jax.random.key(0))
    model = eqx.nn.Sequential([layer, dropout, layer])
    pj.save(path, model)
    other = eqx.nn.Linear(2, 2, key=jax.random.key(1))
    like = eqx.nn.Sequential([other, dropout, other])
    parts = (eqx.nn.Sequential, eqx.nn.Linear, eqx.nn.Dropout)
    with pytest.raises(ValueError, match=r"classes=\[Sequential, Linear, Dropout\]"):
        pj.load(path)
    for found in (
        pj.load(path, classes=parts),
        pj.load(path, like),
        pydag.files.load(path, classes=parts),
    ):
        assert type(found) is eqx.nn.Sequential
        assert found.layers[0] is found.layers[2]
        assert (found.layers[1].p, found.layers[1].inference) == (0.25, True)
        assert (found.layers[0].in_features, found.layers[0].use_bias) == (2, True)
        assert np.asarray(found.layers[0].weight).tolist() == layer.weight.tolist()
        assert pydag.dag_structure(found) == pydag.dag_structure(model)
    spec = pydag.dag_structure(model)
    assert pydag.PyDagSpec.from_json(spec.to_json()) == spec


def test_a_directory(tmp_path: Path) -> None:
    """JAX's arrays are written shard by shard, and come back tied, placed, with their kinds."""
    model = {"embed": jnp.arange(6.0), "layers": [jnp.ones(6), jnp.zeros(6, jnp.bfloat16)]}
    run = {"model": model | {"head": model["embed"]}, "key": jax.random.key(7), "step": 3}
    pj.save(tmp_path / "run", run, shard_size=24)
    assert len(list((tmp_path / "run").glob("*.safetensors"))) == 4
    like = jax.tree.map(lambda x: x, run) | {"key": jax.random.key(0), "step": 0}
    like["model"]["head"] = like["model"]["embed"]
    for found in (pj.load(tmp_path / "run"), pj.load(tmp_path / "run", like)):
        assert found["model"]["embed"] is found["model"]["head"]
        assert found["model"]["layers"][1].dtype == jnp.bfloat16
        assert jax.random.key_data(found["key"]).tolist() == [0, 7]
        assert found["step"] == 3


@pydag.register_module
class Net:
    """A tied weight, a bias that is weakly typed, a frozen part, and configuration."""

    def __init__(self, start: float) -> None:
        self.w = self.tied = start * jnp.arange(1.0, 4.0)
        self.bias, self.seen = jnp.asarray(start), jnp.int32(0)
        self.rate, self.depth, self.name = 0.5, 2, "net"

    def __call__(self, x: Any, key: jax.Array) -> Any:
        for _ in range(self.depth):
            x = jnp.tanh(x * self.w) + self.bias
        return jnp.sum(x * self.tied * jax.random.bernoulli(key, self.rate, x.shape))


OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "adamw": lambda: optax.adamw(0.1, mask=pj.mask(Net(1.0), "w")),
    "chain": lambda: optax.chain(optax.clip_by_global_norm(1.0), optax.adam(0.1)),
    "several": lambda: optax.multi_transform(
        {"slow": optax.sgd(0.01), "fast": optax.adam(0.1)},
        lambda params: {name: "slow" if name == "tied" else "fast" for name in params},
    ),
    "multi-step": lambda: optax.MultiSteps(optax.adam(0.1), 2),
    "plateau": lambda: optax.chain(optax.adam(0.1), optax.contrib.reduce_on_plateau()),
}


def start(optimizer: Any, scale: float, seed: int) -> dict[str, Any]:
    model = Net(scale)
    return {
        "model": model,
        "optimizer": optimizer.init(model),
        "key": jax.random.key(seed),
        "step": 0,
        "best": np.inf,
    }


def trained(run: dict[str, Any], optimizer: Any, steps: int) -> dict[str, Any]:
    @pj.jit
    def step(model: Any, state: Any, key: jax.Array) -> tuple[Any, ...]:
        key, now = jax.random.split(key)
        value, gradient = pj.value_and_grad(lambda net: net(0.5, now))(model)
        updates, state = optimizer.update(gradient, state, model, value=value)
        return pj.apply_updates(model, updates), state, key, value

    for _ in range(steps):
        model, state, key, value = step(run["model"], run["optimizer"], run["key"])
        best = min(run["best"], float(value))
        run = {
            "model": model,
            "optimizer": state,
            "key": key,
            "step": run["step"] + 1,
            "best": best,
        }
    return run


def contents(run: Any) -> list[Any]:
    """All data of a run, bit for bit, with types."""
    found = []
    for leaf in jax.tree.leaves(run):
        is_key = hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        array = np.asarray(jax.random.key_data(leaf) if is_key else leaf)
        found.append((type(leaf), array.dtype, array.tobytes(), getattr(leaf, "weak_type", None)))
    return found


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_resumed_run_is_the_run(name: str, tmp_path: Path) -> None:
    """The run is bit for bit the one that wasn't stopped, weak types and all."""
    optimizer = pj.optimizer(OPTIMIZERS[name](), wrt=["*w", "*bias"])
    half = trained(start(optimizer, 0.3, 1), optimizer, 3)
    pj.save(tmp_path / "run", half)
    again = pj.load(tmp_path / "run", start(optimizer, 0.7, 2))
    assert contents(again) == contents(half)
    assert (again["step"], again["model"].w is again["model"].tied) == (3, True)
    structures: list[Any] = [jax.tree.structure(again), jax.tree.structure(half)]
    assert structures[0] == structures[1]
    whole, resumed = trained(half, optimizer, 3), trained(again, optimizer, 3)
    assert contents(resumed) == contents(whole)
    assert pj.tree.structure(resumed) == pj.tree.structure(whole)


def test_each_array_is_written_once(tmp_path: Path) -> None:
    """Across the model, the state and whatever else holds it."""
    optimizer = pj.optimizer(optax.adam(0.1))
    run = start(optimizer, 0.5, 0)
    run["average"] = run["model"]
    run["dag"] = pj.Dag(run["model"])
    pj.save(tmp_path / "run", run)
    names = set(load_file(tmp_path / "run"))
    assert len([name for name in names if name.endswith(".tied") and "optimizer" not in name]) == 1
    assert {"optimizer.0.mu.tied", "optimizer.0.nu.tied", "optimizer.0.count", "key"} <= names
    other = start(optimizer, 0.1, 0)
    other |= {"average": other["model"], "dag": pj.Dag(other["model"])}
    again = pj.load(tmp_path / "run", other)
    assert again["average"] is again["model"]
    assert type(again["dag"]) is pj.Dag
    assert again["dag"].tree.w is again["model"].w


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_keys(impl: str, tmp_path: Path) -> None:
    """Typed keys of any shape come back as such, with `like` and without."""
    tree = {"keys": jax.random.split(jax.random.key(3, impl=impl), 4)}
    pj.save(tmp_path / "keys", tree)
    outlines = jax.eval_shape(lambda: tree)
    others = {"keys": jax.random.split(jax.random.key(0, impl=impl), 4)}
    for again in (
        pj.load(tmp_path / "keys"),
        pj.load(tmp_path / "keys", outlines),
        pj.load(tmp_path / "keys", others),
    ):
        assert again["keys"].dtype == tree["keys"].dtype
        assert (jax.random.key_data(again["keys"]) == jax.random.key_data(tree["keys"])).all()


def test_refs(tmp_path: Path) -> None:
    """The content is written once; what comes back is one fresh ref."""
    ref = jax.new_ref(jnp.ones(2))
    pj.save(tmp_path / "refs", {"a": ref, "b": ref})
    like = {"a": jax.new_ref(jnp.zeros(2))}
    like["b"] = like["a"]
    for again in (
        pj.load(tmp_path / "refs"),
        pj.load(tmp_path / "refs", like),
    ):
        assert again["a"] is again["b"]
        assert again["a"] is not ref
        assert again["a"][...].tolist() == [1.0, 1.0]
    assert like["a"][...].tolist() == [0.0, 0.0]
    arrays = {"a": jnp.zeros(2)}
    arrays["b"] = arrays["a"]
    assert pj.load(tmp_path / "refs", arrays)["a"].tolist() == [1.0, 1.0]


def test_structure_false_leaves_out_configuration_alone(tmp_path: Path) -> None:
    """Functions and the numbers of modules; a number that is data is refused with its path."""
    net: Any = Net(1.0)
    net.act = jnp.tanh
    path = tmp_path / "run"
    pj.save(path, {"net": net, "step": jnp.int32(7)}, structure=False)
    like: dict[str, Any] = {"net": Net(0.0), "step": jnp.int32(0)}
    like["net"].act = jnp.tanh
    again = pj.load(path, like)
    assert (again["net"].w.tolist(), int(again["step"])) == ([1.0, 2.0, 3.0], 7)
    with pytest.raises(TypeError, match=r"^tree\['step'\] is data, the number 7"):
        pj.save(path, {"net": net, "step": 7}, structure=False)
    with pytest.raises(TypeError, match=r"at tree\['net'\]\.act"):
        pj.save(path, {"net": net, "step": 7})


@pydag.register_module
class Unsorted:
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
    run = pj.load(tmp_path / "run", run_of(Unsorted(0.0)))
    assert run["model"].embed is run["model"].head
    assert pj.tree.structure(run) == pj.tree.structure(run_of(Unsorted(0.0)))
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
    with pytest.importorskip("orbax.checkpoint").StandardCheckpointer() as checkpointer:
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
