"""The order in which dicts were filled: part of the key of what is compiled, inside and outside."""

from __future__ import annotations

import collections
import copy
import pickle
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from wrappers import WRAPPERS

import pydag
from pydag import jaxinterop
from pydag.jaxinterop import Dag

struct: Any = jax.ShapeDtypeStruct  # without types
A, B = jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([[0.0, 1.0], [1.0, 1.0]])
X = jnp.ones(2)
AB, BA = [6.0, 10.0], [7.0, 10.0]  # X @ A @ B and X @ B @ A


def net(layers: Any) -> Any:
    """The layers, one after the other, in the order of their dict."""
    y = X
    for layer in layers.values():
        y = y @ layer
    return y


def one(kind: Callable[..., Any] = dict) -> Any:
    """A first."""
    return kind({"first": A, "second": B})


def two(kind: Callable[..., Any] = dict) -> Any:
    """The equal dict with B first."""
    return kind({"second": B, "first": A})


def counted_places(tree: Any) -> Any:
    """Each layer times its place in the dict, from 1 on."""
    return {name: layer * (place + 1) for place, (name, layer) in enumerate(tree.items())}


def default_dict(items: Any) -> Any:
    return collections.defaultdict(list, items)


@pytest.mark.parametrize("around", ["", "jit"])
@pytest.mark.parametrize("name", WRAPPERS)
def test_in_every_wrapper(name: str, around: str) -> None:
    """Whatever was traced first: the function sees the dict's order, and the result has it."""
    wrapped = WRAPPERS[name](counted_places)
    if around:
        wrapped = jaxinterop.jit(wrapped)
    stacked = {"a": jnp.ones((2, 2)), "b": jnp.ones((2, 2))}
    for order in ("ab", "ba", "ab", "ba"):
        out = wrapped({key: stacked[key] for key in order})
        assert "".join(out) == order
        assert [float(out[key][0, 0]) for key in order] == [1.0, 2.0]


@pytest.mark.parametrize("kind", [dict, default_dict, collections.OrderedDict])
def test_each_kind_of_dict(kind: Any) -> None:
    """Dicts and defaultdicts are told apart by order, as OrderedDicts are."""
    f = jaxinterop.jit(net)
    assert [f(t(kind)).tolist() for t in (one, two, one)] == [AB, BA, AB]


def test_nested_dicts() -> None:
    """However deep the dict stands, in arguments by position and by name."""

    @pydag.register_fields
    class Model:
        def __init__(self, layers: Any) -> None:
            self.layers = layers

    f = jaxinterop.jit(lambda model, *, more: net(model.layers[0]["l"]) - net(more[0]))
    for given in (one, two, one):
        out = f(Model([{"l": given()}]), more=(given(),))
        assert out.tolist() == [0.0, 0.0]
    mixed = f(Model([{"l": one()}]), more=(two(),))
    assert mixed.tolist() == [-1.0, 0.0]


def test_two_parts_of_one_tree() -> None:
    """Only one of several dicts is in another order."""
    f = jaxinterop.jit(lambda tree: [net(layers) for layers in tree])
    for left in (one, two):
        for right in (one, two):
            expected = [AB if part is one else BA for part in (left, right)]
            for _ in range(3):  # or pydag warns that each compilation serves one call
                assert [out.tolist() for out in f([left(), right()])] == expected


def test_one_trace_for_each_order() -> None:
    """And no more: dicts that were filled alike share a trace."""
    seen: list[list[str]] = []

    @jaxinterop.jit
    def f(tree: Any) -> Any:
        seen.append(list(tree))
        return tree

    for given in (one, two, one, two, one):
        assert list(f(given())) == list(given())
    assert seen == [["first", "second"], ["second", "first"]]


def test_a_structure_that_was_forgotten() -> None:
    """Without what the core remembers, orders are still told apart, and found again."""
    traces: list[str] = []

    @jaxinterop.jit
    def f(tree: Any) -> Any:
        traces.append("trace")
        return net(tree)

    for given, expected in ((one, AB), (two, BA), (one, AB), (two, BA)):
        assert f(given()).tolist() == expected
        pydag._core.clear_caches()
    assert len(traces) == 2


def test_keys_that_are_no_strings() -> None:
    """They count like others; and equal keys of two types are two."""
    f = jaxinterop.jit(lambda tree: [list(map(repr, tree)), net(tree)])
    for keys in ((1, 2), (2, 1), (1.0, 2), (True, 2), ((1, "a"), (1, "b")), ((1, "b"), (1, "a"))):
        for _ in range(3):  # or pydag warns that each compilation serves one call
            names, out = f(dict(zip(keys, (A, B), strict=True)))
            assert names == list(map(repr, keys))
            assert out.tolist() == AB


def test_keyword_arguments() -> None:
    """Their order counts where the function can see it, and nowhere else."""
    seen: list[Any] = []

    def named(a: Any, *, b: Any, c: Any = 0) -> Any:
        seen.append((a, b, c))
        return a - b

    def of_all(**layers: Any) -> Any:
        seen.append(list(layers))
        return net(layers)

    f: Any = jaxinterop.jit(named, static_argnames="c")
    g: Any = jaxinterop.jit(of_all)
    for _ in range(2):
        assert f(a=3.0, b=1.0) == f(b=1.0, a=3.0) == 2.0
        assert f(a=3.0, b=1.0, c=5) == f(c=5, b=1.0, a=3.0) == 2.0
        assert f.lower(b=1.0, a=3.0).compile()(a=3.0, b=1.0) == 2.0
    assert [given[2] for given in seen] == [0, 5]
    seen.clear()
    assert [g(**given()).tolist() for given in (one, two, one, two)] == [AB, BA, AB, BA]
    assert seen == [["first", "second"], ["second", "first"]]
    with pytest.raises(TypeError, match="unexpected keyword argument 'd'"):
        f(b=1.0, d=2.0, a=3.0)


def test_the_order_of_the_result() -> None:
    """It is the one that the function gave it, for each order of the argument."""
    f = jaxinterop.jit(lambda d: ({k: d[k] for k in reversed(d)}, dict(d)))
    for given in (one, two, one):
        turned, same = f(given())
        assert (list(turned), list(same)) == (list(given())[::-1], list(given()))


def test_after_plain_jax() -> None:
    """A model that went through `jax.tree.map` has sorted keys: another order, another trace."""
    model = {"in": A, "hidden": B}
    f = jaxinterop.jit(net)
    assert f(model).tolist() == AB
    sorted_model = jax.tree.map(lambda x: x, model)
    assert list(sorted_model) == ["hidden", "in"]
    assert f(sorted_model).tolist() == net(sorted_model).tolist() == BA


def test_gradients() -> None:
    """The value and the gradient are those of the dict that was given."""
    f = jaxinterop.jit(jaxinterop.value_and_grad(lambda layers: jnp.sum(net(layers))))
    for given, expected in ((one, 16.0), (two, 17.0), (one, 16.0)):
        value, gradient = f(given())
        assert (float(value), list(gradient)) == (expected, list(given()))
        plain = jax.grad(lambda a, given=given: jnp.sum(net({**given(), "first": a})))(A)
        assert gradient["first"].tolist() == plain.tolist()


def test_ahead_of_time() -> None:
    """A compiled function that is called with another order says which dict it is about."""
    f = jaxinterop.jit(lambda model, x: net(model["layers"]) + x)
    compiled = f.lower({"layers": one()}, X).compile()
    assert compiled({"layers": one()}, X).tolist() == [7.0, 11.0]
    with pytest.raises(TypeError, match="Compile for these") as caught:
        compiled({"layers": two()}, X)
    assert str(caught.value).splitlines()[1:4] == [
        "args[0]['layers']",
        "  first:  a dict filled in the order ['first', 'second']",
        "  second: a dict filled in the order ['second', 'first']",
    ]
    assert f.lower({"layers": two()}, X).compile()({"layers": two()}, X).tolist() == [8.0, 11.0]


# --- where two structures have to be alike, dicts are matched by key ---


def turned(tree: Any) -> Any:
    """The same dict, filled the other way round."""
    return {key: tree[key] for key in reversed(tree)}


LOOPS: dict[str, Callable[[Any, Any], Any]] = {
    "scan": lambda f, t: jaxinterop.scan(lambda c, _: (f(c), None), t, length=2)[0],
    "fori_loop": lambda f, t: jaxinterop.fori_loop(0, 2, lambda _, c: f(c), t),
    "while_loop": lambda f, t: jaxinterop.while_loop(
        lambda c: c["n"] < 2, lambda c: f({**c, "n": c["n"] + 1}), {**t, "n": 0}
    ),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", LOOPS)
def test_a_carry_that_comes_back_in_another_order(name: str, compiled: bool) -> None:
    """It is matched by key. Each round sees the order that was given, and so does the result."""
    orders: list[list[str]] = []

    def body(carry: Any) -> Any:
        orders.append(list(carry))
        return turned({key: 2 * x if key != "n" else x for key, x in carry.items()})

    def run(tree: Any) -> Any:
        return LOOPS[name](body, tree)

    out = (jaxinterop.jit(run) if compiled else run)({"b": jnp.float32(1), "a": jnp.float32(3)})
    assert [key for key in out if key != "n"] == ["b", "a"]
    assert (float(out["b"]), float(out["a"])) == (4.0, 12.0)
    assert all([key for key in order if key != "n"] == ["b", "a"] for order in orders)


@pytest.mark.parametrize("first", [True, False])
def test_branches_that_fill_dicts_in_another_order(first: bool) -> None:
    """They are alike; the result has the order of the first, whichever is taken."""
    tree = {"b": jnp.float32(1), "a": jnp.float32(3)}
    branches: list[Any] = [turned, dict, turned]
    wraps: list[Any] = [lambda f: f, jaxinterop.jit]
    for wrap in wraps:
        out = wrap(lambda p, t: jaxinterop.cond(p, lambda t: t, turned, t))(first, tree)
        assert (list(out), float(out["a"])) == (["b", "a"], 3.0)
        out = wrap(lambda i, t: jaxinterop.switch(i, branches, t))(1, tree)
        assert (list(out), float(out["a"])) == (["a", "b"], 3.0)


def test_rules_that_fill_dicts_in_another_order() -> None:
    """A rule's result is that of the function, and a cotangent fits its argument, by key."""
    tree = {"b": jnp.float32(2), "a": jnp.float32(3)}

    def f(t: Any) -> Any:
        return {"y": t["a"] * t["b"], "x": t["a"]}

    def rule(primals: Any, tangents: Any) -> Any:
        return tuple(map(turned, jaxinterop.jvp(f, primals, tangents)))

    forward: Any = jaxinterop.custom_jvp(f)
    forward.defjvp(rule)
    backward: Any = jaxinterop.custom_vjp(f)

    def fwd(t: Any) -> Any:
        return turned(f(t)), t

    def bwd(t: Any, cotangent: Any) -> Any:
        y, x = cotangent["y"], cotangent["x"]
        return ({"a": y * t["b"] + x, "b": y * t["a"]},)

    backward.defvjp(fwd, bwd)
    for wrapped in (forward, backward):

        def loss(t: Any, wrapped: Any = wrapped) -> Any:
            return wrapped(t)["y"] + 10 * wrapped(t)["x"]

        wraps: list[Any] = [lambda g: g, jaxinterop.jit]
        for wrap in wraps:
            gradient = wrap(jaxinterop.grad(loss))(tree)
            assert {key: float(x) for key, x in gradient.items()} == {"b": 3.0, "a": 12.0}
            assert list(gradient) == ["b", "a"]
            assert list(wrap(wrapped)(tree)) == ["y", "x"]


def test_tangents_are_matched_by_key() -> None:
    """Cotangents and tangents may come in any order; what comes back has the primals'."""
    tree = {"b": jnp.float32(2), "a": jnp.float32(3)}
    same: Any = dict
    value, pullback = jaxinterop.vjp(same, tree)
    (cotangent,) = pullback({"a": jnp.float32(5), "b": jnp.float32(7)})
    assert list(value) == list(cotangent) == ["b", "a"]
    assert (float(cotangent["a"]), float(cotangent["b"])) == (5.0, 7.0)
    value, tangent = jaxinterop.jvp(same, (tree,), ({"a": jnp.float32(5), "b": jnp.float32(7)},))
    assert {key: float(x) for key, x in tangent.items()} == {"b": 7.0, "a": 5.0}


def test_other_keys_are_still_refused() -> None:
    """Only the order is let pass."""
    tree = {"b": jnp.float32(1), "a": jnp.float32(3)}
    with pytest.raises(TypeError, match="must be structured alike"):
        jaxinterop.fori_loop(0, 2, lambda _, c: {"b": c["b"], "c": c["a"]}, tree)
    with pytest.raises(TypeError, match="must be structured alike"):
        jaxinterop.cond(True, dict, lambda t: {"b": t["b"], "c": t["a"]}, tree)


# --- Dag ---


def test_the_order_is_in_the_structure_of_a_dag() -> None:
    """Plain JAX tells Dags of another order apart, and those of the same order not."""
    structure: Any = jax.tree.structure
    assert structure(Dag(one())) != structure(Dag(two()))
    assert structure(Dag([one()])) == structure(Dag([one()]))
    assert hash(structure(Dag(one()))) == hash(structure(Dag(one())))
    copiers: list[Any] = [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
    for copier in copiers:
        assert structure(copier(Dag(two()))) == structure(Dag(two()))
        assert list(copier(Dag(two())).tree) == ["second", "first"]


def test_plain_jax_and_dags() -> None:
    """Under plain `jax.jit`, `grad`, `checkpoint` and `scan` the answer is the dict's own."""
    f = jax.jit(lambda dag: net(dag.tree))
    again = jax.checkpoint(lambda dag: net(dag.tree))
    same = jax.jit(lambda dag: dag)
    for given, expected, total in ((one, AB, 16.0), (two, BA, 17.0), (one, AB, 16.0)):
        dag = Dag(given())
        assert f(dag).tolist() == again(dag).tolist() == expected
        assert list(same(dag).tree) == list(given())
        value, gradient = jax.value_and_grad(lambda d: jnp.sum(net(d.tree)))(dag)
        assert (float(value), list(gradient.tree)) == (total, list(given()))
        out = jax.lax.scan(lambda d, _: (d, net(d.tree)), dag, length=1)[1]
        assert out.tolist() == [expected]


def test_dags_of_another_order_do_not_mix() -> None:
    """Plain JAX, which can't match by key, refuses them, and shows the order."""
    with pytest.raises(ValueError, match=r"\* *, in the order \['second', 'first'\]}"):
        jax.tree.map(jnp.add, Dag(one()), Dag(two()))
    with pytest.raises(TypeError, match=r"in the order \['second', 'first'\]}"):
        jax.lax.scan(lambda dag, _: (Dag(turned(dag.tree)), None), Dag(one()), length=2)


def test_a_registered_class() -> None:
    """Instances that JAX sees as Dags: the order of a dict in an attribute counts."""

    @jaxinterop.register
    @pydag.register_fields
    class Model:
        def __init__(self, layers: Any) -> None:
            self.layers = layers

    f = jax.jit(lambda model: net(model.layers))
    assert [f(Model(t())).tolist() for t in (one, two, one)] == [AB, BA, AB]


# --- configuration in the structure ---


@pydag.register_fields(meta_fields=("meta",))
class Scaled:
    """A weight, and something else that is compared by `==`."""

    def __init__(self, meta: Any) -> None:
        self.w, self.meta = jnp.int32(7), meta


class Custom(Scaled):
    """The same with aux_data."""

    @classmethod
    def of(cls, meta: Any, children: Any) -> Any:
        built = cls(meta)
        (built.w,) = children
        return built


pydag.register_pydag_node(Custom, lambda x: ((x.w,), x.meta), Custom.of)

HASHABLE = [
    (2, 2.0, True + 1.0, 2),
    (1, True, 1.0),
    ((1, "a"), (True, "a")),
    (0.0, -0.0),
    (frozenset([1]), frozenset([True])),
    (np.float64(0.0), np.float64(-0.0)),
]


@pytest.mark.parametrize(
    ("cls", "metas"),
    [
        *((cls, metas) for cls in (Scaled, Custom) for metas in HASHABLE),
        (Custom, ({"a": 1, "b": 2}, {"b": 2, "a": 1})),
        (Custom, ([1], [1.0])),
    ],
)
def test_equal_configuration_that_can_be_told_apart(cls: Any, metas: tuple[Any, ...]) -> None:
    """Meta values that are equal, and of another type or order, don't share a trace."""
    f = jaxinterop.jit(lambda layer: repr(layer.meta))
    assert [f(cls(meta)) for meta in metas] == list(map(repr, metas))
    plain = jax.jit(lambda dag: Dag([dag.tree.w, repr(dag.tree.meta)]))
    assert [plain(Dag(cls(meta))).tree[1] for meta in metas] == list(map(repr, metas))


def test_equal_configuration_is_one() -> None:
    """Equal values that can't be told apart are traced for once."""
    traces: list[Any] = []
    f = jaxinterop.jit(lambda layer: traces.append(layer.meta))
    for _ in range(2):
        for meta in (300, (1, "a"), {"a": [1, 2]}, "text"):
            f(Custom(copy.deepcopy(meta)))
    assert traces == [300, (1, "a"), {"a": [1, 2]}, "text"]
