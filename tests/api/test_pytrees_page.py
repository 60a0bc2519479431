"""The usual introduction to pytrees in JAX, told with `dag_*` and `pydag.jaxinterop`.

Leaves, structures, paths, maps, transposition, and a multi-layer perceptron that is
trained; then the same perceptron with one hidden layer used twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pydag

pytest.importorskip("jax")

import jax
import jax.numpy as jnp

from pydag import jaxinterop

Layer = dict[str, Any]

NESTED = [5.0, (1, 2), {"p": "one", "q": "two", "r": "three"}]


@pytest.mark.parametrize(
    ("tree", "leaves"),
    [
        ((4, 5, 6), [4, 5, 6]),
        ([7, 7.0, "text", False], [7, 7.0, "text", False]),
        ({"p": 0.5, "q": 1.5}, [0.5, 1.5]),
        (NESTED, [5.0, 1, 2, "one", "two", "three"]),
        ((8, 1, (4, 0, 9), 1, ()), [8, 1, 4, 0, 9, 1]),
        ((4, 1, (8, 0), 1, ()), [4, 1, 8, 0, 1]),
    ],
    ids=["tuple", "list", "dict", "nested", "empty-tuple", "pair-in-tuple"],
)
def test_leaves_come_in_order(tree: Any, leaves: list[Any]) -> None:
    """Leaves of any type are listed from left to right; equal numbers are leaves each."""
    assert pydag.dag_leaves(tree) == leaves
    assert list(map(type, pydag.dag_leaves(tree))) == list(map(type, leaves))


@pytest.mark.parametrize(
    "array", [jnp.arange(2), jnp.zeros(3), jnp.zeros((2, 2))], ids=["pair", "vector", "matrix"]
)
def test_an_array_is_one_leaf(array: Any) -> None:
    """However many elements an array has, the leaf is the array itself."""
    (leaf,) = pydag.dag_leaves(array)
    assert leaf is array


@pytest.mark.parametrize(
    ("tree", "elements", "leaves"),
    [
        ((4, 5, 6), 3, 3),
        ([7, 7.0, "text", False], 4, 4),
        (jnp.arange(2), 2, 1),
        ({"p": 0.5, "q": 1.5}, 2, 2),
        (NESTED, 3, 6),
        ((8, 1, (4, 0, 9), 1, ()), 5, 6),
        (jnp.zeros(3), 3, 1),
    ],
    ids=["tuple", "list", "array", "dict", "nested", "empty-tuple", "zeros"],
)
def test_leaves_are_not_elements(tree: Any, elements: int, leaves: int) -> None:
    """A nested container is one element of many leaves, an empty one an element without any."""
    assert len(tree) == elements
    assert len(pydag.dag_leaves(tree)) == leaves


def test_the_structure_has_stars_for_leaves() -> None:
    """A spec shows the containers and their keys, and a star for each leaf."""
    spec = pydag.dag_structure(NESTED)
    assert repr(spec) == "PyDagSpec([*, (*, *), {'p': *, 'q': *, 'r': *}])"


def test_flatten_gives_leaves_and_structure() -> None:
    """Flattening gives at once what `dag_leaves` and `dag_structure` give apart."""
    leaves, spec = pydag.dag_flatten(NESTED)
    assert leaves == [5.0, 1, 2, "one", "two", "three"]
    assert spec == pydag.dag_structure(NESTED)


def test_unflatten_undoes_flatten() -> None:
    """Leaves and structure together give an equal tree, of new containers."""
    leaves, spec = pydag.dag_flatten(NESTED)
    rebuilt = pydag.dag_unflatten(spec, leaves)
    assert rebuilt == NESTED
    assert rebuilt is not NESTED


def test_each_leaf_has_a_path() -> None:
    """A path is the tuple of the indices and keys that lead to the leaf."""
    paths, leaves, spec = pydag.dag_flatten_with_path(NESTED)
    assert paths == [(0,), (1, 0), (1, 1), (2, "p"), (2, "q"), (2, "r")]
    assert leaves == [5.0, 1, 2, "one", "two", "three"]
    assert repr(spec) == "PyDagSpec([*, (*, *), {'p': *, 'q': *, 'r': *}])"


ONES = {"p": 1.0, "q": 2.0, "r": 3.0}
FOURS = {"p": 4.0, "q": 5.0, "r": 6.0}
SEVENS = {"p": 7.0, "q": 8.0, "r": 9.0}


def test_map_applies_to_each_leaf() -> None:
    """One function, one tree: every leaf is replaced by its image."""
    assert pydag.dag_map(lambda x: 3 * x, ONES) == {"p": 3.0, "q": 6.0, "r": 9.0}


def test_map_combines_trees_of_one_structure() -> None:
    """With several trees the function gets the leaves that stand at the same place."""
    combined = pydag.dag_map(lambda x, y, z: x * y + z, ONES, FOURS, SEVENS)
    assert combined == {"p": 11.0, "q": 18.0, "r": 27.0}


def test_map_combines_nested_trees() -> None:
    """Lists and tuples of different lengths may be mixed, so long as both trees agree."""
    left = [[1, 2, 1], (3, 3, 3, 3), 4]
    right = [[0, 7, 1], (3, 3, 3, 3), 4]
    assert pydag.dag_map(lambda x, y: x + y, left, right) == [[1, 9, 2], (6, 6, 6, 6), 8]


def test_map_rejects_trees_of_different_structure() -> None:
    """Containers of different lengths are a `ValueError` that tells both lengths."""
    left = [[0, 7, 1], (3, 3, 3, 3), 4]
    right = [[0, 7, 1, 2], (3, 3, 3), 4]
    with pytest.raises(ValueError, match=r"arity mismatch; expected: (3, got: 4|4, got: 3)"):
        pydag.dag_map(lambda x, y: x + y, left, right)


def test_a_list_of_trees_becomes_a_tree_of_lists() -> None:
    """Mapping with `list` transposes."""
    transposed = pydag.dag_map(lambda *xs: list(xs), *[ONES, FOURS, SEVENS])
    assert transposed == {"p": [1.0, 4.0, 7.0], "q": [2.0, 5.0, 8.0], "r": [3.0, 6.0, 9.0]}


def test_transposition_sees_one_tree_that_is_listed_three_times() -> None:
    """The trees of one call are flattened apart: a tree may stand beside itself."""
    transposed = pydag.dag_map(lambda *xs: list(xs), *[ONES, ONES, ONES])
    assert transposed == {"p": [1.0, 1.0, 1.0], "q": [2.0, 2.0, 2.0], "r": [3.0, 3.0, 3.0]}


# A multi-layer perceptron.

RATE = 1e-4
STEPS = 1000


def new_layers(*widths: int) -> list[Layer]:
    """A dense layer between each width and the next."""
    keys = jax.random.split(jax.random.PRNGKey(11), len(widths) - 1)
    return [
        {
            "weights": jax.random.normal(key, (n_in, n_out)) * jnp.sqrt(2 / n_in),
            "biases": jnp.ones(n_out),
        }
        for key, n_in, n_out in zip(keys, widths[:-1], widths[1:], strict=True)
    ]


def forward(layers: list[Layer], x: Any) -> Any:
    """The outputs, shape (n, 1), for inputs of that shape."""
    *hidden, last = layers
    for layer in hidden:
        x = jax.nn.relu(x @ layer["weights"] + layer["biases"])
    return x @ last["weights"] + last["biases"]


def loss(layers: list[Layer], x: Any, y: Any) -> Any:
    """The mean squared error."""
    return jnp.mean((forward(layers, x) - y) ** 2)


def descend(p: Any, g: Any) -> Any:
    """One parameter after one step of gradient descent."""
    return p - RATE * g


@jaxinterop.jit
def update(layers: list[Layer], x: Any, y: Any) -> Any:
    """The layers after one step, by pydag."""
    gradient = jaxinterop.grad(jaxinterop.jit(loss))(layers, x, y)
    return pydag.dag_map(descend, layers, gradient)


def parabola() -> tuple[Any, Any]:
    """Inputs and their squares, each of shape (128, 1)."""
    x = jax.random.normal(jax.random.PRNGKey(3), (128, 1))
    return x, x**2


def trained(step: Callable[[Any, Any, Any], Any], layers: Any) -> Any:
    """What `STEPS` steps make of `layers`."""
    x, y = parabola()
    for _ in range(STEPS):
        layers = step(layers, x, y)
    return layers


def assert_close(ours: Any, theirs: Any) -> None:
    """Asserts that two trees are equal up to what the order of sums may change."""
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5), ours, theirs)


def test_parameters_are_a_pytree() -> None:
    """A map over the layers gives any of their properties, such as the shapes."""
    assert pydag.dag_map(lambda x: x.shape, new_layers(1, 128, 128, 1)) == [
        {"biases": (128,), "weights": (1, 128)},
        {"biases": (128,), "weights": (128, 128)},
        {"biases": (1,), "weights": (128, 1)},
    ]


def test_the_forward_pass_is_jitted() -> None:
    """Layers and inputs go through `jit` as they are; the result is that of the plain function."""
    layers = new_layers(1, 128, 128, 1)
    x, _ = parabola()
    outputs = jaxinterop.jit(forward)(layers, x)
    assert outputs.shape == (128, 1)
    np.testing.assert_allclose(outputs, forward(layers, x), rtol=1e-3, atol=1e-5)


def test_the_gradient_has_the_structure_of_the_parameters() -> None:
    """`grad` gives a tree like its argument, of the same shapes."""
    layers = new_layers(1, 128, 128, 1)
    gradient = jaxinterop.grad(loss)(layers, *parabola())
    assert pydag.dag_structure(gradient) == pydag.dag_structure(layers)
    assert pydag.dag_map(jnp.shape, gradient) == pydag.dag_map(jnp.shape, layers)


def test_training_is_that_of_plain_jax() -> None:
    """Where nothing is shared, a thousand steps end where JAX's own functions end."""

    @jax.jit
    def plain_update(layers: Any, x: Any, y: Any) -> Any:
        return jax.tree.map(descend, layers, jax.grad(loss)(layers, x, y))

    layers = new_layers(1, 128, 128, 1)
    ours, theirs = trained(update, layers), trained(plain_update, layers)
    assert float(loss(ours, *parabola())) < 0.1 * float(loss(layers, *parabola()))
    assert_close(ours, theirs)


# The same, with one hidden layer used twice.


def layers_with_one_twice() -> list[Layer]:
    """Four layers, of which the second and the third are one."""
    first, middle, last = new_layers(1, 64, 64, 1)
    return [first, middle, middle, last]


def test_a_shared_layer_is_counted_once() -> None:
    """Three distinct layers have six parameters, though four layers are used."""
    assert len(pydag.dag_leaves(layers_with_one_twice())) == 6
    assert len(jax.tree.leaves(layers_with_one_twice())) == 8


def test_the_gradient_of_a_shared_layer_sums_over_its_uses() -> None:
    """It is the sum of what JAX gives for the two places apart, and stands at both."""
    layers = layers_with_one_twice()
    ours = jaxinterop.grad(loss)(layers, *parabola())
    theirs = jax.grad(loss)(layers, *parabola())
    assert ours[1] is ours[2]
    assert_close(ours[1], jax.tree.map(jnp.add, theirs[1], theirs[2]))
    assert_close([ours[0], ours[3]], [theirs[0], theirs[3]])


def test_training_keeps_a_shared_layer_tied() -> None:
    """A thousand steps end where plain JAX ends that is given the tie by hand, and as one layer."""

    def tied_loss(distinct: Any, x: Any, y: Any) -> Any:
        first, middle, last = distinct
        return loss([first, middle, middle, last], x, y)

    @jax.jit
    def tied_update(distinct: Any, x: Any, y: Any) -> Any:
        return jax.tree.map(descend, distinct, jax.grad(tied_loss)(distinct, x, y))

    layers = layers_with_one_twice()
    ours = trained(update, layers)
    theirs = trained(tied_update, [layers[0], layers[1], layers[3]])
    assert ours[1] is ours[2]
    assert float(loss(ours, *parabola())) < 0.1 * float(loss(layers, *parabola()))
    assert_close([ours[0], ours[1], ours[3]], theirs)


def test_plain_training_unties_a_shared_layer() -> None:
    """JAX's own step, for comparison, leaves two layers of different weights after one step."""
    layers = layers_with_one_twice()
    stepped = jax.tree.map(descend, layers, jax.grad(loss)(layers, *parabola()))
    assert stepped[1] is not stepped[2]
    assert not np.array_equal(stepped[1]["weights"], stepped[2]["weights"])
