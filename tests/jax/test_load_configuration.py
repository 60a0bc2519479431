# SPDX-License-Identifier: Apache-2.0
"""`load(like=)`: data is the file's, configuration the code's; a warning lists what differs."""

import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pydag
import pydag.files
import pydag.jaxinterop as pj

eqx = pytest.importorskip("equinox")


class Net(pj.Module):
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


class Layer(eqx.Module):  # type: ignore[misc, name-defined]  # a base class without types
    w: jax.Array
    rate: float
    size: int = eqx.field(static=True)


def told(run: Any) -> tuple[Any, list[str]]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = run()
    assert all(w.category is UserWarning and w.filename == __file__ for w in found)
    return result, [str(w.message) for w in found]


@pytest.mark.parametrize("load", [pj.load, pydag.files.load])
def test_configuration_is_the_code_s(load: Any, tmp_path: Path) -> None:
    """Numbers, flags and text of modules stay as `like` has them; one warning lists them all."""
    saved = Net(2)
    saved.w = jnp.arange(3.0)
    pj.save(tmp_path / "net.safetensors", {"net": saved, "step": 7, "scale": 0.5})
    like = {"net": Net(3, "other", np.float32(2.0)), "step": 0, "scale": 1.0}
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


def test_what_is_as_it_was_is_told_nothing_of(tmp_path: Path) -> None:
    """The same configuration, and another order of attributes or keys, are silent."""
    pj.save(tmp_path / "net.safetensors", {"net": Net(), "a": jnp.ones(2)})
    _, messages = told(
        lambda: pj.load(tmp_path / "net.safetensors", {"a": jnp.zeros(2), "net": Net()})
    )
    assert messages == []


def test_records_have_data_and_meta_fields(tmp_path: Path) -> None:
    """A record's number is the file's; its meta field is the code's, with a warning."""
    pj.save(tmp_path / "record.safetensors", [Record(3, "old")])
    loaded, messages = told(lambda: pj.load(tmp_path / "record.safetensors", [Record(5, "new")]))
    assert (loaded[0].count, loaded[0].label) == (3, "new")
    assert "tree[0].label: 'old' in the file, 'new' in the code" in messages[0]
    assert ".count" not in messages[0]


def test_equinox_modules(tmp_path: Path) -> None:
    """The numbers and static fields of an equinox module are the code's."""
    pj.save(tmp_path / "layer.safetensors", Layer(jnp.ones(2), 0.5, 2))
    like = Layer(jnp.zeros(2), 0.25, 3)
    loaded, messages = told(lambda: pj.load(tmp_path / "layer.safetensors", like))
    assert (loaded.w.tolist(), loaded.rate, loaded.size) == ([1.0, 1.0], 0.25, 3)
    assert "tree.rate: 0.5 in the file, 0.25 in the code" in messages[0]
    assert "tree.size: 2 in the file, 3 in the code" in messages[0]
