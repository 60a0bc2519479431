# SPDX-License-Identifier: Apache-2.0
"""`dag_copy(deep=True)`: what `copy.deepcopy` copies is copied, once for each object."""

import collections
import copy
import random
import threading
from typing import Any

import numpy as np
import pytest

import pydag


@pydag.register_fields
class Node:
    """A node with any attributes."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


class Plain:
    """A leaf, which may refer to anything."""

    owner: Any
    refers: Any
    to: Any


def difference(a: Any, b: Any, original: Any) -> str:
    """Where two copies of an original part in type, value or sharing; tuples have no identity.

    A copy that has an object of the original which the other has not is another difference.
    """
    twins: dict[int, tuple[Any, Any]] = {}
    pending = [(a, b, original, "tree")]
    while pending:
        x, y, old, path = pending.pop()
        if type(x) is not type(y):
            return f"{path}: {type(x)} and {type(y)}"
        if not isinstance(x, tuple):
            if (x is old) != (y is old):
                return f"{path}: one is the original"
            if id(x) in twins:
                if twins[id(x)][1] is not y:
                    return f"{path}: shared on one side only"
                continue
            twins[id(x)] = x, y
        if isinstance(x, np.ndarray):
            if x.strides != y.strides or x.dtype != y.dtype:
                return f"{path}: {x.strides} and {y.strides}"
            if x.dtype != object and x.tobytes() != y.tobytes():
                return f"{path}: other elements"
            x, y, old = x.tolist(), y.tolist(), old.tolist()
        below: Any
        if isinstance(x, dict):
            below = [list(item) for item in x.items()], [list(item) for item in y.items()]
            below += ([list(item) for item in old.items()],)
        elif isinstance(x, list | tuple | collections.deque):
            below = x, y, old
        elif isinstance(x, Node | Plain):
            below = [list(z.__dict__.items()) for z in (x, y, old)]
        elif x != y:
            return f"{path}: {x!r} and {y!r}"
        else:
            continue
        if len(below[0]) != len(below[1]):
            return f"{path}: other lengths"
        rows = enumerate(zip(*below, strict=True))
        pending += [(p, q, o, f"{path}[{i}]") for i, (p, q, o) in rows]
    return ""


class Graph:
    """Random nodes and leaves: nodes hold what was made before, plain objects anything."""

    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)
        self.made: list[Any] = [np.arange(4.0), Plain(), 3, "text", None]
        self.plain: list[Plain] = [self.made[1]]
        for _ in range(self.choose.randrange(25)):
            self.made.append(self.one())
        for leaf in self.plain:
            leaf.refers = [self.any(), {self.any_key(): self.any()}]
            leaf.to = self.any()
        self.root = [self.any() for _ in range(4)]

    def any(self) -> Any:
        """Something that was made."""
        return self.choose.choice(self.made)

    def any_key(self) -> Any:
        """A key: text, a number, a tuple, or an object."""
        return self.choose.choice(["a", 1, (1, "b"), self.plain[-1]])

    def one(self) -> Any:
        """A new node or leaf."""
        some = [self.any() for _ in range(self.choose.randrange(4))]
        pairs = [(self.any_key(), x) for x in some]
        makers: list[Any] = [
            lambda: some,
            lambda: tuple(some),
            lambda: dict(pairs),
            lambda: collections.OrderedDict(pairs),
            lambda: collections.defaultdict(list, pairs),
            lambda: collections.deque(some, 5),
            lambda: Node(**{f"x{i}": x for i, x in enumerate(some)}),
            lambda: np.asfortranarray(np.ones((2, 3))),
            lambda: {1, 2},
            lambda: bytearray(b"abc"),
            self.new_plain,
            self.array_of_objects,
        ]
        return self.choose.choice(makers)()

    def new_plain(self) -> Plain:
        """Another plain object."""
        self.plain.append(Plain())
        return self.plain[-1]

    def array_of_objects(self) -> Any:
        """An array with something in it."""
        array = np.empty(1, object)
        array[0] = self.any()
        return array


@pytest.mark.parametrize("start", range(0, 400, 50))
def test_random_graphs(start: int) -> None:
    """What is copied, and what is shared, is what `copy.deepcopy` gives, on random graphs."""
    for seed in range(start, start + 50):
        root = Graph(seed).root
        for _ in range(2):  # of a tree that is new to the core, and of one that isn't
            ours = pydag.dag_copy(root, deep=True)
            assert difference(ours, copy.deepcopy(root), root) == "", seed


def test_random_graphs_of_values() -> None:
    """Copies of containers that hold nothing but values are shared as `copy.deepcopy` does."""
    for seed in range(300):
        choose = random.Random(seed)
        made: list[Any] = [3, "text", None, 2.5, True, len, 1 << 70, b"x", int, (), [], {}]
        for _ in range(choose.randrange(1, 30)):
            some = choose.choices(made, k=choose.randrange(5))
            pairs = zip(["a", 1, (1, "b"), None, 2.5], some, strict=False)
            made.append(choose.choice([some, tuple(some), dict(pairs)]))
        root = made[-1]
        out = pydag.dag_copy(root, deep=True)
        assert difference(out, copy.deepcopy(root), root) == "", seed


@pytest.mark.parametrize("around", [lambda x: [x], lambda x: {"a": x}, lambda x: (1, [x], 2)])
def test_cycle_of_values(around: Any) -> None:
    """A list that contains itself raises, also if it holds nothing but values otherwise."""
    loop: list[Any] = [1, "a"]
    loop.append(around(loop))
    for tree in (loop, {"tree": [loop]}):
        with pytest.raises(pydag.CycleError):
            pydag.dag_copy(tree, deep=True)


def test_graph_without_objects() -> None:
    """Values, NumPy's arrays and containers are copied with their sharing and memory order."""
    w = np.asfortranarray(np.ones((2, 3)))
    tree: dict[str, Any] = {"a": [w, 1, "x"], "b": {"w": w}, "view": w.T, "f": len}
    out = pydag.dag_copy(tree, deep=True)
    assert out["a"][0] is out["b"]["w"] is not w
    assert out["a"][0].flags.f_contiguous
    assert not np.shares_memory(out["view"], w)
    assert out["f"] is len
    assert pydag.dag_copy([[1, 2], {"a": 3}], deep=True) == [[1, 2], {"a": 3}]


def test_object_that_refers_to_a_node() -> None:
    """An object that refers back to a node gets the new one, whichever kind of node it is."""
    for make in (
        lambda leaf: [leaf],
        lambda leaf: {"a": leaf},
        lambda leaf: collections.OrderedDict(a=leaf),
        lambda leaf: collections.deque([leaf]),
        lambda leaf: (leaf,),
        lambda leaf: Node(a=leaf),
    ):
        leaf = Plain()
        leaf.owner = make(leaf)
        out = pydag.dag_copy([leaf.owner, leaf], deep=True)
        assert out[1].owner is out[0]
        assert out[1] is not leaf


def test_registered_class() -> None:
    """A registered class is rebuilt by its functions, also where an object refers to it."""

    class Pair:
        def __init__(self, a: Any, lock: Any) -> None:
            self.a, self.lock = a, lock  # which can't be copied

    pydag.register_pydag_node(Pair, lambda p: ((p.a,), p.lock), lambda lock, c: Pair(c[0], lock))
    leaf = Plain()
    pair = Pair([leaf], threading.Lock())
    leaf.owner = pair.a
    out = pydag.dag_copy({"one": pair, "two": pair}, deep=True)
    assert out["one"] is out["two"] is not pair
    assert out["one"].lock is pair.lock
    assert out["one"].a[0].owner is out["one"].a


def test_options() -> None:
    """What a predicate keeps is copied as a leaf; with "nodes" each occurrence has a copy."""
    w = Plain()
    inner = [1]
    out = pydag.dag_copy([inner, inner, 2], lambda x: x is inner, deep=True)
    assert out[0] is out[1] is not inner
    first, second = pydag.dag_copy([w, w], deep=True, identity="nodes")
    assert first is not second


def test_leaf_that_cannot_be_copied() -> None:
    """The error of a leaf that can't be copied names its place; two ways to copy are refused."""
    with pytest.raises(TypeError, match="pickle") as info:
        pydag.dag_copy({"a": [threading.Lock()]}, deep=True)
    assert "tree['a'][0]" in info.value.__notes__[0]
    with pytest.raises(TypeError, match="not both"):
        pydag.dag_copy([1], leaf=copy.copy, deep=True)


class Hostile:
    """An object that spoils the memo while it is copied."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "Hostile":
        for copied in list(memo.values()):
            if isinstance(copied, list) and not copied:
                copied.append("spoiled")
            elif isinstance(copied, dict) and not copied:
                copied["spoiled"] = 1
        memo.clear()
        return Hostile()


def test_spoiled_memo() -> None:
    """A `__deepcopy__` that clears the memo and fills what is in it spoils only sharing."""
    shared: list[Any] = [np.ones(2)]
    tree: dict[str, Any] = {"a": shared, "b": [Hostile(), shared], "c": Hostile(), "d": shared}
    out = pydag.dag_copy(tree, deep=True)
    assert list(out) == ["a", "b", "c", "d"]
    assert out["a"][0].tolist() == out["d"][0].tolist() == [1.0, 1.0]


def test_deep_tree() -> None:
    """A tree deeper than Python's stack is copied, also with an object at its end."""
    tree: Any = [Plain()]
    for _ in range(5000):
        tree = [tree]
    out = pydag.dag_copy(tree, deep=True)
    while isinstance(out, list):
        assert out is not tree
        out, tree = out[0], tree[0]
    assert type(out) is Plain
    assert out is not tree


def test_arrays_of_jax() -> None:
    """Donation of the original doesn't reach the copy; keys and refs are copied, too."""
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    w = jnp.arange(4.0)
    ref = jax.new_ref(w)
    tree: dict[str, Any] = {"w": w, "tied": [w], "key": jax.random.key(0), "ref": ref}
    out = pydag.dag_copy(tree, deep=True)
    assert out["w"] is out["tied"][0] is not w
    jax.jit(lambda x: x + 1, donate_argnums=0)(w)
    ref[0] = 9.0
    assert out["w"].tolist() == out["ref"][...].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert jax.random.normal(out["key"]) == jax.random.normal(tree["key"])
