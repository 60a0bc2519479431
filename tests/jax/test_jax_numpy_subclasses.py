"""Subclasses of NumPy's arrays: whether JAX takes one for an array depends on its dtype."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from pydag import jaxinterop

FLOATS = np.array([1.0, 2.0], np.float32)
TEXTS = np.array(["a", "b"])


class Scalar(np.float32):
    """Made before any test runs: jaxlib keeps what it saw of a class under the class's address.

    A class at the address of one of arrays that is gone is then read as an array.
    """


def subclass() -> Any:
    """A class that pydag has never seen."""
    return type("Sub", (np.ndarray,), {})


def memory_map(values: Any, path: Path) -> Any:
    array = np.memmap(path, values.dtype, "w+", shape=values.shape)
    array[:] = values
    return array


def record(values: Any) -> Any:
    return values.view(np.recarray)


@pytest.mark.parametrize("text_first", [True, False])
def test_each_array_is_asked_whatever_came_first(text_first: bool) -> None:
    """An array of floats is differentiated by, and one of text is not, whichever came first."""
    cls = subclass()
    floats, texts = FLOATS.view(cls), TEXTS.view(cls)

    def of_text() -> None:
        with pytest.raises(TypeError, match="is an array of"):
            jaxinterop.jit(lambda tree: tree["x"])({"x": texts})

    def of_floats() -> None:
        gradient = jaxinterop.grad(lambda tree: (tree["x"] ** 2).sum())({"x": floats})
        np.testing.assert_array_equal(gradient["x"], [2.0, 4.0])
        np.testing.assert_array_equal(jaxinterop.jit(lambda t: 2 * t["x"])({"x": floats}), [2, 4])

    steps = [of_text, of_floats, of_text, of_floats]
    for step in steps if text_first else steps[1:]:
        step()


def test_a_memory_map_is_trained_after_one_of_text(tmp_path: Path) -> None:
    """A memory map of floats is a parameter, even if one of text came before."""
    texts = memory_map(np.array([b"a", b"b"]), tmp_path / "texts")
    with pytest.raises(TypeError, match="is an array of"):
        jaxinterop.jit(lambda tree: tree)({"names": texts})
    params = {"b": jnp.ones(2), "w": memory_map(np.ones(2, np.float32), tmp_path / "floats")}
    optimizer = jaxinterop.optimizer(optax.sgd(0.1))
    gradient = jaxinterop.grad(lambda p: (p["w"] * 2 * p["b"]).sum())(params)
    updates, _ = optimizer.update(gradient, optimizer.init(params), params)
    trained = jaxinterop.apply_updates(params, updates)
    np.testing.assert_allclose(trained["w"], [0.8, 0.8], rtol=1e-6)
    np.testing.assert_allclose(trained["b"], [0.8, 0.8], rtol=1e-6)


def test_a_record_array_is_asked_by_its_dtype() -> None:
    """A record array with one plain dtype is an array, one with fields is not."""
    fields = np.array([(1, 2.0)], [("a", "i4"), ("b", "f4")])
    with pytest.raises(TypeError, match="is an array of"):
        jaxinterop.tree.leaves({"x": record(fields)})
    (leaf,) = jaxinterop.tree.leaves({"x": record(FLOATS)})
    np.testing.assert_array_equal(leaf, FLOATS)


def test_a_scalar_of_a_subclass() -> None:
    """A scalar of a subclass of NumPy's scalars is traced as JAX traces it."""
    value = Scalar(1.5)
    assert float(jaxinterop.jit(lambda x: x * 2)(value)) == float(jax.jit(lambda x: x * 2)(value))


def test_a_class_that_jax_was_taught_is_asked_for_each_instance() -> None:
    """Where somebody taught JAX a class of arrays, JAX's answer for each instance counts."""
    known: Any = pytest.importorskip("jax._src.core").pytype_aval_mappings

    class Packed:
        def __init__(self, value: Any) -> None:
            self.value = value

    def described(packed: Any) -> Any:
        if isinstance(packed.value, str):
            raise TypeError("no array")
        return jax.core.ShapedArray(packed.value.shape, packed.value.dtype)

    known[Packed] = described
    try:
        with pytest.raises(TypeError, match="Packed, a class that is not registered"):
            jaxinterop.tree.leaves([Packed("text")])
        assert len(jaxinterop.tree.leaves([Packed(FLOATS)])) == 1
    finally:
        del known[Packed]


@pytest.mark.parametrize("dtype", [object, [("name", "i4"), ("held", object)]])
def test_arrays_of_objects(dtype: Any) -> None:
    """An array of objects, or of records with objects, is refused, also if it is of a subclass."""
    for array in (np.empty(1, dtype), np.empty(1, dtype).view(subclass())):
        with pytest.raises(TypeError, match=r"args\[0\]\['x'\] is an array of objects"):
            jaxinterop.grad(lambda t: t["w"].sum())({"w": jnp.ones(2), "x": array})
