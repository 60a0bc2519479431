# SPDX-License-Identifier: Apache-2.0
"""What comes out: gradients, None, numbers, origins; classes get what they may hold."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import attrs
import equinox as eqx
import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import optax
import optree.dataclasses
import optree.integrations.attrs
import pytest
from wrappers import MESH, SPEC

import pydag
import pydag.jaxinterop as pj
from pydag.registry.functions import register_pydag_node
from pydag.registry.optree_private import GLOBAL_NAMESPACE as EVERYWHERE

ALLOWED_NOW = [jax.Array, np.ndarray, jax.ShapeDtypeStruct, jax.Ref, type(None)]


def check(*held: Any) -> None:
    """Raises for what is no array."""
    for x in held:
        if not isinstance(x, tuple(ALLOWED_NOW)):
            raise TypeError(f"this class holds arrays, got {type(x).__name__}")


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Checked:
    """A dataclass of JAX's registry with a `__post_init__` that checks."""

    a: Any
    b: Any

    def __post_init__(self) -> None:
        check(self.a, self.b)


class ByFunction:
    """A class whose unflatten function checks, as `__init__` does."""

    def __init__(self, a: Any, b: Any) -> None:
        check(a, b)
        self.a, self.b = a, b


register_pydag_node(ByFunction, lambda x: ((x.a, x.b), None), lambda _, held: ByFunction(*held))


class ByFields(pj.Module):
    """A module that refuses, as its attributes are set, what it can't hold."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b

    def __setattr__(self, name: str, value: Any) -> None:
        check(value)
        super().__setattr__(name, value)


CLASSES = [Checked, ByFunction, ByFields]
every_class = pytest.mark.parametrize("cls", CLASSES)
Model = dict[str, Any]
PREFIX = {"m": True, "l": False, "x": True}
PLACED = jax.sharding.NamedSharding(MESH, SPEC)


def model_of(cls: Any) -> Model:
    """A model with two such objects, the first of which is tied."""
    w = jnp.ones(2)
    return {"m": cls(w, w), "l": [cls(jnp.ones(2), jnp.ones(2))], "x": jnp.ones(2)}


def number(model: Model) -> Any:
    """A function of all of it."""
    return (model["m"].a * model["x"] * model["m"].b * model["l"][0].a).sum()


def same(model: Model) -> Model:
    """The model that it is given, with another array in it."""
    return {**model, "x": 2 * model["x"]}


def pulled(function: Any, *args: Any, **options: Any) -> Any:
    """What goes back through a pullback."""
    value, pullback = pj.vjp(function, *args, **options)
    return pullback(value)


def custom_vjp(model: Model) -> Any:
    """With a rule that gives None for the whole model, and one that gives what it kept."""
    for backward in (lambda kept, _: (None,), lambda kept, _: (kept,)):
        function = pj.custom_vjp(number)
        function.defvjp(lambda m: (number(m), m), backward)
        pj.grad(function)(model)


def custom_jvp(model: Model) -> Any:
    """With a rule of its own."""
    function = pj.custom_jvp(same)
    function.defjvp(lambda p, t: (same(*p), t[0]))
    return pj.jvp(function, (model,), (model,))


def stages(model: Model) -> Any:
    """What was compiled is called, and says what comes out."""
    compiled = pj.jit(same).lower(model).compile()
    return compiled(model), compiled.out_info


WRAPPERS: dict[str, Callable[[Model], Any]] = {
    "jit": lambda m: pj.jit(same)(m),
    "jit, donated": lambda m: pj.jit(same, donate_argnums=0)(m),
    "jit, in_shardings": lambda m: pj.jit(
        same, in_shardings=({"m": PLACED, "l": None, "x": PLACED},)
    )(m),
    "jit, out_shardings": lambda m: pj.jit(
        same, out_shardings={"m": PLACED, "l": None, "x": PLACED}
    )(m),
    "jit, update_argnums": lambda m: pj.jit(
        lambda m: m.__setitem__("x", 2 * m["x"]), update_argnums=0
    )(m),
    "stages": stages,
    "vmap, in_axes": lambda m: pj.vmap(lambda m: m["m"].a, in_axes=({"m": 0, "l": None, "x": 0},))(
        m
    ),
    "vmap, out_axes": lambda m: pj.vmap(
        lambda m, x: {"m": m["m"], "x": x}, in_axes=(None, 0), out_axes={"m": None, "x": 0}
    )(m, jnp.ones(2)),
    "grad": lambda m: pj.grad(number)(m),
    "grad, wrt a prefix": lambda m: pj.grad(number, wrt=PREFIX)(m),
    "grad, wrt a pattern": lambda m: pj.grad(number, wrt="*x*")(m),
    "grad, wrt a predicate": lambda m: pj.grad(number, wrt=lambda x: x.ndim == 1)(m),
    "value_and_grad, update_argnums": lambda m: pj.value_and_grad(
        lambda m: m.__setitem__("x", 2 * m["x"]) or number(m), update_argnums=0
    )(m),
    "jacrev": lambda m: pj.jacrev(number, wrt="*x*")(m),
    "jacfwd": lambda m: pj.jacfwd(number)(m),
    "hessian": lambda m: pj.hessian(lambda x, m: number({**m, "x": x}))(jnp.ones(2), m),
    "vjp": lambda m: pulled(same, m),
    "jvp": lambda m: pj.jvp(same, (m,), (m,)),
    "linearize": lambda m: pj.linearize(same, m)[1](m),
    "custom_vjp": custom_vjp,
    "custom_jvp": custom_jvp,
    "scan": lambda m: pj.scan(lambda c, x: (c + 1, same(x)), 0, m, reverse=True),
    "fori_loop": lambda m: pj.fori_loop(0, 2, lambda _, c: same(c), m),
    "while_loop": lambda m: pj.while_loop(lambda c: c["x"].sum() < 3, same, m),
    "cond": lambda m: pj.cond(True, same, lambda m: m, m),
    "switch": lambda m: pj.switch(1, [same, same], m),
    "map": lambda m: pj.map(same, m),
    "associative_scan": lambda m: pj.associative_scan(lambda a, b: same(b), m),
    "checkpoint": lambda m: pj.grad(pj.checkpoint(number, prevent_cse=(PREFIX,)))(m),
    "shard_map": lambda m: pj.shard_map(
        same, mesh=MESH, in_specs=({"m": SPEC, "l": SPEC, "x": SPEC},), out_specs=SPEC
    )(m),
    "eval_shape": lambda m: pj.eval_shape(same, pj.eval_shape(same, m)),
    "make_jaxpr": lambda m: pj.make_jaxpr(same, return_shape=True)(m),
    "keep_sharing": lambda m: pj.keep_sharing(jax.named_call)(same)(m),
    "a Dag in jax.jit": lambda m: jax.jit(lambda dag: dag)(pj.Dag(m)).tree,
    "tree.map": lambda m: pj.tree.map(lambda x, y: x + y, m, m),
}


@every_class
@pytest.mark.parametrize("name", WRAPPERS)
@pytest.mark.filterwarnings("ignore::pydag.jaxinterop.LostTieWarning")
def test_a_wrapper_gives_a_class_what_it_may_hold(cls: Any, name: str) -> None:
    """No wrapper, and none of its options, fails where a class holds nothing but arrays."""
    WRAPPERS[name](model_of(cls))


@every_class
@pytest.mark.parametrize("wrt", [None, PREFIX, "*x*", lambda x: x.ndim == 1])
def test_an_optimizer_gives_a_class_what_it_may_hold(cls: Any, wrt: Any) -> None:
    """No step fails, eager or compiled."""
    optimizer = pj.optimizer(optax.adam(0.1), wrt=wrt)

    def step(model: Any, state: Any) -> Any:
        updates, state = optimizer.update(pj.grad(number)(model), state, model)
        return pj.apply_updates(model, updates), state

    model = model_of(cls)
    state = optimizer.init(model)
    for run in (step, pj.jit(step)):
        new, _ = run(model, state)
        assert type(new["m"]) is cls
        assert new["m"].a is new["m"].b
        assert (new["x"] != model["x"]).all()


@every_class
def test_where_a_class_refuses_none(cls: Any) -> None:
    """A gradient goes past a constructor where the fields are known; else an error says why."""
    model = {"whole": cls(jnp.ones(2), jnp.ones(2)), "part": cls(jnp.ones(2), jnp.arange(2))}
    differentiate = pj.grad(lambda m: (m["whole"].a * m["whole"].b * m["part"].a).sum())
    ALLOWED_NOW.remove(type(None))
    try:
        if cls is ByFunction:
            with pytest.raises(TypeError, match="this class holds arrays, got NoneType") as caught:
                differentiate(model)
            assert "pydag.register_fields" in "".join(caught.value.__notes__)
            return
        gradient = differentiate(model)
    finally:
        ALLOWED_NOW.append(type(None))
    assert gradient["part"].b is None
    assert gradient["whole"].a.tolist() == [1.0, 1.0]


# --- classes that fill None in ---
def fill(self: Any) -> None:
    """Puts a default in the place of None, as a `__post_init__` does."""
    if self.scale is None:
        object.__setattr__(self, "scale", jnp.ones(2))


def filling(decorate: Callable[[type], type], bases: tuple[type, ...] = (), **names: Any) -> Any:
    """A class with a weight and a scale, which is 1 where none is given."""
    annotations = {"weight": Any, "scale": Any, **names.pop("annotations", {})}
    names = {"scale": None, "__post_init__": fill, **names, "__annotations__": annotations}
    return decorate(type("Filling", bases, names))


def dataclass_of_jax(**options: Any) -> Callable[[type], type]:
    """What registers a dataclass with JAX."""
    make: Any = dataclasses.dataclass(**options)
    return lambda cls: jax.tree_util.register_dataclass(make(cls))


def of_optree(make: Any) -> Callable[[type], type]:
    """What registers a class of attrs with optree."""
    return lambda cls: optree.integrations.attrs.register_node(make(cls), namespace=EVERYWHERE)


def of_chex(**options: Any) -> Callable[[type], type]:
    """What makes a dataclass of chex."""
    make: Callable[[type], type] = pytest.importorskip("chex").dataclass(**options)
    return make


class OwnInit:
    """A class that isn't a dataclass, whose `__init__` fills in."""

    def __init__(self, weight: Any, scale: Any = None) -> None:
        self.weight, self.scale = weight, jnp.ones(2) if scale is None else scale


def convert(self: Any) -> None:
    """Makes an array of whatever is given."""
    self.weight = jnp.asarray(self.weight)
    self.scale = jnp.asarray(0.0 if self.scale is None else self.scale)


def set_attribute(self: Any, name: str, value: Any) -> None:
    """Fills in when an attribute is set."""
    object.__setattr__(self, name, jnp.ones(2) if value is None else value)


def count(self: Any) -> None:
    """Fills in, and computes configuration of it."""
    fill(self)
    object.__setattr__(self, "size", int(self.scale[0]))


FILLING: dict[str, Callable[[], Any]] = {
    "register_dataclass": lambda: filling(dataclass_of_jax()),
    "frozen": lambda: filling(dataclass_of_jax(frozen=True)),
    "slots": lambda: filling(dataclass_of_jax(slots=True)),
    "keywords, frozen slots": lambda: filling(
        dataclass_of_jax(slots=True, frozen=True, kw_only=True)
    ),
    "inherited": lambda: filling(
        dataclass_of_jax(), (type("Base", (), {"__post_init__": fill}),), __post_init__=fill
    ),
    "converts": lambda: filling(dataclass_of_jax(), __post_init__=convert),
    "__setattr__": lambda: filling(dataclass_of_jax(), __setattr__=set_attribute),
    "no dataclass": lambda: jax.tree_util.register_dataclass(
        type("Own", (OwnInit,), {}), ["weight", "scale"], []
    ),
    "flax.struct": lambda: filling(flax.struct.dataclass),
    "flax.struct, meta": lambda: filling(
        flax.struct.dataclass,
        __post_init__=count,
        size=flax.struct.field(pytree_node=False, default=0),  # type: ignore[no-untyped-call]  # flax's
        annotations={"size": int},
    ),
    "chex": lambda: filling(of_chex()),
    "chex, frozen": lambda: filling(of_chex(frozen=True, mappable_dataclass=False)),
    "optree": lambda: filling(
        optree.dataclasses.dataclass(namespace=EVERYWHERE)  # type: ignore[call-overload]  # optree's
    ),
    "attrs": lambda: filling(of_optree(attrs.define), __attrs_post_init__=fill),
    "attrs, frozen": lambda: filling(of_optree(attrs.frozen), __attrs_post_init__=fill),
    "attrs, converter": lambda: filling(
        of_optree(attrs.define),
        scale=attrs.field(
            default=None, converter=attrs.converters.default_if_none(factory=lambda: jnp.ones(2))
        ),
    ),
    "register_fields": lambda: filling(lambda c: pydag.register_fields(dataclasses.dataclass(c))),
    "equinox": lambda: type(
        "Eqx",
        (eqx.Module,),
        {
            "__annotations__": {"weight": Any, "scale": Any},
            "__init__": OwnInit.__init__,
        },
    ),
}

every_filling = pytest.mark.parametrize("make", FILLING.values(), ids=FILLING)


def product(node: Any) -> Any:
    """A function of both."""
    return jnp.sum(node.weight * node.scale)


def is_one(x: Any) -> bool:
    """Selects the weight."""
    return bool((x == 1).all())


@every_filling
def test_a_frozen_five_stays_five(make: Any) -> None:
    """A gradient, updates and halves hold None, and no default that is added to a value."""
    node = make()(weight=jnp.ones(2), scale=jnp.full(2, 5.0))
    gradient = pj.grad(product, wrt=is_one)(node)
    assert gradient.scale is None
    assert gradient.weight.tolist() == [5.0, 5.0]
    optimizer = pj.optimizer(optax.sgd(0.1), wrt=is_one)
    updates, _ = optimizer.update(gradient, optimizer.init(node), node)
    stepped = pj.apply_updates(node, updates)
    assert (updates.scale, stepped.scale.tolist()) == (None, [5.0, 5.0])
    assert stepped.weight.tolist() == [0.5, 0.5]
    chosen, others = pydag.dag_partition(is_one, node)
    assert (chosen.scale, others.weight) == (None, None)
    assert pydag.dag_combine(chosen, others).scale.tolist() == [5.0, 5.0]
    assert pydag.dag_mask(node, is_one).scale is False
    assert pydag.dag_map(lambda x: x, chosen).scale is None
    assert pj.jit(lambda gradient: gradient)(gradient).scale is None
    assert pj.tree.map(lambda _: None, node).weight is None


def test_integers_that_have_no_gradient() -> None:
    """None stands for integers in what a derivative returns, also in several transformations."""
    node = filling(dataclass_of_jax())(jnp.ones(2), jnp.full(2, 5))
    assert pj.grad(product)(node).scale is None
    assert pj.jit(pj.grad(product))(node).scale is None
    assert pj.value_and_grad(product)(node)[1].scale is None
    assert pj.vjp(product, node)[1](1.0)[0].scale is None
    assert pj.jacrev(product)(node).scale is None
    assert pj.checkpoint(pj.grad(product))(node).scale is None
    assert pj.scan(lambda c, _: (c, pj.grad(product)(node)), 0, length=2)[1].scale is None
    assert pj.eval_shape(pj.grad(product), node).scale is None


def total(self: Any) -> None:
    """Fills in, and sets an attribute that is no field."""
    fill(self)
    self.total = self.scale.sum()


def refuse(self: Any) -> None:
    """Refuses None, and sets an attribute that is no field."""
    if self.scale is None:
        raise ValueError("a scale is needed")
    self.total = 1


ATTRIBUTES: dict[str, Callable[[], Any]] = {
    "no field": lambda: filling(dataclass_of_jax(), __post_init__=total),
    "a field that init leaves out": lambda: filling(
        lambda cls: jax.tree_util.register_dataclass(
            dataclasses.dataclass(cls), ["weight", "scale"], []
        ),
        __post_init__=total,
        total=dataclasses.field(init=False),
        annotations={"total": Any},
    ),
    "refused": lambda: filling(dataclass_of_jax(), __post_init__=refuse),
}


@pytest.mark.parametrize("make", ATTRIBUTES.values(), ids=ATTRIBUTES)
def test_an_attribute_that_only_the_constructor_makes(make: Any) -> None:
    """Past the constructor it would be missing: an error with path, class and cure."""
    node = make()(jnp.ones(2), jnp.full(2, 5.0))
    for call in (
        lambda: pj.grad(lambda tree: product(tree["a"][0]), wrt=is_one)({"a": [node]}),
        lambda: pydag.dag_partition(is_one, {"a": [node]}),
    ):
        with pytest.raises(TypeError, match=r"Filling can't be built with scale=None") as caught:
            call()
        text = "\n".join([str(caught.value), *caught.value.__notes__])
        assert "total would be missing\n  Declare each as a field" in text
        assert "['a'][0]" in text


def test_a_constructor_that_keeps_none_runs() -> None:
    """What it computes beside the fields is there, as in JAX."""

    def measure(self: Any) -> None:
        self.total = self.weight.sum()

    node = filling(dataclass_of_jax(), __post_init__=measure)(jnp.ones(2), jnp.full(2, 5.0))
    gradient = pj.grad(product, wrt=is_one)(node)
    assert (gradient.scale, gradient.total) == (None, 10.0)


def test_values_that_a_class_refuses_are_refused() -> None:
    """A flag beside other values is the user's: what the constructor says of these counts."""

    @dataclass_of_jax()
    class Rate:
        rate: Any
        flag: bool

        def __post_init__(self) -> None:
            if self.rate > 1:
                raise ValueError("a rate is at most 1")

    with pytest.raises(ValueError, match="a rate is at most 1"):
        pydag.dag_map(lambda x: x if x is True else 3 * x, Rate(0.5, True))  # type: ignore[call-arg]  # made by an untyped decorator


# --- the same, opened and built by functions ---
def by_functions(register: Callable[[Any], object]) -> Any:
    """A class whose unflatten function runs a constructor that fills in."""
    cls = type("ByHand", (OwnInit,), {})
    register(cls)
    return cls


def opened(node: Any) -> Any:
    """The parts of such a node."""
    return (node.weight, node.scale), None


def opened_with_keys(node: Any) -> Any:
    """The same with JAX's keys."""
    keys = map(jax.tree_util.GetAttrKey, ("weight", "scale"))
    return tuple(zip(keys, *opened(node)[:1], strict=True)), None


REGISTERING: dict[str, tuple[str, Callable[[Any], object]]] = {
    "pydag": (
        r"\[1\]",
        lambda cls: pydag.register_pydag_node(cls, opened, lambda _, parts: cls(*parts)),
    ),
    "pydag, with names": (
        r"\['scale'\]",
        lambda cls: pydag.register_pydag_node(
            cls, lambda x: (*opened(x), ("weight", "scale")), lambda _, parts: cls(*parts)
        ),
    ),
    "JAX": (
        r"\[1\]",
        lambda cls: jax.tree_util.register_pytree_node(cls, opened, lambda _, parts: cls(*parts)),
    ),
    "JAX, with keys": (
        r"(\.scale|\[1\])",  # where paths have no names, numbers
        lambda cls: jax.tree_util.register_pytree_with_keys(
            cls, opened_with_keys, lambda _, parts: cls(*parts)
        ),
    ),
    "optree": (
        r"\[1\]",
        lambda cls: optree.register_pytree_node(
            cls, opened, lambda _, parts: cls(*parts), namespace=EVERYWHERE
        ),
    ),
}


@pytest.mark.parametrize(("step", "register"), REGISTERING.values(), ids=REGISTERING)
def test_a_node_by_hand_that_fills_in_is_an_error(step: str, register: Any) -> None:
    """Such a node is opened once more: something else for None is an error with path and cure."""
    tree = {"a": [by_functions(register)(jnp.ones(2), jnp.full(2, 5.0))]}
    says = rf"(?s)None was put at {step} of a ByHand.*object.__new__.*\['a'\]\[0\]"
    for call in (
        lambda: pj.grad(lambda tree: product(tree["a"][0]), wrt=is_one)(tree),
        lambda: pydag.dag_partition(is_one, tree),
        lambda: pj.tree.map(lambda _: None, tree),
        lambda: pydag.dag_map(lambda _: None, tree),
        lambda: pydag.dag_structure(tree).unflatten([tree["a"][0].weight, None]),
    ):
        with pytest.raises(TypeError, match=says):
            call()
    assert pydag.dag_map(lambda x: x, tree)["a"][0].scale.tolist() == [5.0, 5.0]


def test_a_node_by_hand_that_keeps_none() -> None:
    """Nothing is said, and it is opened once more only where None was put."""
    count = [0]

    class Keeps(OwnInit):
        pass

    def flatten(node: Any) -> Any:
        count[0] += 1
        return opened(node)

    def unflatten(_: Any, parts: Any) -> Any:
        node: Any = object.__new__(Keeps)
        node.weight, node.scale = parts
        return node

    pydag.register_pydag_node(Keeps, flatten, unflatten)
    node = Keeps(1.0, 5.0)
    chosen, others = pydag.dag_partition(lambda x: x == 1.0, node)
    assert (chosen.scale, others.weight, count[0]) == (None, None, 3)
    count[0] = 0
    assert pydag.dag_map(lambda x: x, chosen).scale is None
    assert count[0] == 1


def test_a_node_by_hand_that_leaves_none_out() -> None:
    """Children that it has only where they aren't None are no default."""

    class Sparse(OwnInit):
        pass

    def flatten(node: Any) -> Any:
        has_scale = node.scale is not None
        return (node.weight, node.scale) if has_scale else (node.weight,), None

    def unflatten(_: Any, parts: Any) -> Any:
        node: Any = object.__new__(Sparse)
        node.weight, node.scale = parts if len(parts) == 2 else (*parts, None)
        return node

    pydag.register_pydag_node(Sparse, flatten, unflatten)
    chosen, _ = pydag.dag_partition(lambda x: x == 1.0, Sparse(1.0, 5.0))
    assert (chosen.weight, chosen.scale) == (1.0, None)


X = jnp.arange(3.0)


class Tied(pj.Module):
    """A tie, integers, and configuration."""

    def __init__(self) -> None:
        self.w = jnp.arange(3.0)
        self.tied, self.steps, self.act, self.heads = self.w, jnp.int32(4), jnp.tanh, 4


def loss(m: Any) -> Any:
    """The sum of squares, tied: its derivative is 4 times the array."""
    return (m.w * m.w + m.tied * m.tied).sum()


LIKE_A_GRADIENT: dict[str, Callable[[Any], Any]] = {
    "grad": pj.grad(loss),
    "value_and_grad": lambda m: pj.value_and_grad(loss)(m)[1],
    "jit of grad": pj.jit(pj.grad(loss)),
    "jacrev": pj.jacrev(loss),
    "jacfwd": pj.jacfwd(loss),
    "vjp": lambda m: pj.vjp(loss, m)[1](1.0)[0],
}


@pytest.mark.parametrize("name", LIKE_A_GRADIENT)
def test_a_gradient_has_the_form_of_its_model(name: str) -> None:
    """Class, sharing and configuration stay; None stands where it isn't by."""
    found = LIKE_A_GRADIENT[name](Tied())
    assert type(found) is Tied
    assert found.w.tolist() == [0.0, 4.0, 8.0]
    assert found.w is found.tied
    assert found.steps is None
    assert found.act is jnp.tanh
    assert found.heads == 4


def test_jax_maps_over_a_model_and_its_gradient() -> None:
    """The gradient has the structure that JAX sees of a model without integers."""

    class Net(pj.Module):
        def __init__(self) -> None:
            self.w, self.heads = jnp.arange(3.0), 4
            self.tied = self.w

    net = Net()
    new = jax.tree.map(lambda p, g: p - g, net, pj.grad(loss)(net))
    assert new.w.tolist() == [0.0, -3.0, -6.0]
    assert new.w is new.tied
    assert new.heads == 4


class OfEquinox(eqx.Module):
    """In which JAX sees configuration as leaves."""

    w: Any
    heads: Any


@flax.struct.dataclass
class OfFlax:
    """The same of flax."""

    w: Any
    heads: Any


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class RefusesNone:
    """It refuses None when it is built."""

    w: Any
    heads: Any

    def __post_init__(self) -> None:
        if self.w.shape != (3,) or self.heads.dtype != jnp.int32:
            raise ValueError("other shapes")


@pytest.mark.parametrize("cls", [OfEquinox, OfFlax, RefusesNone])
def test_where_jax_sees_configuration_none_stands(cls: Any) -> None:
    """None stands in a class whose constructor refuses it, too; never for what was computed."""
    heads = jnp.int32(4) if cls is RefusesNone else 4
    found = pj.grad(lambda m: (m.w**2).sum())(cls(X, heads))
    assert type(found) is cls
    assert found.w.tolist() == [0.0, 2.0, 4.0]
    assert found.heads is None
    model = cls(X, heads)
    assert pj.tree.map(lambda p, g: p - g, model, found).w.tolist() == [0.0, -1.0, -2.0]


def test_what_wrt_leaves_out_is_none() -> None:
    """In records and dicts configuration is None, too: a head count must not be doubled."""
    found = pj.grad(lambda m: (m["w"] * m["v"]).sum(), wrt="*w*")({"w": X, "v": X + 1, "heads": 4})
    assert found["w"].tolist() == [1.0, 2.0, 3.0]
    assert (found["v"], found["heads"]) == (None, None)


@pytest.mark.parametrize("map_over", [pj.tree.map, jax.tree.map])
def test_a_number_in_the_place_of_an_array_becomes_one(map_over: Any) -> None:
    """Masks and sizes keep structure and sharing; so do axes."""
    sizes = map_over(lambda x: x.ndim, Tied())
    assert sizes.w.shape == ()
    assert (int(sizes.w), int(sizes.steps), sizes.heads) == (1, 0, 4)
    assert sizes.w is sizes.tied
    assert pydag.dag_structure(sizes) == pydag.dag_structure(Tied())


def test_an_object_of_the_callers_comes_back_as_itself() -> None:
    """A ref always; containers and modules of arguments that are updated."""
    ref, model = jax.new_ref(X), Tied()
    assert pj.jit(lambda r: {"r": r})(ref)["r"] is ref

    def step(m: Any) -> Any:
        m.w = m.tied = m.w + 1
        return [m]

    for _ in range(2):
        assert pj.jit(step, update_argnums=0)(model)[0] is model
    assert model.w.tolist() == [2.0, 3.0, 4.0]


def act(held: Any, inner: Any = None) -> Any:
    """A function that has something in an attribute."""

    def act(y: Any) -> Any:
        return y

    act.held = held  # type: ignore[attr-defined]  # what is tested
    return act


def cyclic(items: list[Any]) -> list[Any]:
    """A list that also holds itself."""
    items.append(items)
    return items


HELD: dict[str, tuple[Callable[[Any], Any], str]] = {
    "itself": (act, r"result\['f'\]"),
    "in a list": (lambda x: act([1, {"k": x}]), r"result\['f'\]"),
    "below": (lambda x: act(act(x)), r"result\['f'\]"),
    "of a partial": (lambda x: functools.partial(act(x), 2), r"result\['f'\]"),
    "of jitted": (lambda x: jax.jit(act(x)), r"result\['f'\]"),
    "wrapped": (lambda x: functools.wraps(act(x))(lambda y: y), r"result\['f'\]"),
    "in a tuple": (lambda x: (act(x), 1), r"result\['f'\]\[0\]"),
    "in a dict": (lambda x: {"g": [act(x)]}, r"result\['f'\]\['g'\]\[0\]"),
    "of a node": (lambda x: jax.tree_util.Partial(act(x), x), r"result\['f'\].func"),  # type: ignore[no-untyped-call]  # JAX gives it no types
    "of a cycle": (lambda x: act(cyclic([x])), r"result\['f'\]"),
}

TRACED: dict[str, Callable[[Any], Any]] = {
    "jit": lambda f: pj.jit(f)(X),
    "vmap": lambda f: pj.vmap(f)(X),
    "checkpoint": lambda f: pj.checkpoint(f)(X),
    "eval_shape": lambda f: pj.eval_shape(f, X),
    "grad": lambda f: pj.grad(lambda x: (x.sum(), f(x)), has_aux=True)(X),
}


@pytest.mark.parametrize("name", HELD)
@pytest.mark.parametrize("wrap", TRACED)
def test_a_tracer_in_an_attribute_of_a_function(name: str, wrap: str) -> None:
    """Such a tracer is gone when the function has returned: an error has the function's path."""
    make, path = HELD[name]
    with pytest.raises(
        TypeError, match=path.replace("result", r"result(\[1\])?") + " is [\\s\\S]*trac"
    ):
        TRACED[wrap](lambda x: {"f": make(x), "y": x})


def test_other_things_in_attributes_of_functions() -> None:
    """Such things are the caller's matter."""
    for held in (3, X, [X], pj.jit(act(2)), jax.jit(act(2)), act(X)):
        function = act(held)
        assert pj.jit(lambda x, f=function: {"f": f, "y": x})(X)["f"] is function


NUMPYS: dict[str, Any] = {
    "flag": np.bool_(True),
    "float32": np.float32(3),
    "int64": np.int64(3),
    "complex": np.complex64(2j),
    "bfloat16": np.asarray(2, jnp.bfloat16)[()],
    "array": np.arange(3.0),
    "float0": np.zeros((), jax.dtypes.float0),
    "float0 array": np.zeros((2,), jax.dtypes.float0),
    "dict": {"a": np.bool_(False), "b": np.zeros(2)},
    "tuple": (np.float32(1), np.arange(2)),
}

RETURNING: dict[str, Callable[[Any, Callable[[Any], Any]], Any]] = {
    "jit": lambda lib, f: lib.jit(f)(X),
    "jit twice": lambda lib, f: [g := lib.jit(f), g(X), g(X)][1:],
    "checkpoint": lambda lib, f: lib.checkpoint(f)(X),
    "value_and_grad": lambda lib, f: lib.value_and_grad(f)(X),
    "vjp": lambda lib, f: lib.vjp(f, X)[0],
    "linearize": lambda lib, f: lib.linearize(f, X)[0],
    "vmap": lambda lib, f: lib.vmap(f)(X),
    "vmap, one axis each": lambda lib, f: lib.vmap(
        lambda x: {"a": f(x), "b": x}, out_axes={"a": None, "b": 0}
    )(X),
    "cond": lambda lib, f: getattr(lib, "lax", lib).cond(True, f, f, X),
    "scan": lambda lib, f: getattr(lib, "lax", lib).scan(lambda c, x: (c, f(x)), 1.0, X),
}


def outcome(call: Callable[[], Any]) -> Any:
    """The kinds, types and values of a result; or the type of the error."""
    try:
        result = call()
    except Exception as error:
        return type(error)
    leaves, structure = jax.tree.flatten(result)
    found = [(type(x), jnp.result_type(x), np.shape(x), str(np.asarray(x))) for x in leaves]
    return found, structure


@pytest.mark.parametrize("value", NUMPYS.values(), ids=NUMPYS)
@pytest.mark.parametrize("call", RETURNING.values(), ids=RETURNING)
@pytest.mark.parametrize("is_disabled", [False, True])
def test_a_result_of_numpys_comes_out_as_jax_gives_it(
    value: Any, call: Any, is_disabled: bool
) -> None:
    """Scalars, flags, arrays and float0: NumPy has a function `fill` of its own."""
    with jax.disable_jit(is_disabled):
        assert outcome(lambda: call(pj, lambda _: value)) == outcome(
            lambda: call(jax, lambda _: value)
        )


def test_the_derivative_by_an_integer_comes_out() -> None:
    """An array of float0, bare or in a dict, also where nothing is compiled."""

    def derivative(i: Any) -> Any:
        return jax.grad(lambda i: i * 2.0, allow_int=True)(i)

    for is_disabled in (False, True):
        with jax.disable_jit(is_disabled):
            for found in (
                pj.jit(derivative)(jnp.int32(1)),
                pj.jit(lambda i: {"a": derivative(i)})(jnp.int32(1))["a"],
                pj.grad(lambda i: i * 2.0, allow_int=True)(jnp.int32(1)),
            ):
                assert (found.dtype, found.shape) == (jax.dtypes.float0, ())


class Filling(pj.Module):
    """Has the names by which results of the core were known."""

    def __init__(self, tree: Any) -> None:
        self.tree = tree

    def fill(self, _: Any) -> None:
        raise AssertionError("this is the user's")


def test_the_names_of_a_class_say_nothing() -> None:
    """A class with a function `fill` and a property `tree` is what it is."""
    for wrap in (pj.jit, pj.checkpoint, lambda f: f):
        with jax.disable_jit(wrap is not pj.jit):
            assert wrap(Filling)(X).tree.tolist() == [0.0, 1.0, 2.0]


class Doubling:
    """A callable with the attributes of a partial."""

    func, args, keywords = None, (), ("a",)

    def __call__(self, x: Any) -> Any:
        return 2 * x


def test_a_callable_with_keywords_is_no_partial() -> None:
    """In a `Partial` it is an object of a class that isn't registered."""
    with pytest.raises(TypeError, match=r"args\[0\].func is an object of .*Doubling"):
        pj.jit(lambda f, x: f(x))(jax.tree_util.Partial(Doubling()), X)  # type: ignore[no-untyped-call]  # JAX's class
