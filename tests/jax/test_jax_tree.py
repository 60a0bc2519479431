# SPDX-License-Identifier: Apache-2.0
"""`pydag.jaxinterop.tree`: `jax.tree`, for DAGs, with the eyes of the wrappers."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pydag
from pydag import jaxinterop
from pydag.jaxinterop import tree as pj_tree


@pydag.register_module
class Net:
    """A tied weight, a bias in a list, and configuration of each kind."""

    def __init__(self, depth: int = 3) -> None:
        self.w = self.tied = jnp.ones(3)
        self.biases = [jnp.zeros(2)]
        self.depth, self.is_on, self.name, self.act = depth, True, "net", jax.nn.relu


@pydag.register_module
class Pair:
    """Two modules."""

    def __init__(self) -> None:
        self.first, self.second = Net(), Net()


def test_names_and_signatures_are_those_of_jax() -> None:
    """Each function of `jax.tree` that there is here takes the same parameters."""
    for name in set(pj_tree.__all__) - {"Structure", "copy"}:
        ours = inspect.signature(getattr(pj_tree, name)).parameters.values()
        theirs = inspect.signature(getattr(jax.tree, name)).parameters.values()
        assert [(p.name, p.kind) for p in ours] == [(p.name, p.kind) for p in theirs], name


def test_a_real_copy() -> None:
    """Containers, modules, arrays and refs are new, and tied as they were; all else is the same."""
    w, ref, weak = jnp.ones(2), jax.new_ref(jnp.zeros(2)), jax.jit(lambda: 1.0)()
    net = Net()
    model = {
        "net": net,
        "again": net,
        "w": [w, w],
        "ref": [ref, ref],
        "key": jax.random.key(3),
        "host": np.arange(3),
        "weak": weak,
        "step": 3,
        "name": "run",
        "none": None,
    }
    new: Any = pj_tree.copy(model)
    assert new is not model
    assert new["net"] is new["again"]
    assert new["net"] is not net
    assert new["net"].w is new["net"].tied
    assert new["net"].w.tolist() == [1.0, 1.0, 1.0]
    assert (new["net"].depth, new["net"].act) == (3, net.act)
    assert new["w"][0] is new["w"][1]
    assert new["w"][0].unsafe_buffer_pointer() != w.unsafe_buffer_pointer()
    assert new["ref"][0] is new["ref"][1]
    new["ref"][0][...] = jnp.ones(2)
    assert ref[...].tolist() == [0.0, 0.0]
    assert (new["key"] == model["key"]).all()
    assert type(new["host"]) is np.ndarray
    new["host"][0] = 7
    assert model["host"].tolist() == [0, 1, 2]
    assert (new["weak"].weak_type, weak.weak_type) == (True, True)
    assert (new["step"], new["name"], new["none"]) == (3, "run", None)


def test_a_real_copy_is_donated_alone() -> None:
    """The original lives on; and the copy keeps the sharding of each array."""
    w = jax.device_put(jnp.ones(2), jax.devices()[0])
    model = {"a": w, "b": w}
    new: Any = pj_tree.copy(model)
    assert new["a"].sharding == w.sharding
    jaxinterop.jit(lambda m: jaxinterop.tree.map(lambda x: 2 * x, m), donate_argnums=0)(new)
    assert new["a"].is_deleted()
    assert not w.is_deleted()


def test_configuration_is_never_seen() -> None:
    """A map is given arrays alone, each once; numbers, flags, text and functions stay."""
    net = Net()
    seen: list[Any] = []

    def to_half(x: Any) -> Any:
        seen.append(x)
        return x.astype(jnp.bfloat16)

    cast = pj_tree.map(to_half, net)
    assert [x.shape for x in seen] == [(2,), (3,)]
    assert cast.w is cast.tied
    assert cast.w.dtype == jnp.bfloat16
    assert (cast.depth, cast.is_on, cast.name, cast.act) == (3, True, "net", jax.nn.relu)
    assert type(cast.depth) is int


def test_refs_keys_and_outlines_are_leaves() -> None:
    """Typed random keys, refs, and shapes with a dtype are data."""
    outline: Any = jax.ShapeDtypeStruct
    tree = [jax.random.key(0), jax.new_ref(jnp.ones(2)), outline((2,), jnp.float32)]
    assert all(map(lambda a, b: a is b, pj_tree.leaves(tree), tree))


def test_a_model_and_its_gradient() -> None:
    """Either may come first: None says that nothing is wanted, or that there is nothing."""
    net: Any = Net()
    net.count = jnp.int32(7)
    gradient = jaxinterop.grad(lambda net: jnp.sum(net.w * net.tied))(net)
    stepped = pj_tree.map(lambda p, g: p - g, net, gradient)
    assert stepped.w.tolist() == [-1.0, -1.0, -1.0]
    assert stepped.w is stepped.tied
    assert (stepped.depth, stepped.count) == (3, 7)
    decayed = pj_tree.map(lambda g, p: g + 0.5 * p, gradient, net)
    assert decayed.w.tolist() == [2.5, 2.5, 2.5]
    assert decayed.count is None
    assert decayed.depth == 3


def test_none_fits_everything() -> None:
    """None in a further tree stands for any part, and the part stays as it is."""
    tree: dict[str, Any] = {"net": Net(), "x": 1.0}
    out = pj_tree.map(lambda a, b: a + b, tree, {"net": None, "x": 2.0})
    assert out["x"] == 3.0
    assert out["net"].w is tree["net"].w
    assert pj_tree.map(lambda a, b: 0, {"a": None, "b": 1}, {"a": [1, 2], "b": 1}) == {
        "a": None,
        "b": 0,
    }


def test_a_rest_may_be_configured_in_another_way() -> None:
    """The rest's numbers, text and functions aren't compared."""
    other: Any = Net(depth=5)
    other.act, other.name = jnp.tanh, "other"
    mean = pj_tree.map(lambda a, b: (a + b) / 2, Net(), other)
    assert (mean.depth, mean.name) == (3, "net")


def test_a_rest_that_does_not_fit() -> None:
    """Another structure is a `ValueError`, two answers for one object a `SharingError`."""
    with pytest.raises(ValueError, match="at rest"):
        pj_tree.map(lambda a, b: a, Net(), {"w": 1.0})
    untied = Net()
    untied.tied = jnp.zeros(3)
    with pytest.raises(pydag.SharingError):
        pj_tree.map(lambda a, b: a, Net(), untied)
    x = jnp.ones(())
    with pytest.raises(pydag.SharingError, match=r"rest\[0\] gives one object two answers"):
        pj_tree.map(
            lambda a, b: a,
            {"a": [x], "b": {"c": x}, "n": 1},
            {"a": [1.0], "b": None, "n": 1},
        )


def test_a_mask_of_a_module_is_data() -> None:
    """Numbers in the place of arrays are seen: of the whole, its parts, and what holds it."""
    pair = Pair()
    mask = pj_tree.map(lambda x: x.ndim == 1, pair)
    assert pj_tree.leaves(mask) == [True] * 4
    assert pj_tree.all(mask)
    assert pj_tree.leaves(mask.second) == [True, True]
    assert pj_tree.leaves([mask.first, {"x": 2.0}]) == [True, True, 2.0]
    assert not pj_tree.all(pj_tree.map(lambda x: False, {"pair": pair}))
    assert pj_tree.structure(mask) == pj_tree.structure(pair)
    assert pj_tree.structure(mask.first) == pj_tree.structure(pair.first)
    assert jax.tree.leaves(pj_tree.map(lambda ok: not ok, mask)) == [False] * 4


@pytest.mark.parametrize(
    ("change", "is_equal"),
    [
        (lambda net: None, True),
        (lambda net: net.__dict__.update(dict.fromkeys(("w", "tied"), net.w + 1)), True),
        (lambda net: setattr(net, "tied", jnp.ones(3)), False),
        (lambda net: setattr(net, "depth", 4), False),
        (lambda net: setattr(net, "is_on", 1), False),
        (lambda net: setattr(net, "name", "other"), False),
        (lambda net: setattr(net, "act", jnp.tanh), False),
        (lambda net: setattr(net, "w", net.__dict__.pop("w")), False),
    ],
)
def test_structure_is_what_a_call_is_compiled_for(change: Any, is_equal: bool) -> None:
    """Two structures are equal if and only if `jit` traces once; hashes follow."""
    net, other = Net(), Net()
    change(other)
    traces = []
    traced = jaxinterop.jit(lambda net: traces.append(1))
    traced(net)
    traced(other)
    assert (len(traces) == 1) is is_equal
    structures = pj_tree.structure(net), pj_tree.structure(other)
    assert (structures[0] == structures[1]) is is_equal
    assert len(set(structures)) == len(traces)


def test_flatten_and_unflatten() -> None:
    """The two are inverse, and the number of leaves is checked."""
    leaves, treedef = pj_tree.flatten({"net": Net(), "step": 1})
    assert treedef.num_leaves == len(leaves) == 3
    again = pj_tree.unflatten(treedef, leaves)
    assert pj_tree.structure(again) == treedef
    assert again["net"].w is again["net"].tied is leaves[1]
    with pytest.raises(ValueError, match="3 leaves, and 2 were given"):
        pj_tree.unflatten(treedef, leaves[:2])


def test_paths_are_in_the_words_of_jax() -> None:
    """Paths are as JAX writes them; a shared leaf has its first."""
    pairs = pj_tree.leaves_with_path({"net": Net(), "x": (1.0,)})
    assert [jax.tree_util.keystr(path) for path, _ in pairs] == [
        "['net'].biases[0]",
        "['net'].tied",
        "['x'][0]",
    ]
    named = pj_tree.map_with_path(lambda path, x: jax.tree_util.keystr(path), [1.0, [2.0]])
    assert named == ["[0]", ["[1][0]"]]

    class Unnamed:
        def __init__(self, w: Any) -> None:
            self.w = w

    jax.tree_util.register_pytree_node(Unnamed, lambda x: ((x.w,), None), lambda _, c: Unnamed(*c))
    node = Unnamed(1.0)
    options: Any = {"is_leaf": lambda path, _: len(path) > 2, "is_leaf_takes_path": True}
    found = pj_tree.map_with_path(
        lambda path, x: jax.tree_util.keystr(path), [node, node], **options
    )
    assert (found[0] is found[1], found[0].w) == (True, "[0][<flat index 0>]")
    with pytest.raises(TypeError, match=r"doesn't say how the children of .*Unnamed'> are got"):
        pydag.dag_accessors(node)[0](node)


def test_is_leaf() -> None:
    """What `is_leaf` keeps whole is data, None as well; it may ask for paths."""
    tree = {"a": [1.0, 2.0], "b": None}
    assert pj_tree.leaves(tree, is_leaf=lambda x: isinstance(x, list)) == [[1.0, 2.0]]
    assert pj_tree.leaves(tree, is_leaf=lambda x: x is None) == [1.0, 2.0, None]
    [(path, leaf)] = pj_tree.leaves_with_path(
        tree, lambda path, _: jax.tree_util.keystr(path) == "['a']", is_leaf_takes_path=True
    )
    assert (jax.tree_util.keystr(path), leaf) == ("['a']", [1.0, 2.0])
    net = Net()
    assert pj_tree.leaves([net], is_leaf=lambda x: isinstance(x, Net))[0] is net


def test_transpose() -> None:
    """A model of pairs becomes a pair of models; the inner structure may be left out."""
    net = Net()
    pairs = pj_tree.map(lambda x: (x, x + 1), net)
    for inner in (pj_tree.structure((0.0, 0.0)), None):
        same, more = pj_tree.transpose(pj_tree.structure(net), inner, pairs)
        assert more.w is more.tied
        assert (same.w is net.w, more.w.tolist(), more.depth) == (True, [2.0, 2.0, 2.0], 3)


def test_broadcast() -> None:
    """A prefix becomes a whole tree, of data alone."""
    full = {"net": Net(), "x": 1.0}
    said = pj_tree.broadcast({"net": True, "x": False}, full)
    assert pj_tree.leaves(said) == [True, True, False]
    assert said["net"].depth == 3
    assert pj_tree.structure(said) == pj_tree.structure(full)


def test_names_of_children_are_asked_for_in_errors_alone() -> None:
    """`map` asks a class of JAX's registry for no keys, and an error has them in its path."""
    asked = []

    class Pair:
        def __init__(self, a: Any, b: Any) -> None:
            self.a, self.b = a, b

    def with_keys(pair: Pair) -> Any:
        asked.append(pair)
        key = jax.tree_util.GetAttrKey
        return ((key("a"), pair.a), (key("b"), pair.b)), None

    jax.tree_util.register_pytree_with_keys(
        Pair, with_keys, lambda _, parts: Pair(*parts), lambda pair: ((pair.a, pair.b), None)
    )
    assert pj_tree.map(lambda x: 2 * x, [Pair(1.0, 2.0), Pair(3.0, 4.0)])[1].b == 8.0
    assert not asked
    with pytest.raises(TypeError, match=r"^tree\[0\]\.b is an object"):
        pj_tree.map(lambda x: x, [Pair(1.0, object())])


def test_reduce_associative() -> None:
    """Each array counts once, in order; configuration doesn't. JAX's errors are JAX's."""
    net = Net()
    total = pj_tree.reduce_associative(lambda a, b: a + b, pj_tree.map(jnp.sum, [net, net]))
    assert float(total) == 3.0
    texts = pj_tree.reduce_associative(lambda a, b: f"({a}{b})", [1, (2, 3), {"a": 4}])
    assert texts == jax.tree.reduce_associative(lambda a, b: f"({a}{b})", [1, (2, 3), {"a": 4}])
    joined = pj_tree.reduce_associative(
        lambda a, b: a + b, [[1, 2], [3]], is_leaf=lambda x: len(x) > 0 and x[0] != [1, 2]
    )
    assert joined == [1, 2, 3]
    assert pj_tree.reduce_associative(max, {"name": "net"}, identity=0) == 0
    with pytest.raises(TypeError, match="identity"):
        pj_tree.reduce_associative(max, ())


def test_a_static_field() -> None:
    """`static` is as JAX's: the field is configuration in pydag's records and JAX's dataclasses."""

    @dataclasses.dataclass
    class Op:
        x: Any
        name: str = pj_tree.static(default="add")

    pydag.register_fields(Op)
    tree = [Op(w := jnp.ones(2)), Op(w)]
    assert len(pj_tree.leaves(tree)) == 1
    assert [op.name for op in pj_tree.map(lambda x: 2 * x, tree)] == ["add", "add"]


def test_states_that_start_as_one_are_untied() -> None:
    """A tied state against one that isn't: the error names `untie`, which helps in one call."""
    obs = jnp.zeros(2)
    first = {"obs": obs, "info": {"first": obs}}
    later = {"obs": jnp.ones(2), "info": {"first": obs}}

    def reset(x: Any, y: Any) -> Any:
        return jnp.where(True, x, y)

    for mapped in (pj_tree.map, pydag.dag_map):
        with pytest.raises(pydag.SharingError, match=r"pydag\.untie") as caught:
            mapped(reset, first, later)
        assert "tree.copy" not in str(caught.value)
        new = mapped(reset, pydag.untie(first), later)
        assert new["obs"] is not new["info"]["first"]


def test_what_is_remembered_of_a_structure() -> None:
    """What is static is remembered by the classes of the leaves; others are looked at anew."""

    def count(x: Any) -> int:
        return len(pj_tree.leaves({"x": x, "n": 2}))

    for _ in range(2):
        assert count(jnp.ones(2)) == count(np.ones(2)) == count(1.0) == 2
        assert count("text") == count(None) == 1
        for refused in (np.array(["a"], dtype=object), object(), {1, 2}):
            with pytest.raises(TypeError, match=r"tree\['x'\] is"):
                count(refused)
