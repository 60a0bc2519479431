# SPDX-License-Identifier: Apache-2.0
"""`Module`, `Dag` and `register`; what a module holds as a number is configuration."""

from __future__ import annotations

import copy
import dataclasses
import functools
import pickle
import subprocess
import sys
from collections import OrderedDict, deque, namedtuple
from collections.abc import Iterable
from typing import Any, Generic, TypeVar, cast

import jax
import jax.numpy as jnp
import pytest
from jax_models import Net
from wrappers import WRAPPERS

import pydag
import pydag.jaxinterop as pj
from pydag.jaxinterop import Dag


class Module:
    """Every subclass is a module."""

    def __init_subclass__(cls) -> None:
        pydag.register_module(cls)


class Norm(Module):
    """An array, a number, a flag and a width."""

    def __init__(self, eps: Any = 0.5) -> None:
        self.scale = jnp.ones((2, 2, 2))
        self.eps = eps
        self.is_training = True
        self.shape: list[Any] = [2, (1, {"channels": 3})]

    def __call__(self, x: Any) -> Any:
        assert self.is_training is True
        assert type(self.eps) is float
        assert jnp.zeros(self.shape[0]).shape == (2,)
        return x * self.scale + self.eps


@pydag.register_fields
class Record:
    def __init__(self, x: Any) -> None:
        self.x = x


Pair = namedtuple("Pair", "a b")

HOLDERS: dict[str, Any] = {
    "itself": lambda x: x,
    "list": lambda x: [x],
    "tuple": lambda x: (x, [x]),
    "dict": lambda x: {"a": x},
    "OrderedDict": lambda x: OrderedDict(a=x),
    "deque": lambda x: deque([x]),
    "namedtuple": lambda x: Pair(x, [x]),
    "nested": lambda x: {"a": [(x, {"b": deque([x])})]},
}


@pytest.mark.parametrize("number", [True, 3, 0.5, 2j])
@pytest.mark.parametrize("holder", HOLDERS)
def test_the_nearest_registered_owner_counts(holder: str, number: Any) -> None:
    """Builtin containers are looked through; a record in a module holds data, and vice versa."""

    class Holder(Module):
        def __init__(self, content: Any) -> None:
            self.content = HOLDERS[holder](content)

    def kinds(tree: Any) -> Any:
        seen.append({isinstance(x, jax.core.Tracer) for x in pydag.dag_leaves(tree)})
        return 0

    seen: list[set[bool]] = []
    for tree in (Holder(number), Holder(Record(number)), Record(Holder(number)), [Holder(number)]):
        pj.jit(kinds)(tree)
    assert seen == [{False}, {True}, {False}, {False}]


@pytest.mark.parametrize("name", [n for n in WRAPPERS if n != "keep_sharing"])
def test_every_wrapper_leaves_configuration_alone(name: str) -> None:
    """What is a number of a module is the number inside, and in what comes out."""

    def f(tree: Any) -> Any:
        norm = tree["norm"]
        assert (norm.eps, norm.is_training) == (0.5, True)
        norm.scale = norm.scale * 2
        return tree

    norm = Norm()
    out = WRAPPERS[name](f)({"norm": norm, "same": norm})
    assert out["norm"] is out["same"]
    assert type(out["norm"].eps) is float
    assert out["norm"].is_training is True
    assert out["norm"].shape == [2, (1, {"channels": 3})]
    assert (out["norm"].scale == 2.0).all()


def test_a_number_that_is_configuration_and_data() -> None:
    """A list that a module and a dict hold: `SharingError`, with both paths."""

    class Holder(Module):
        def __init__(self, sizes: Any) -> None:
            self.sizes = sizes

    sizes = [1, 2]
    for f in (pj.jit(lambda *_: 0), pj.vmap(lambda *_: 0)):
        with pytest.raises(pydag.SharingError) as caught:
            f(Holder(sizes), {"sizes": sizes})
        assert "args[0].sizes[0]" in str(caught.value)
        assert "args[1]['sizes'][0]" in str(caught.value)
    arrays = [jnp.ones(2)]
    out = pj.jit(lambda *trees: trees)(Holder(arrays), {"sizes": arrays})
    assert out[0].sizes is out[1]["sizes"]


T = TypeVar("T")


def test_repr_is_a_view_unless_the_class_has_its_own() -> None:
    """A class's own is what it defines or inherits; what `@dataclass` writes isn't."""

    class Own(Net):
        def __repr__(self) -> str:
            return "own"

    class Below(Own):
        pass

    @dataclasses.dataclass
    class Data(pj.Module):
        w: Any
        n: int = 1

    assert repr(Net(jnp.ones(3))) == str(pydag.view(Net(jnp.ones(3))))
    assert (repr(Own(1.0)), repr(Below(1.0))) == ("own", "own")
    assert repr(Data(jnp.ones(2))) == str(pydag.view(Data(jnp.ones(2))))
    unfinished = object.__new__(Data)
    assert "Data object at" in repr(unfinished)


def test_class_keywords_generics_and_further_hooks() -> None:
    """Keywords reach the next `__init_subclass__`, `Generic` keeps its parameters."""
    seen = []

    class Tagged(pj.Module):
        def __init_subclass__(cls, tag: str = "", **options: Any) -> None:
            super().__init_subclass__(**options)
            seen.append((cls.__name__, tag))

    class Box(Tagged, Generic[T], tag="box"):
        def __init__(self, content: T) -> None:
            self.content, self.size = content, 1

    class IntBox(Box[int], tag="int"):
        pass

    class Mixed(Generic[T], Tagged):  # noqa: PYI059 (such an order, too)
        def __init__(self) -> None:
            self.w, self.size = jnp.ones(2), 1

    assert seen == [("Box", "box"), ("IntBox", "int"), ("Mixed", "")]
    made: list[Any] = [Box(jnp.ones(2)), Mixed()]
    int_box: Any = IntBox
    for tree in [*made, int_box(jnp.ones(2))]:
        assert len(jax.tree.leaves(tree)) == 1
        assert pj.tree.map(lambda x: x + 1, tree).size == 1


@pytest.mark.parametrize("options", [{}, {"frozen": True}, {"slots": True}, {"eq": False}])
def test_dataclasses(options: dict[str, Any]) -> None:
    """Fields that are marked static are structure, also where the decorator makes a new class."""

    class Layer(pj.Module):
        __annotations__ = {"w": Any, "n": int, "name": str}
        n = 3
        name = dataclasses.field(default="layer", metadata={"static": True})

    decorate: Any = dataclasses.dataclass(**options)
    layer = decorate(Layer)(jnp.ones(2))
    again = jax.tree.map(lambda x: x + 1, layer)
    assert (again.w.tolist(), again.n, again.name) == ([2.0, 2.0], 3, "layer")
    assert len(pydag.dag_leaves(layer)) == 2
    assert len(jax.tree.leaves(layer)) == 1


def test_register_module_registers_with_jax() -> None:
    """A class that JAX knows already stays as it is; `register` may say more afterwards."""

    @pydag.register_module
    class Plain:
        def __init__(self) -> None:
            self.w = self.v = jnp.ones(2)

    assert len(jax.tree.leaves(Plain())) == 1

    @pydag.register_module
    @jax.tree_util.register_pytree_node_class
    class Known:
        def tree_flatten(self) -> tuple[tuple[int, ...], None]:
            return (1, 2, 3), None

        @classmethod
        def tree_unflatten(cls, _: None, __: Any) -> Any:
            return cls()

    assert jax.tree.leaves(Known()) == [1, 2, 3]
    pj.register(Plain, identity="nodes")
    assert len(jax.tree.leaves(Plain())) == 2
    with pytest.raises(ValueError, match="Duplicate"):
        pj.register(Plain)
    with pytest.raises(ValueError, match="Duplicate"):
        pj.register(Known)


def test_modules_registered_before_the_import() -> None:
    """JAX knows them once `pydag.jaxinterop` is imported."""
    source = """
import pydag
@pydag.register_module
class Tied:
    def __init__(self):
        self.w = self.tied = 1.5j
import jax, numpy as np
before = len(jax.tree.leaves(Tied())), type(jax.tree.leaves(Tied())[0]).__name__
import pydag.jaxinterop
net = Tied()
net.w = net.tied = np.ones(2)
print(before, [x.shape for x in jax.tree.leaves(net)])
"""
    out = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert out.stdout == "(1, 'Tied') [(2,)]\n"


def test_annotated_fields_without_init() -> None:
    """Annotations make no `__init__`: an error about arguments says which decorator does."""

    class Layer(pj.Module):
        w: Any
        b: Any

    class Bare(pj.Module):
        pass

    class Base:
        def __init__(self, w: Any) -> None:
            self.w = w

    class Mixed(pj.Module, Base):
        pass

    cure = r"annotated fields \(w, b\) make none\n  Decorate it with @dataclasses.dataclass"
    layer: Any = Layer
    makers: list[Any] = [lambda: layer(1, 2), lambda: layer(w=1)]
    for make in makers:
        with pytest.raises(TypeError, match=cure):
            make()
    with pytest.raises(TypeError, match=r"Bare\(\) takes no arguments: the class has no __init__$"):
        cast(Any, Bare)(1)
    decorated: Any = dataclasses.dataclass(Layer)
    assert decorated(1, b=2).b == 2
    assert Mixed(3).w == 3
    assert vars(Bare()) == {}


@pytest.mark.parametrize("name", ["parameters", "state_dict", "forward", "to"])
def test_what_a_module_of_pytorch_has(name: str) -> None:
    """An `AttributeError` says what to write; any other name is as ever."""

    class Model(pj.Module):
        def __init__(self) -> None:
            self.w = jnp.ones(2)

    with pytest.raises(AttributeError, match=rf"'Model' object has no attribute '{name}'\n  \w"):
        getattr(Model(), name)
    with pytest.raises(AttributeError, match=r"has no attribute 'u'$"):
        getattr(Model(), "u")  # noqa: B009 (a type checker knows)
    assert not hasattr(Model(), "nothing")


class Tied(pj.Module):
    """Two names for one array, a list that holds it, and configuration."""

    def __init__(self, size: int) -> None:
        self.size, self.name, self.scale = size, "tied", None
        self.embed = self.unembed = jnp.ones(size)
        self.layers = [self.embed]

    @functools.cached_property
    def doubled(self) -> Any:
        return 2 * self.embed


@pytest.mark.parametrize(
    "changes",
    [{}, {"size": 3}, {"name": None}, {"scale": 2.0}, {"embed": 5}, {"layers": [], "name": "x"}],
)
def test_replace_of_a_module(changes: dict[str, Any]) -> None:
    """`copy.replace` gives a copy with other attributes; the rest are the same objects."""
    model = Tied(2)
    assert model.doubled.tolist() == [2, 2]
    before = dict(vars(model))
    new = type(model).__replace__(model, **changes)
    assert type(new) is Tied
    for name in ("size", "name", "scale", "embed", "unembed", "layers"):
        assert getattr(new, name) is changes.get(name, before[name])
    assert list(vars(new)) == ["size", "name", "scale", "embed", "unembed", "layers"]
    assert vars(model) == before
    if sys.version_info >= (3, 13):
        assert vars(copy.replace(model, **changes)).keys() == vars(new).keys()
        assert pydag.dag_structure(copy.replace(model)) == pydag.dag_structure(model)


def test_replace_of_what_a_module_lacks() -> None:
    """A name that is no attribute is a TypeError, also one of a method or of a cached property."""
    for name in ("head", "doubled", "__init__"):
        with pytest.raises(TypeError, match=rf"Tied has no attribute '{name}': \['embed', 'layers"):
            Tied(2).__replace__(**{name: 1})


def test_replace_of_slots_and_dataclasses() -> None:
    """Slots are replaced, too; of a dataclass it is Python's own function that does it."""

    class Slots(pj.Module):
        __slots__ = ("b", "w")

        def __init__(self) -> None:
            self.w, self.b = jnp.ones(2), 0.5

    @dataclasses.dataclass(frozen=True)
    class Frozen(pj.Module):
        w: Any
        rate: float = 0.5

    slots = Slots()
    assert slots.__replace__(b=0.25).w is slots.w
    assert slots.__replace__(b=0.25).b == 0.25
    assert slots.b == 0.5
    if sys.version_info >= (3, 13):
        frozen = Frozen(jnp.ones(2))
        new = copy.replace(frozen, rate=1.0)
        assert (new.w is frozen.w, new.rate, frozen.rate) == (True, 1.0, 0.5)


class Mean(pj.Module):
    """A running mean."""

    def __init__(self) -> None:
        self.mean = jnp.zeros(2)

    def __call__(self, x: Any) -> Any:
        self.mean = 0.5 * self.mean + 0.5 * x.mean(0)
        return x - self.mean


class Normed(pj.Module):
    """A norm and a weight."""

    def __init__(self, norm: Mean) -> None:
        self.norm, self.w = norm, jnp.eye(2)

    def __call__(self, x: Any) -> Any:
        return self.norm(x) @ self.w


class Adapted(pj.Module):
    """Computes what the block does, until `a` is trained."""

    def __init__(self, base: Normed) -> None:
        self.base, self.a = base, jnp.zeros((2, 2))

    def __call__(self, x: Any) -> Any:
        return self.base(x) + x @ self.a


class Stack(pj.Module):
    """Two blocks with one norm."""

    def __init__(self) -> None:
        norm = Mean()
        self.one, self.two = Normed(norm), Normed(norm)

    def __call__(self, x: Any) -> Any:
        return self.two(self.one(x))


def test_an_adapted_model_keeps_the_state_that_its_layers_share() -> None:
    """The mean of the norm is updated twice in a step, with the adapter and without it."""
    x = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    net = Stack()
    adapted: Any = pydag.dag_replace(net, net.one, Adapted(net.one))
    assert adapted.one.base.norm is adapted.two.norm
    step = pj.jit(lambda net, x: net(x), update_argnums=0)
    assert step(adapted, x).tolist() == [[-1.0, -1.0], [1.0, 1.0]]
    assert adapted.one.base.norm is adapted.two.norm
    assert adapted.two.norm.mean.tolist() == [1.0, 1.5]


structure: Any = jax.tree.structure


@pydag.register_fields
class Layer:
    """A weight and a name."""

    def __init__(self, w: Any, name: str = "layer") -> None:
        self.w = w
        self.name = name


def tied(value: float = 3.0) -> dict[str, Any]:
    """One layer, used twice, and something else."""
    layer = Layer(jnp.full(2, value))
    return {"encoder": layer, "decoder": layer, "bias": jnp.zeros(1)}


def loss(tree: Any) -> Any:
    """Uses the weight twice and the bias once."""
    return jnp.sum(tree["encoder"].w * tree["decoder"].w) + tree["bias"][0]


def assert_tied(tree: Any) -> None:
    """Asserts that `tree` shares as `tied` does."""
    assert tree["encoder"] is tree["decoder"]
    assert type(tree["encoder"]) is Layer
    assert tree["encoder"].name == "layer"


def test_the_leaves_are_the_distinct_leaves() -> None:
    """The leaves are those that JAX can trace, in pydag's order."""
    tree = tied()
    leaves = jax.tree.leaves(Dag(tree))
    assert [id(x) for x in leaves] == [id(tree["bias"]), id(tree["decoder"].w)]


def test_a_rebuilt_dag_builds_its_tree_once() -> None:
    """The tree is built when it is asked for, and tied."""
    dag = jax.tree.map(lambda x: x + 1, Dag(tied()))
    assert dag.tree is dag.tree
    assert_tied(dag.tree)
    assert dag.tree["encoder"].w.tolist() == [4.0, 4.0]


def test_equality_is_identity() -> None:
    """A Dag may be a key, and comparing runs no array code, as without `__eq__`."""
    dag = Dag(tied())
    assert dag == dag
    assert dag != Dag(dag.tree)
    assert len({dag, dag}) == 1


def test_repr() -> None:
    """The text shows structure, sharing and shapes, and its length is linear in the objects."""
    w = jnp.ones((2, 3))
    assert (
        repr(Dag({"a": w, "b": [w, 1.5]})) == "Dag({'a': &0 *, 'b': [*0, *]}, [float32[2,3], 1.5])"
    )
    tree: Any = w
    for _ in range(60):
        tree = [tree, tree]
    assert len(repr(Dag(tree))) < 2000


def test_plain_jit_and_donation() -> None:
    """Plain `jax.jit` takes and gives Dags, traces once, and donates a shared buffer once."""
    traces: list[str] = []

    def step(dag: Dag[Any]) -> Dag[Any]:
        traces.append("trace")
        assert_tied(dag.tree)
        return Dag(jax.tree.map(lambda x: x - 1, dag).tree)

    jitted = jax.jit(step, donate_argnums=0)
    dag = Dag(tied())
    for _ in range(3):
        given, dag = dag, jitted(dag)
        assert all(leaf.is_deleted() for leaf in jax.tree.leaves(given))
        assert_tied(dag.tree)
    assert dag.tree["encoder"].w.tolist() == [0.0, 0.0]
    assert traces == ["trace"]


def test_plain_grad_and_vmap() -> None:
    """The gradient of a Dag is a Dag; the leaves of one may be mapped over."""
    gradient = jax.grad(lambda dag: loss(dag.tree))(Dag(tied()))
    assert_tied(gradient.tree)
    assert gradient.tree["encoder"].w.tolist() == [6.0, 6.0]
    batch = jax.tree.map(lambda x: jnp.stack([x, x + 1]), Dag(tied()))
    assert jax.vmap(lambda dag: loss(dag.tree))(batch).tolist() == [18.0, 33.0]
    out = jax.vmap(lambda dag: Dag(dag.tree))(batch).tree
    assert_tied(out)


def test_a_dag_in_a_dag() -> None:
    """pydag sees a Dag as a node, so its leaves share with what is beside it."""
    w = jnp.ones(2)

    @pj.jit
    def f(dag: Dag[Any], beside: Any) -> Any:
        assert dag.tree["w"] is beside
        return dag, beside + 1

    dag, _ = f(Dag({"w": w, "v": w}), w)
    assert type(dag) is Dag
    assert dag.tree["w"] is dag.tree["v"]
    assert len(jax.tree.leaves(Dag([Dag([w]), w]))) == 1


@pytest.mark.parametrize(
    "copier", [copy.deepcopy, copy.copy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies(copier: Any) -> None:
    """A Dag may be copied and pickled, static leaves and all."""
    dag = copier(Dag([1.5, "text", [2.5]]))
    assert dag.tree == [1.5, "text", [2.5]]
    assert structure(dag) == structure(Dag([1.5, "text", [2.5]]))


# --- a Dag is a view of its tree ---
def test_what_is_written_into_the_tree_is_seen() -> None:
    """JAX, `spec` and `repr` see it, in a Dag of a tree and in one that JAX rebuilt."""
    layer: Any = Layer(jnp.ones(2))
    for dag in (Dag(layer), jax.tree.map(lambda x: x, Dag(layer))):
        tree = dag.tree
        tree.w = jnp.zeros(3)
        assert [leaf.shape for leaf in jax.tree.leaves(dag)] == [(3,)]
        assert jax.jit(lambda d: d.tree.w.shape[0])(dag) == 3
        assert repr(dag).endswith("[float32[3]])")
        tree.more = [tree.w, jnp.ones(1)]
        assert len(jax.tree.leaves(dag)) == 2
        assert dag.spec == pydag.dag_structure(tree)
        assert dag.tree is tree
        assert pickle.loads(pickle.dumps(dag)).tree.more[1].tolist() == [1.0]


def test_the_law_holds_until_the_tree_is_asked_for() -> None:
    """Anything may be put for the leaves; then the structure is that of the tree as it is."""
    w, v = jnp.ones(2), jnp.zeros(2)
    treedef = structure(Dag({"x": [w], "y": [v], "s": "text"}))
    for put in (w, "text", None, [w, v], {}, object(), (w, w)):
        dag = treedef.unflatten([put, put])
        assert structure(dag) == treedef.compose(structure(put))
        assert structure(jax.tree.map(lambda x: x, dag)) == structure(dag)
        assert dag.tree["x"][0] is dag.tree["y"][0] is put
    dag = treedef.unflatten([w, w])
    assert dag.tree["x"][0] is w
    assert structure(dag) == structure(Dag({"x": [w], "y": [w], "s": "text"}))
    dag.tree["s"] = "other"
    assert structure(dag) == structure(Dag({"x": [w], "y": [w], "s": "other"}))
    dag.tree["x"] = dag.tree.pop("x")
    assert list(jax.tree.map(lambda x: x, dag).tree) == ["y", "s", "x"]
    dag = treedef.unflatten([w, w])
    dag.tree["x"][0] = v
    assert structure(dag) == treedef


def test_a_change_that_is_refused() -> None:
    """A cycle, or an object that hides an array, is an error at the next flatten."""
    tree: Any = [jnp.ones(2)]
    dag = Dag(tree)
    dag.tree.append(dag.tree)
    with pytest.raises(pydag.CycleError):
        jax.tree.leaves(dag)
    dag.tree[1] = copy  # a module: nothing to trace
    assert len(jax.tree.leaves(dag)) == 1


def test_register() -> None:
    """Instances of a registered class flatten by themselves as a Dag of them would."""

    @pj.register
    @pydag.register_fields
    class Model:
        def __init__(self) -> None:
            self.a = self.b = jnp.ones(2)
            self.name = "net"

    model = Model()
    assert len(jax.tree.leaves(model)) == 1
    out = jax.tree.map(lambda x: x * 2, model)
    assert type(out) is Model
    assert out.a is out.b
    assert (out.a.tolist(), out.name) == ([2.0, 2.0], "net")
    assert structure(out) == structure(model)
    gradient = jax.jit(jax.grad(lambda m: jnp.sum(m.a * m.b)))(model)
    assert gradient.a is gradient.b
    assert gradient.a.tolist() == [2.0, 2.0]
    [(path, _)] = jax.tree.leaves_with_path(model)
    assert jax.tree_util.keystr(path) == ".a"
    out = jax.jit(lambda m: m, donate_argnums=0)(model)
    assert out.a is out.b
    assert pj.jit(lambda pair: pair)([out, out])[0].name == "net"


@pj.register
@pydag.register_fields
class Weights:
    """Two weights, which may be one, and a name."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b, self.name = a, b, "pair"


def test_an_instance_has_the_structure_that_it_has() -> None:
    """Who puts one object for two leaves has tied them; changes count from the next call on."""
    w, v = jnp.ones(2), jnp.zeros(2)
    one: Any = structure(Weights(w, v)).unflatten([w, w])
    assert one.a is one.b is w
    assert structure(one) == structure(copy.copy(one)) == structure(Weights(w, w))
    one.b = v
    assert structure(one) == structure(Weights(w, v))
    one.c = jnp.ones(1)
    assert len(jax.tree.leaves(one)) == 3
    one.name = "other"
    assert structure(one) != structure(jax.tree.map(abs, Weights(w, v)))


class LayersByName(pj.Module):
    def __init__(self) -> None:
        self.w, self.layers, self.n = jnp.ones(2), [jnp.ones(3), jnp.ones(4)], 3
        self.tied = self.w


@pytest.mark.parametrize(
    "tree", [LayersByName(), {"a": jnp.ones(2), "b.c": [jnp.ones(2)]}, jnp.ones(2)]
)
def test_paths_of_a_dag(tree: Any) -> None:
    """A `Dag` has its tree's paths, built by JAX or not, before and after its tree was changed."""
    dag = pj.Dag(tree)
    for one in (dag, jax.tree.map(lambda x: x + 1, dag)):
        keys = [jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(one)]
        assert [accessor.codify("") for accessor in pydag.dag_accessors(one)] == keys
    if isinstance(tree, dict):
        tree["z"] = jnp.ones(3)
        texts = [accessor.codify("") for accessor in pydag.dag_accessors(dag)]
        assert texts == [".tree['a']", ".tree['b.c'][0]", ".tree['z']"]


def test_a_dag_is_no_sequence() -> None:
    """The hints change nothing else: a Dag can't be iterated, and is copied and pickled."""
    dag: Any = pj.Dag({"a": 1.0})
    assert not isinstance(dag, Iterable)
    with pytest.raises(TypeError, match="not iterable"):
        iter(dag)
    assert not hasattr(dag, "__jax_array__")
    for other in (copy.copy(dag), copy.deepcopy(dag), pickle.loads(pickle.dumps(dag))):
        assert other.tree == {"a": 1.0}


MODULES = {
    "equinox": "import equinox as eqx; cell = eqx.nn.Identity()",
    "flax": "from flax import nnx; cell = nnx.Rngs(0)",
}


@pytest.mark.parametrize("library", MODULES)
def test_modules_without_the_boundary(library: str) -> None:
    """A module is a leaf without `pydag.jaxinterop`, and one warning says to import that."""
    pytest.importorskip(library)
    program = (
        f"import warnings, pydag; {MODULES[library]}\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    assert pydag.dag_leaves([cell, cell]) == [cell] == pydag.dag_leaves([cell])\n"
        "[warning] = caught\n"
        "print(warning.message, warning.filename)\n"
        "import pydag.jaxinterop\n"
        "assert not any(leaf is cell for leaf in pydag.dag_leaves([cell]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "Write `import pydag.jaxinterop` first" in done.stdout, done.stderr
    assert done.stdout.rstrip().endswith("<string>")
    assert done.returncode == 0, done.stderr
