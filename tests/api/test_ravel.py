# SPDX-License-Identifier: Apache-2.0
"""One flat array for the distinct leaves: each tied array once, and tied again on the way back."""

import importlib
from typing import Any

import pytest

import pydag


class Library:
    """What the tests need of an array library and of its `dag_ravel`."""

    def __init__(self, name: str) -> None:
        pytest.importorskip(name)
        self.ours: Any = importlib.import_module(f"pydag.integrations.{name}")
        self.theirs: Any = importlib.import_module(f"optree.integrations.{name}")
        module: Any = importlib.import_module({"jax": "jax.numpy"}.get(name, name))
        self.make: Any = module.tensor if name == "torch" else module.asarray
        self.float16, self.float32 = module.float16, module.float32


@pytest.fixture(params=["numpy", "jax", "torch"])
def library(request: pytest.FixtureRequest) -> Library:
    return Library(request.param)


def test_a_tied_array_is_in_it_once(library: Library) -> None:
    """Distinct leaves one after the other, in first-visit order; the way back ties again."""
    w, b = library.make([1.0, 2.0]), library.make([[3.0], [4.0]])
    tree = {"decoder": [w, b], "encoder": (w, {"b": b}), "z": library.make(5.0)}
    flat, unravel = library.ours.dag_ravel(tree)
    assert flat.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    back = unravel(2 * flat)
    assert pydag.dag_structure(back) == pydag.dag_structure(tree)
    assert back["encoder"][0] is back["decoder"][0]
    assert back["encoder"][1]["b"].tolist() == [[6.0], [8.0]]
    assert back["z"].shape == ()
    assert unravel != flat.shape


def test_dtypes_come_back(library: Library) -> None:
    """Arrays of several dtypes become one of the common dtype, and what they were again."""
    tree = [library.make([1, 2], dtype=library.float16), library.make([3], dtype=library.float32)]
    flat, unravel = library.ours.dag_ravel(tree)
    assert flat.dtype == library.float32
    assert [x.dtype for x in unravel(flat)] == [library.float16, library.float32]
    with pytest.raises(ValueError, match="dtype"):
        unravel(library.make([1, 2, 3], dtype=library.float16))


def test_without_sharing_it_is_optrees(library: Library) -> None:
    """The array, the tree that comes back and the refusals are the same."""
    trees: list[Any] = [[], {"b": library.make([1.0, 2.0]), "a": [library.make([[3.0]])]}]
    for tree in trees:
        flat, unravel = library.ours.dag_ravel(tree)
        theirs, back = library.theirs.tree_ravel(tree)
        assert flat.tolist() == theirs.tolist()
        assert flat.dtype == theirs.dtype
        assert str(unravel(flat)) == str(back(flat))
        texts = []
        for restore in (unravel, back):
            with pytest.raises(ValueError, match="expected") as caught:
                restore(library.make([1.0] * 9))
            texts.append(str(caught.value))
        assert texts[0] == texts[1]


def test_values_count_at_each_occurrence() -> None:
    """Numbers have no identity; NumPy takes them as leaves."""
    numpy = Library("numpy")
    n = [1.0, 2.0]
    flat, unravel = numpy.ours.dag_ravel([n, n, 3.0, 3.0])
    assert flat.tolist() == [1.0, 2.0, 3.0, 3.0]
    assert unravel(flat)[0] is unravel(flat)[1] or unravel(flat)[0][0] == 1.0


def test_gradients_of_a_flat_function() -> None:
    """JAX differentiates through the way back: a tied array's gradient is the sum over its uses."""
    jax = pytest.importorskip("jax")
    library = Library("jax")
    w = library.make([2.0, 3.0])
    flat, unravel = library.ours.dag_ravel({"encoder": w, "decoder": w})

    def loss(flat: Any) -> Any:
        tree = unravel(flat)
        return (tree["encoder"] * tree["decoder"]).sum()

    assert jax.jit(jax.grad(loss))(flat).tolist() == [4.0, 6.0]


def test_configuration_is_no_parameter() -> None:
    """JAX's: numbers of modules, text and functions are not in the array, and come back as is."""
    jnp = pytest.importorskip("jax.numpy")
    dag_ravel = Library("jax").ours.dag_ravel

    @pydag.register_module
    class Positive:
        def __init__(self, raw: float, depth: int = 2) -> None:
            self.raw, self.lower, self.depth = jnp.asarray(raw), 1.0, depth
            self.act, self.name = jnp.tanh, "positive"

    tied = Positive(0.5)
    flat, unravel = dag_ravel({"a": tied, "b": tied, "step": 3.0})
    assert flat.tolist() == [0.5, 3.0]
    back = unravel(flat + 1)
    assert back["a"] is back["b"]
    assert (back["a"].raw, back["step"]) == (1.5, 4.0)
    assert (back["a"].lower, back["a"].depth, back["a"].act) == (1.0, 2, jnp.tanh)
    assert dag_ravel(Positive(0.5))[1] == dag_ravel(Positive(1.5))[1]
    assert dag_ravel(Positive(0.5))[1] != dag_ravel(Positive(0.5, depth=3))[1]
    assert hash(dag_ravel(Positive(0.5))[1]) == hash(dag_ravel(Positive(1.5))[1])
