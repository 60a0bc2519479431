# SPDX-License-Identifier: Apache-2.0
"""Arrays that are one memory are one array in a file; those that overlap are refused."""

from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
safetensors = pytest.importorskip("safetensors")
from safetensors.numpy import load_file

import pydag
from pydag.files import load, save
from pydag.files.header import STRUCTURE


@pytest.fixture
def w() -> Any:
    return np.arange(12, dtype=np.float32).reshape(4, 3)


def aliases(path: Path) -> dict[str, str]:
    with safetensors.safe_open(path, framework="np") as file:
        return {k: v for k, v in file.metadata().items() if k != STRUCTURE}


def test_views_of_one_memory_are_one_array(path: Path, w: Any) -> None:
    """Views with one address, type, shape and strides are written once, and loaded as one."""
    save(path, {"embed": w, "layers": [w + 1, w[:]], "head": w.view()})
    assert sorted(load_file(path)) == ["embed", "layers.0"]
    assert aliases(path) == {"head": "embed", "layers.1": "embed"}
    found = load(path)
    assert found["embed"] is found["head"] is found["layers"][1]
    assert found["head"].tolist() == w.tolist()


def test_views_without_structure(path: Path, w: Any) -> None:
    """Without the structure the table of aliases says it, and `like` takes it."""
    save(path, {"a": w, "b": w[:]}, structure=False)
    assert aliases(path) == {"b": "a"}
    found = load(path)
    assert found["a"] is found["b"]
    like = {"a": (zeros := np.zeros_like(w)), "b": zeros[:]}
    filled = load(path, like)
    assert filled["a"] is filled["b"]
    assert filled["b"].tolist() == w.tolist()


def test_the_sharing_of_other_objects_stays(path: Path, w: Any) -> None:
    """Where views become one leaf, shared containers and leaves beside them stay shared."""
    layer = {"w": w[:], "b": (bias := np.zeros(2))}
    save(path, [[bias, w], layer, layer, {"w": w, "n": 1}])
    (one, other), first, second, last = load(path)
    assert first is second
    assert first["b"] is one
    assert first["w"] is other is last["w"]
    assert last["n"] == 1
    assert sorted(load_file(path)) == ["0.0", "0.1"]


def test_identity_of_nodes_wins(path: Path, w: Any) -> None:
    """With identity="nodes" memory isn't looked at: an array is written for each place."""
    save(path, [w, w[:], w[1:]], identity="nodes")
    assert sorted(load_file(path)) == ["0", "1", "2"]


def test_arrays_without_elements_are_never_aliases(path: Path) -> None:
    """Empty arrays are as many as there are objects, wherever they lie."""
    base = np.zeros((2, 3))
    empty = base[:0]
    save(path, [empty, base[:0], base, empty])
    assert sorted(load_file(path)) == ["0", "1", "2"]
    found = load(path)
    assert found[0] is found[3] is not found[1]


@pytest.mark.parametrize(
    "view",
    [
        *(lambda w: w.T, lambda w: w[1:], lambda w: w[::2], lambda w: w[:, 1], lambda w: w[::-1]),
        *(lambda w: w.reshape(-1), lambda w: w.view(np.int32), lambda w: w.view(">f4")),
        *(lambda w: np.broadcast_to(w[:1, :1], w.shape), lambda w: w[3, 2:]),
    ],
)
def test_overlap_is_refused(path: Path, w: Any, view: Any) -> None:
    """Arrays that share bytes and aren't one are an error with both names; nothing is written."""
    path.write_bytes(b"old")
    with pytest.raises(ValueError, match=r"(?s)'a\.x'.*'b'.*\.copy\(\).*\.clone\(\)"):
        save(path, {"a": {"x": w}, "b": view(w)})
    assert path.read_bytes() == b"old"
    assert [found.name for found in path.parent.iterdir()] == [path.name]


def test_disjoint_parts_of_a_buffer(path: Path) -> None:
    """Parts that share no byte are arrays of their own, also where they are interleaved."""
    x = np.arange(24.0)
    table = np.arange(24.0).reshape(4, 6)
    parts = [x[:3], x[3:5], x[5::2], x[6::2], table[:, :2], table[:, 2:5], table[:, 5]]
    save(path, parts)
    assert len(load_file(path)) == len(parts)
    assert [y.tolist() for y in load(path)] == [y.tolist() for y in parts]


def test_many_interleaved_parts(path: Path) -> None:
    """A thousand columns of one matrix are a thousand arrays; one twice is an alias."""
    table = np.arange(4000.0).reshape(4, 1000)
    save(path, [table[:, i] for i in range(1000)] + [table[:, 7]])
    assert len(load_file(path)) == 1000
    assert aliases(path) == {"1000": "7"}
    with pytest.raises(ValueError, match=r"'7'.*\n.*'1000'"):
        save(path, [table[:, i] for i in range(1000)] + [table[1:, 7]])


def test_a_dimension_of_one_has_no_step(path: Path) -> None:
    """Strides along dimensions of one say nothing."""
    w = np.ones((4, 1, 3))
    odd = np.lib.stride_tricks.as_strided(w, w.shape, (24, 8, 8))
    save(path, [w, odd])
    assert sorted(load_file(path)) == ["0"]


def test_names_of_a_state_dict(path: Path, w: Any) -> None:
    """A key of text stands in a name as it is, dots included."""
    save(path, {"model": {"a.b": w}, "lm_head.weight": w[:], "x": {"y": {"c.d": [w + 1]}}})
    assert sorted(load_file(path)) == ["lm_head.weight", "x.y.c.d.0"]
    assert aliases(path) == {"model.a.b": "lm_head.weight"}


def test_names_that_two_leaves_would_have(path: Path, w: Any) -> None:
    """The second of two paths with one name is written as Python text; each finds its own."""
    tree = {"a": {"b": w}, "a.b": w + 1, "z": {"__metadata__": w + 2}, STRUCTURE: w + 3}
    save(path, tree)
    assert sorted(load_file(path)) == [
        *("['a.b']", f"['{STRUCTURE}']", "a.b", "z.__metadata__"),
    ]
    for given in (tree, {**tree, "more": 1}):
        found = load(path, given, strict=False)
        assert found["a"]["b"].tolist() == w.tolist()
        assert found["a.b"].tolist() == (w + 1).tolist()
    save(path, {"__metadata__": w})
    assert list(load_file(path)) == ["['__metadata__']"]


@pytest.mark.parametrize("swapped", [False, True])
def test_aliases_that_two_paths_would_have(path: Path, w: Any, swapped: bool) -> None:
    """An alias has the dotted name only if that name leads to it."""
    p, q = w, w + 1
    tree = {"0": [q, p] if swapped else [p, q], "a": {"b": p}, "a.b": q}
    save(path, tree, structure=False)
    like = pydag.dag_map(np.zeros_like, tree)
    found = load(path, like)
    assert found["a"]["b"].tolist() == p.tolist()
    assert found["a.b"].tolist() == q.tolist()


@pydag.register_fields
class Fields:
    def __init__(self, w: Any) -> None:
        self.w = w


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("layers.0.w", Fields),
        ("layers.0.w", lambda w: {"w": w}),
        ("['layers.0'].w", Fields),
        ("['layers.0']['w']", lambda w: {"w": w}),
    ],
)
def test_old_and_new_names_of_dotted_keys(path: Path, w: Any, name: str, make: Any) -> None:
    """`load` finds an array under the dotted name, and under the one of older files."""
    safetensors.numpy.save_file({name: w}, path)
    like = {"layers": {"1": (zeros := np.zeros_like(w))}, "layers.0": make(zeros)}
    found = load(path, like)
    assert found["layers"]["1"].tolist() == w.tolist()
    assert pydag.dag_structure(found) == pydag.dag_structure(like)
