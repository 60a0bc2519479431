# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="attr-defined, no-untyped-call, assignment, type-arg, operator, arg-type"
"""NNX objects are opened and built by the core, and come out as flax's own functions give them."""

import gc
import weakref
from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest
from flax import nnx
from hypothesis import given
from hypothesis import strategies as st
from operations import python_calls, run_apart

import pydag
from pydag import _core, jaxinterop
from pydag.jaxinterop.registries import jax_registry

ONE = jnp.ones(2)


def registration_of(cls: type) -> Any:
    """What the core knows of a class of JAX's registry."""
    return jax_registry._registrations.get(cls, (None, None))[1]


def is_opened_by_core(node: Any) -> bool:
    registration = registration_of(type(node))
    return registration is not None and _core.open_by_stand_in(registration, node) is not None


def vars_of(key: Any) -> Iterator[Any]:
    """What a key of JAX's says."""
    return (getattr(key, name) for name in ("name", "idx", "key") if hasattr(key, name))


def parts_of(node: Any) -> Any:
    """What an NNX object consists of, but for when it was made."""
    if isinstance(node, nnx.Variable):
        return node.get_raw_value(), node.get_metadata()
    if isinstance(node, nnx.Pytree):
        return list(vars(node).items())
    if isinstance(node, nnx.State):
        return list(node.items())
    return [getattr(node, name) for name in ("_initializing", "_is_setup")]


def check_as_flax(node: Any) -> None:
    """Compares how pydag and JAX open an object, and build it again."""
    for _ in range(2):  # flax's function opens the first one of its shape, the core the second
        children, aux_data, entries, _ = pydag.dag_flatten_one_level(node)
        expected, expected_aux = jax.tree_util.default_registry.flatten_one_level(node)
        assert list(map(id, children)) == list(map(id, expected))
        assert aux_data == expected_aux
        named = jax.tree_util.default_registry.flatten_one_level_with_keys(node)[0]
        keys = [next(iter(vars_of(key))) for key, _ in named]
        assert list(entries or ()) == keys
        leaves, spec = pydag.dag_flatten(node, is_leaf=lambda x: x is not node)
        built = pydag.dag_unflatten(spec, leaves)
        again = jax.tree.unflatten(
            jax.tree.structure(node, is_leaf=lambda x: x is not node), expected
        )
        assert type(built) is type(again)
        assert str(parts_of(built)) == str(parts_of(again))
        if isinstance(node, nnx.Variable):
            assert built._trace_state == again._trace_state
            assert built._var_metadata is not node._var_metadata


def nodes_of(tree: Any) -> Iterator[Any]:
    """All NNX objects of a tree."""
    seen: set[int] = set()
    pending = [tree]
    while pending:
        node = pending.pop()
        if id(node) in seen or jax.tree_util.all_leaves([node]):
            continue
        seen.add(id(node))
        if type(node).__module__.startswith(("flax", __name__)):
            yield node
        pending.extend(jax.tree_util.default_registry.flatten_one_level(node)[0])


class Block(nnx.Module):
    def __init__(self, width: int, rngs: nnx.Rngs) -> None:
        self.linear = nnx.Linear(width, width, rngs=rngs)
        self.norm = nnx.BatchNorm(width, rngs=rngs)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)
        self.width = width
        self.steps = nnx.data(3)
        self.array = jnp.zeros(width)

    def __call__(self, x: Any) -> Any:
        return self.dropout(self.norm(self.linear(x)))


class Model(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.blocks = nnx.List([Block(2, rngs), Block(2, rngs)])
        self.again = self.blocks[0]
        self.named = nnx.Dict(a=nnx.Param(ONE), b=self.blocks[1].linear.kernel)
        self.name = "model"

    def __call__(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return x * self.named["a"][...]


def model() -> Model:
    return Model(nnx.Rngs(0))


def trees() -> dict[str, Any]:
    made = model()
    return {
        "model": made,
        "rngs": nnx.Rngs(0, dropout=1),
        "optimizer": nnx.Optimizer(made, optax.adam(1e-3), wrt=nnx.Param),
        "metrics": nnx.MultiMetric(
            loss=nnx.metrics.Average("loss"), accuracy=nnx.metrics.Accuracy()
        ),
        "attention": nnx.MultiHeadAttention(2, 4, decode=False, rngs=nnx.Rngs(0)),
    }


@pytest.mark.parametrize("name", trees())
def test_flaxs_own_objects(name: str) -> None:
    """What flax makes is opened by the core: flax's children, aux_data, names and order."""
    nodes = list(nodes_of(trees()[name]))
    assert nodes
    for node in nodes:
        check_as_flax(node)
        assert is_opened_by_core(node) or isinstance(node, nnx.State), type(node)


# --- random objects ---

NAMES = st.sampled_from(["a", "b", "_c", "name_d", "e"])
VARIABLES = st.sampled_from([nnx.Param, nnx.BatchStat, nnx.Cache, nnx.Variable])
METADATA = st.dictionaries(st.sampled_from(["z", "out_sharding", "A", "tag"]), st.integers(0, 3))


class Bag(nnx.Module):
    """Attributes of any name and kind."""

    def __init__(self, items: Any) -> None:
        for name, value in items:
            setattr(self, name, value)


def variables() -> Any:
    def made(cls: Any, metadata: dict[str, Any]) -> Any:
        return cls(ONE + 1, **{k: v for k, v in metadata.items() if k != "out_sharding"})

    return st.builds(made, VARIABLES, METADATA)


def bags(inner: Any) -> Any:
    values = st.one_of(inner, st.integers(), st.text(max_size=2), st.just(ONE), variables())
    kinds = st.builds(
        lambda value, explicit: nnx.data(value) if explicit else value, values, st.booleans()
    )
    items = st.lists(st.tuples(NAMES, kinds), max_size=5, unique_by=lambda item: item[0])
    return st.one_of(
        items.map(Bag),
        st.lists(variables(), max_size=3).map(nnx.List),
        st.dictionaries(NAMES, variables(), max_size=3).map(lambda d: nnx.Dict(**d)),
    )


OBJECTS = st.recursive(variables(), bags, max_leaves=8)


@given(OBJECTS)
def test_random_objects(tree: Any) -> None:
    """Objects of any attributes are opened and built as by flax, whatever came before."""
    for node in nodes_of(tree):
        check_as_flax(node)
    leaves, spec = pydag.dag_flatten(tree)
    built = pydag.dag_unflatten(spec, leaves)
    assert list(map(id, jax.tree.leaves(built))) == list(map(id, jax.tree.leaves(tree)))
    assert jax.tree.structure(built) == jax.tree.structure(tree)
    assert pydag.dag_structure(built) == spec


# --- what changes between calls ---


def reorder(bag: Any) -> None:
    """The same attributes, set in another order."""
    value = bag.a
    del bag.a
    bag.a = value


CHANGES: dict[str, Any] = {
    "add": lambda bag: setattr(bag, "d", nnx.Param(ONE)),
    "delete": lambda bag: delattr(bag, "b"),
    "kind": lambda bag: setattr(bag, "b", nnx.data(1)),
    "static": lambda bag: setattr(bag, "b", 2),
    "metadata": lambda bag: bag.a.set_metadata(tag=1),
    "list": lambda bag: bag.c.append(nnx.Param(ONE)),
    "reorder": reorder,
}


@pytest.mark.parametrize("is_held", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_an_object_that_changes(change: str, is_held: bool) -> None:
    """An attribute that is added, deleted or of another kind is seen at the next call.

    So it is where somebody holds the structure, and where only pydag remembers it.
    """
    bag = Bag([("a", nnx.Param(ONE)), ("b", 1), ("c", nnx.List([nnx.Param(ONE)]))])
    for _ in range(3):
        pydag.dag_flatten(bag)
    before = pydag.dag_structure(bag) if is_held else None
    CHANGES[change](bag)
    for node in (bag, bag.a, bag.c):
        check_as_flax(node)
    if is_held:
        assert (pydag.dag_structure(bag) == before) is (change == "reorder")
    assert list(map(id, pydag.dag_leaves(bag))) == list(map(id, jax.tree.leaves(bag)))


def test_what_is_remembered_keeps_nothing_of_the_users() -> None:
    """The structure of a module is remembered; what its static attributes hold can go."""

    class Setting:
        pass

    for first, second in ((Setting, str), (str, Setting), (Setting, Setting)):
        bag = Bag([("a", nnx.Param(ONE, tag=first())), ("b", second())])
        settings = [x for x in (bag.a.tag, bag.b) if isinstance(x, Setting)]
        assert settings
        gone = [weakref.ref(x) for x in (bag, *settings)]
        for _ in range(3):
            pydag.dag_flatten(bag)
        del bag, settings
        gc.collect()
        assert [reference() for reference in gone] == [None] * len(gone)


@pytest.mark.parametrize(
    "container", [nnx.List, lambda items: nnx.Dict({str(i): x for i, x in enumerate(items)})]
)
def test_a_known_container_is_opened_by_the_core(container: Any) -> None:
    """flax's functions open and build the first instance alone, also where names are numbers."""
    tree = container([nnx.Param(i * ONE) for i in range(30)])
    for work in (pydag.dag_copy, pydag.dag_flatten):
        known = partial(work, tree, namespace="jax")
        known()
        assert [name for name in python_calls(known) if "flatten" in name] == []


def test_a_class_with_functions_of_its_own() -> None:
    """A class that overrides how flax opens it is opened by its own functions."""

    class Odd(nnx.Module):
        def __init__(self) -> None:
            self.a, self.b = nnx.Param(ONE), nnx.Param(2 * ONE)

        def _pytree__flatten(self) -> Any:
            return [self.b, self.a], "odd"

        def _pytree__flatten_with_paths(self) -> Any:
            key = jax.tree_util.GetAttrKey
            return [(key("b"), self.b), (key("a"), self.a)], "odd"

        @classmethod
        def _pytree__unflatten(cls, aux_data: Any, children: Any) -> Any:
            made = object.__new__(cls)
            object.__setattr__(made, "b", children[0])
            object.__setattr__(made, "a", children[1])
            return made

    odd = Odd()
    for _ in range(3):
        assert [x.tolist() for x in pydag.dag_leaves(odd)] == [[2, 2], [1, 1]]
    assert not is_opened_by_core(odd)
    assert vars(pydag.dag_map(lambda x: x, odd)).keys() == {"a", "b"}


# --- written into ---


def test_dag_update_writes_into_variables() -> None:
    """Variables get new values, modules new arrays; all objects, and what is static, stay."""
    target = model()
    source = pydag.dag_map(
        lambda x: x + 1 if jnp.issubdtype(jnp.result_type(x), jnp.number) else x, model()
    )
    before = {id(node) for node in nodes_of(target)}
    kernel = target.blocks[0].linear.kernel
    pydag.dag_update(target, source)
    assert {id(node) for node in nodes_of(target)} == before
    assert target.again is target.blocks[0]
    assert target.blocks[0].linear.kernel is kernel
    assert kernel.get_raw_value() is source.blocks[0].linear.kernel.get_raw_value()
    assert target.blocks[0].steps == 4
    assert target.blocks[0].array.tolist() == [1, 1]
    assert target.name == "model"


# --- what is trained ---


def loss(model: Model) -> Any:
    return jnp.sum(model(jnp.ones((3, 2))) ** 2)


def held(tree: Any, cls: type) -> list[Any]:
    """The values of all Variables of a class, each once."""
    found = [n for n in nodes_of(tree) if isinstance(n, cls)]
    return [variable.get_raw_value() for variable in found]


def test_state_is_not_differentiated() -> None:
    """The gradient is nnx.grad's: of Params alone. Statistics, counts and keys have None."""
    made = model()
    gradient = jaxinterop.grad(loss, update_argnums=0)(made)
    assert all(value is None for value in held(gradient, nnx.BatchStat))
    assert all(value is None for value in held(gradient, nnx.RngState))
    assert all(value is not None for value in held(gradient, nnx.Param))
    made, other = model(), model()
    expected = nnx.grad(loss, graph=True)(made)
    gradient = jaxinterop.grad(loss, update_argnums=0)(other)
    assert jnp.allclose(
        gradient.blocks[0].linear.kernel[...], expected["again"]["linear"]["kernel"][...], atol=1e-5
    )


def test_wrt_selects_state() -> None:
    """`wrt=` says what is differentiated by, be it a statistic."""
    made = model()
    made.eval()
    gradient = jaxinterop.grad(loss, wrt=nnx.BatchStat)(made)
    assert all(value is not None for value in held(gradient, nnx.BatchStat))
    assert all(value is None for value in held(gradient, nnx.Param))


def test_nothing_but_state() -> None:
    """The error where there is only state says what to do."""
    with pytest.raises(TypeError, match=r"no nnx\.Param.*\n.*wrt="):
        jaxinterop.grad(lambda v: jnp.sum(v[...]))(nnx.BatchStat(ONE))


# --- updates of arguments ---


def test_a_training_step_of_nnx() -> None:
    """`update_argnums` is nnx.jit's promise: model, optimizer, streams and metrics are updated."""

    def made() -> Any:
        fresh = model()
        metrics = nnx.MultiMetric(loss=nnx.metrics.Average("loss"))
        return fresh, nnx.Optimizer(fresh, optax.adam(1e-2), wrt=nnx.Param), metrics

    def step_with(value_and_grad: Any) -> Any:
        def step(model: Any, optimizer: Any, metrics: Any, x: Any) -> Any:
            def loss_fn(model: Any) -> Any:
                return jnp.mean((model(x) - 1) ** 2)

            value, gradient = value_and_grad(loss_fn)(model)
            optimizer.update(model, gradient)
            metrics.update(loss=value)
            return value

        return step

    ours, theirs, x = made(), made(), jnp.ones((3, 2))
    step = jaxinterop.jit(
        step_with(lambda f: jaxinterop.value_and_grad(f, update_argnums=0)),
        update_argnums=(0, 1, 2),
    )
    other = nnx.jit(step_with(lambda f: nnx.value_and_grad(f, graph=True)))
    for _ in range(3):
        assert jnp.allclose(step(*ours, x), other(*theirs, x), atol=1e-5)
    for mine, its in zip(ours, theirs, strict=True):
        for a, b in zip(jax.tree.leaves(mine), jax.tree.leaves(its), strict=True):
            if isinstance(a, jax.Array) and not jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
                assert jnp.allclose(a, b, atol=1e-4)
    assert ours[0].again is ours[0].blocks[0]
    assert ours[1].step[...] == 3


def test_flax_itself() -> None:
    """With the switch in the environment, flax's functions open and build each object."""
    source = """
import os
os.environ["PYDAG_STAND_INS"] = "0"
import pydag
from flax import nnx
from pydag import _core
from pydag.jaxinterop.registries import jax_registry
model = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
for _ in range(3):
    copied = pydag.dag_copy(model)
registration = jax_registry._registrations.get(type(model), (None, None))[1]
print(_core.open_by_stand_in(registration, model), (copied.kernel[...] == model.kernel[...]).all())
"""
    assert run_apart(source).split()[-2:] == ["None", "True"]
