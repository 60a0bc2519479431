# SPDX-License-Identifier: Apache-2.0
"""`pydag.jaxinterop.save` and `load`, and `from_checkpoint`."""

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from safetensors.numpy import save_file

import pydag
import pydag.jaxinterop as pj
from pydag import SharingError
from pydag.files.save import STRUCTURE
from pydag.registry.names import class_name

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
    """It is an error, strict or not, whoever reads it: the names are a level deeper, say."""
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
    """Attributes as keys, numbers as text, whole paths as keys, a Dag."""
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
