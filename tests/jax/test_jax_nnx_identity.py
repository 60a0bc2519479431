# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="attr-defined, call-arg, no-untyped-call, assignment, type-arg"
"""In NNX a Variable has identity, and the array in it has none of its own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import reference as ref
import safetensors
from flax import nnx
from hypothesis import given
from hypothesis import strategies as st
from reference_kinds import Callbacks

import pydag
from pydag import _core
from pydag import jaxinterop as pj


class Two(nnx.Module):
    """Two weights that begin as one array, if they are made so."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b

    def __call__(self, x: Any) -> Any:
        return (self.a[...] * x + 10 * self.b[...] * x).sum()


def twice() -> Two:
    array = jnp.ones(2)
    return Two(nnx.Param(array), nnx.Param(array))


def assigned() -> Two:
    made = Two(nnx.Param(jnp.ones(2)), nnx.Param(jnp.zeros(2)))
    made.b[...] = made.a[...]
    return made


def cloned() -> Two:
    variable = nnx.Param(jnp.ones(2))
    return Two(variable, nnx.clone(nnx.Dict(it=variable)).it)


def updated() -> Two:
    made = Two(nnx.Param(jnp.ones(2)), nnx.Param(jnp.zeros(2)))
    nnx.update(nnx.Dict(it=made.b), nnx.state(nnx.Dict(it=made.a)))
    return made


COPIES = pytest.mark.parametrize("made", [twice, assigned, cloned, updated])
X = jnp.array([1.0, 2.0])


def loss(model: Any, x: Any) -> Any:
    return model(x)


def values(model: Two) -> list[list[float]]:
    return [model.a[...].tolist(), model.b[...].tolist()]


@COPIES
def test_copying_a_value_ties_nothing(made: Callable[[], Two]) -> None:
    """Two Variables that hold one array are two leaves, at the first walk and at later ones."""
    model = made()
    assert model.a.get_raw_value() is model.b.get_raw_value()
    for _ in range(3):
        leaves, spec = pydag.dag_flatten(model)
        assert (len(leaves), spec.num_shared) == (2, 0)
    assert pydag.dag_flatten(model, is_leaf=lambda _: False)[1] == spec


def test_tying_variables() -> None:
    """`tie` ties Variables; for the arrays in them it says that it can't."""
    tied = pydag.tie(twice(), ("a",), ("b",))
    assert tied.a is tied.b
    with pytest.raises(ValueError, match=r"tree\.a\.value has no identity(.|\n)*Variables of NNX"):
        pydag.tie(twice(), ("a", "value"), ("b", "value"))


@COPIES
@pytest.mark.parametrize("wrap", [lambda f: f, pj.jit, jax.jit])
def test_derivatives_are_those_of_nnx(made: Callable[[], Two], wrap: Any) -> None:
    """The gradient of each Variable is its own, not the sum."""
    expected = nnx.grad(loss)(made(), X)
    if wrap is jax.jit:
        found = jax.jit(lambda dag: pj.grad(lambda m: loss(m, X))(dag.tree))(pj.Dag(made()))
    else:
        found = wrap(pj.grad(loss))(made(), X)
    assert found.a.get_raw_value().tolist() == expected["a"][...].tolist() == [1, 2]
    assert found.b.get_raw_value().tolist() == expected["b"][...].tolist() == [10, 20]


@COPIES
@pytest.mark.parametrize("donates", [False, True])
def test_one_of_two_variables_is_updated(made: Callable[[], Two], donates: bool) -> None:
    """A step that changes one Variable, or copies a value, changes just that one.

    Of a buffer that two Variables hold copies are donated: the other Variable keeps it.
    """

    def step(model: Two, x: Any) -> None:
        model.a[...] = model.a[...] + x

    def copy(model: Two, x: Any) -> None:
        model.b[...] = model.a[...]

    options: Any = {"donate_argnums": 0} if donates else {}
    compiled = pj.jit(step, update_argnums=0, **options)
    copies = pj.jit(copy, update_argnums=0)
    model = made()
    for i in range(1, 4):
        compiled(model, X)
        assert values(model) == [(1 + i * X).tolist(), [1, 1]]
    for _ in range(3):
        copies(model, X)
        compiled(model, X)
    assert values(model) == [(1 + 6 * X).tolist(), (1 + 5 * X).tolist()]


@COPIES
def test_optimizers_have_a_moment_for_each(made: Callable[[], Two]) -> None:
    """An optimizer trains the two Variables as `nnx.Optimizer` does."""
    theirs = made()
    optimizer = nnx.Optimizer(theirs, optax.adam(0.1), wrt=nnx.Param)
    for _ in range(3):
        optimizer.update(theirs, nnx.grad(loss)(theirs, X))
    ours, tx = made(), pj.optimizer(optax.adam(0.1))
    state = tx.init(ours)

    @pj.jit(update_argnums=0)
    def step(model: Two, state: Any) -> Any:
        updates, state = tx.update(pj.grad(loss)(model, X), state, model)
        pydag.dag_update(model, pj.apply_updates(model, updates))
        return state

    for _ in range(3):
        state = step(ours, state)
    np.testing.assert_allclose(values(ours), values(theirs), rtol=1e-6)


@COPIES
@pytest.mark.parametrize("is_numpy", [False, True])
def test_files_have_a_value_for_each(
    made: Callable[[], Two], is_numpy: bool, tmp_path: Path
) -> None:
    """An array that two Variables hold is written for each."""
    model = made()
    if is_numpy:
        array = np.ones(2, np.float32)
        model.a.set_raw_value(array), model.b.set_raw_value(array)
    file = tmp_path / "model.safetensors"
    pj.save(file, model, structure=False)
    with safetensors.safe_open(file, "numpy") as stored:
        assert len(stored.keys()) == 2
    again = pj.load(file, like=model)
    assert values(again) == values(model)


def test_a_ref_below_two_variables_is_one() -> None:
    """A ref is an object with identity wherever it stands: passed once, and written once."""
    model = pj.tree.map(jax.new_ref, Two(nnx.Param(jnp.ones(2)), nnx.Param(jnp.ones(2))))
    both = {"one": model, "other": jax.tree.map(lambda x: x, model)}
    content = model.a.get_raw_value()
    assert both["other"].a is not model.a
    assert both["other"].a.get_raw_value() is content
    for _ in range(2):
        assert len(pydag.dag_leaves(both)) == 2
    pj.jit(lambda m: content_of(m["other"].a).__setitem__(..., content_of(m["one"].a)[...] + 1))(
        both
    )
    assert content[...].tolist() == [2, 2]


def content_of(variable: Any) -> Any:
    return variable.get_raw_value()


# --- against the reference ---

REGISTRY: Any = {
    nnx.Param: Callbacks(
        lambda v: ((v.get_raw_value(),), "aux", ("value",)),
        lambda _, c: nnx.Param(c[0]),
        leaves_are_values=True,
        foreign=True,
    )
}


def trees() -> Any:
    arrays = [jnp.full(1, float(i)) for i in range(3)]
    shared: list[Any] = [[arrays[0]], (arrays[1], arrays[1]), {"k": arrays[2]}]
    leaves = st.sampled_from([*arrays, *shared, 1.5, None])
    variables = [nnx.Param(x) for x in (*arrays, *shared)]
    held = st.one_of(leaves, st.sampled_from(variables), leaves.map(nnx.Param))
    return st.recursive(
        held,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.tuples(inner, inner),
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            st.tuples(inner, inner).map(nnx.Param),
        ),
        max_leaves=10,
    )


@given(trees(), st.sampled_from(["all", "nodes"]), st.booleans())
def test_random_trees_with_variables(tree: Any, identity: str, asks: bool) -> None:
    """Leaves and sharing are those of the reference, whatever was walked before."""
    options: Any = {"identity": identity, "is_leaf": (lambda _: False) if asks else None}
    expected, spec = ref.flatten(tree, registry=REGISTRY, **options)
    for _ in range(2):
        leaves, found = pydag.dag_flatten(tree, **options)
        assert list(map(id, leaves)) == list(map(id, expected))
        assert _core.all_paths(found) == ref.all_paths(spec)
        assert found.num_shared == len(ref.shared(spec.root))
