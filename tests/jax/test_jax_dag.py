# SPDX-License-Identifier: Apache-2.0
"""`jaxinterop.Dag` and `register`: DAGs for code that calls plain JAX."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import pydag
import pydag.jaxinterop as pj
from pydag import jaxinterop
from pydag.jaxinterop import Dag

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
    """Those that JAX can trace, in pydag's order."""
    tree = tied()
    leaves = jax.tree.leaves(Dag(tree))
    assert [id(x) for x in leaves] == [id(tree["bias"]), id(tree["decoder"].w)]


def test_a_rebuilt_dag_builds_its_tree_once() -> None:
    """When it is asked for, and tied."""
    dag = jax.tree.map(lambda x: x + 1, Dag(tied()))
    assert dag.tree is dag.tree
    assert_tied(dag.tree)
    assert dag.tree["encoder"].w.tolist() == [4.0, 4.0]


def test_equality_is_identity() -> None:
    """As of objects without `__eq__`: a Dag may be a key, and comparing runs no array code."""
    dag = Dag(tied())
    assert dag == dag
    assert dag != Dag(dag.tree)
    assert len({dag, dag}) == 1


def test_repr() -> None:
    """It shows structure, sharing and shapes, and its length is linear in the objects."""
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

    @jaxinterop.jit
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
    """By JAX, by `spec` and by `repr`, in a Dag of a tree and in one that JAX rebuilt."""
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
    """Whatever is put for the leaves; then the structure is that of the tree as it is."""
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

    @jaxinterop.register
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
    assert jaxinterop.jit(lambda pair: pair)([out, out])[0].name == "net"


@jaxinterop.register
@pydag.register_fields
class Pair:
    """Two weights, which may be one, and a name."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b, self.name = a, b, "pair"


def test_an_instance_has_the_structure_that_it_has() -> None:
    """Who puts one object for two leaves has tied them; changes count from the next call on."""
    w, v = jnp.ones(2), jnp.zeros(2)
    one: Any = structure(Pair(w, v)).unflatten([w, w])
    assert one.a is one.b is w
    assert structure(one) == structure(copy.copy(one)) == structure(Pair(w, w))
    one.b = v
    assert structure(one) == structure(Pair(w, v))
    one.c = jnp.ones(1)
    assert len(jax.tree.leaves(one)) == 3
    one.name = "other"
    assert structure(one) != structure(jax.tree.map(abs, Pair(w, v)))


class Net(pj.Module):
    def __init__(self) -> None:
        self.w, self.layers, self.n = jnp.ones(2), [jnp.ones(3), jnp.ones(4)], 3
        self.tied = self.w


@pytest.mark.parametrize("tree", [Net(), {"a": jnp.ones(2), "b.c": [jnp.ones(2)]}, jnp.ones(2)])
def test_paths_of_a_dag(tree: Any) -> None:
    """So are the paths of a `Dag`, built by JAX or not, before and after its tree was changed."""
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
