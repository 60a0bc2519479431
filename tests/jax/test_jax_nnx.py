# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="attr-defined, no-untyped-call, assignment, type-arg, operator, arg-type"
"""NNX: objects are opened as flax does it; a Variable has identity, its array has none."""

import copy
import gc
import weakref
from collections.abc import Callable, Iterator
from functools import partial
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
from flax.nnx import pytreelib, variablelib
from hypothesis import given
from hypothesis import strategies as st
from operations import python_calls, run_apart
from reference_kinds import Callbacks

import pydag
import pydag.jaxinterop as pj
from pydag import _core
from pydag.jaxinterop.foreign import flax_private
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
    gradient = pj.grad(loss, update_argnums=0)(made)
    assert all(value is None for value in held(gradient, nnx.BatchStat))
    assert all(value is None for value in held(gradient, nnx.RngState))
    assert all(value is not None for value in held(gradient, nnx.Param))
    made, other = model(), model()
    expected = nnx.grad(loss, graph=True)(made)
    gradient = pj.grad(loss, update_argnums=0)(other)
    assert jnp.allclose(
        gradient.blocks[0].linear.kernel[...], expected["again"]["linear"]["kernel"][...], atol=1e-5
    )


def test_wrt_selects_state() -> None:
    """`wrt=` says what has a derivative, be it a statistic."""
    made = model()
    made.eval()
    gradient = pj.grad(loss, wrt=nnx.BatchStat)(made)
    assert all(value is not None for value in held(gradient, nnx.BatchStat))
    assert all(value is None for value in held(gradient, nnx.Param))


def test_nothing_but_state() -> None:
    """The error where there is only state says what to do."""
    with pytest.raises(TypeError, match=r"no nnx\.Param.*\n.*wrt="):
        pj.grad(lambda v: jnp.sum(v[...]))(nnx.BatchStat(ONE))


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
    step = pj.jit(
        step_with(lambda f: pj.value_and_grad(f, update_argnums=0)),
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


def loss_of_two(model: Any, x: Any) -> Any:
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
    expected = nnx.grad(loss_of_two)(made(), X)
    if wrap is jax.jit:
        found = jax.jit(lambda dag: pj.grad(lambda m: loss_of_two(m, X))(dag.tree))(pj.Dag(made()))
    else:
        found = wrap(pj.grad(loss_of_two))(made(), X)
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
        optimizer.update(theirs, nnx.grad(loss_of_two)(theirs, X))
    ours, tx = made(), pj.optimizer(optax.adam(0.1))
    state = tx.init(ours)

    @pj.jit(update_argnums=0)
    def step(model: Two, state: Any) -> Any:
        updates, state = tx.update(pj.grad(loss_of_two)(model, X), state, model)
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


def trees_with_variables() -> Any:
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


@given(trees_with_variables(), st.sampled_from(["all", "nodes"]), st.booleans())
def test_random_trees_with_variables(tree: Any, identity: str, asks: bool) -> None:
    """Leaves and sharing are those of the reference, whatever was walked before."""
    options: Any = {"identity": identity, "is_leaf": (lambda _: False) if asks else None}
    expected, spec = ref.flatten(tree, registry=REGISTRY, **options)
    for _ in range(2):
        leaves, found = pydag.dag_flatten(tree, **options)
        assert list(map(id, leaves)) == list(map(id, expected))
        assert _core.all_paths(found) == ref.all_paths(spec)
        assert found.num_shared == len(ref.shared(spec.root))


def with_a_version(variable: Any) -> Any:
    """What an opened Variable is if flax adds something to the metadata."""
    children, metadata = variablelib._variable_flatten_with_keys(variable)
    return (children[0][1],), (*metadata, ("version", 2))


def with_copied_metadata(variable: Any) -> Any:
    """The same if flax copies the values of the metadata."""
    children, metadata = variablelib._variable_flatten_with_keys(variable)
    return (children[0][1],), tuple((name, copy.copy(value)) for name, value in metadata)


def without_version(cls: Any, metadata: Any, children: Any) -> Any:
    """Builds a Variable of what these give."""
    return cls._new(children[0], {name: x for name, x in metadata if name != "version"})


def with_a_mark(cls: Any, metadata: Any, children: Any) -> Any:
    """What is built if flax notes that it built it."""
    return cls._new(children[0], dict(metadata) | {"built": ("by flax",)})


@pytest.mark.parametrize(
    "functions",
    [
        {"_variable_flatten": with_a_version, "_variable_unflatten": without_version},
        {"_variable_flatten": with_copied_metadata},
        {"_variable_unflatten": with_a_mark},
    ],
    ids=["opens more", "opens other objects", "builds more"],
)
def test_variables_of_another_flax(
    functions: dict[str, Callable[..., Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Variables are opened and built by the functions that flax registered, whatever they do."""
    for name, function in functions.items():
        monkeypatch.setattr(variablelib, name, function)

    class Changed(nnx.Variable):
        pass

    expected = jax.tree.map(lambda x: x, Changed(jnp.ones(2), names=["a"]))
    for _ in range(12):  # more often than pydag tries to learn it
        variable = Changed(jnp.ones(2), names=["a"])
        copied = pydag.dag_copy({"a": variable, "b": variable})
        assert copied["a"] is copied["b"]
        assert copied["a"].get_metadata() == expected.get_metadata()
    registration = jax_registry._registrations.get(Changed, (None, None))[1]
    assert _core.open_by_stand_in(registration, variable) is None


def test_modules_of_another_flax(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules whose aux_data has a form that pydag doesn't know are copied as flax copies them."""
    flatten, unflatten = nnx.Pytree._pytree__flatten, nnx.Pytree._pytree__unflatten.__func__

    def with_a_part_more(self: Any) -> Any:
        children, aux_data = flatten(self)
        return children, (*aux_data, "version 2")

    def without_it(cls: Any, aux_data: Any, children: Any) -> Any:
        return unflatten(cls, aux_data[:3], children)

    monkeypatch.setattr(nnx.Pytree, "_pytree__flatten", with_a_part_more)
    monkeypatch.setattr(nnx.Pytree, "_pytree__unflatten", classmethod(without_it))

    class Changed(nnx.Module):
        def __init__(self) -> None:
            self.w, self.size = nnx.Param(jnp.ones(2)), 2

    model = Changed()
    copied = pydag.dag_copy([model, model])
    assert copied[0] is copied[1] is not model
    assert (copied[0].size, copied[0].w[...].tolist()) == (2, [1.0, 1.0])


def test_a_flax_without_what_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where flax lacks a name that pydag looks up, its functions open and build each object."""

    class Unknown(nnx.Variable):
        pass

    monkeypatch.delattr(variablelib, "_variable_flatten")
    monkeypatch.delattr(pytreelib, "PytreeState")
    for _ in range(3):
        variable = Unknown(jnp.ones(2))
        assert pydag.dag_copy(variable)[...].tolist() == [1.0, 1.0]
    registration = jax_registry._registrations.get(Unknown, (None, None))[1]
    assert _core.open_by_stand_in(registration, variable) is None


class Tail(nnx.Module):
    """Its data comes before what flax keeps, in the order of names."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.A, self.rate = nnx.Linear(2, 2, use_bias=False, rngs=rngs), 0.5
        self.B = self.A


def test_a_view_shows_configuration_by_name() -> None:
    """A view has the static attributes of a module, and nothing of what flax keeps in it."""
    model = Tail(nnx.Rngs(0))
    lines = str(pydag.view([model], width=200)).splitlines()
    head, linear, _bias, kernel, value, alias = lines[1:-1]
    assert head == "└─ [0]: Tail [rate=0.5]"
    assert linear.startswith("   ├─ .A: &0 Linear [")
    assert "in_features=2, out_features=2" in linear
    assert kernel.startswith("   │  └─ .kernel: Param [")
    assert value == "   │     └─ .value: f32[2,2]"
    assert alias == "   └─ .B: *0"
    assert "_pytree" not in pydag.view(model)._repr_html_() + pydag.view(model).dot()
    assert "more" not in str(pydag.view(model, limit=6))
    assert "more" in str(pydag.view(model, limit=5))


def test_a_view_of_odd_aux_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Aux_data that isn't as flax makes it has no names, nor has any where flax has no state."""
    named = flax_private.named_details
    assert named(Tail, (1, 2, 3)) is named(nnx.Param, 3) is named(dict, ()) is None
    assert named(pytreelib.PytreeState, ()) == []
    monkeypatch.delattr(pytreelib, "PytreeState")
    assert named(dict, ()) is None
