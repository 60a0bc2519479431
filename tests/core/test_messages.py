# SPDX-License-Identifier: Apache-2.0
"""Errors say what, where, both sides and what to do, in under 2,000 characters."""

import functools
import itertools
import os
import re
import sys
import time
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from typing import Any

import optree
import pytest
from registering import Layer

import pydag
from pydag import _core

Point = namedtuple("Point", "x y")
Other = namedtuple("Other", "x y")


One = namedtuple("One", "x")
UNSORTED = {"b": 1, "a": 2}
MISMATCHES: dict[str, tuple[Any, Any]] = {
    "list for tuple": ((1,), [1]),
    "tuple for list": ([1], (1,)),
    "leaf for list": ([1], 7),
    "leaf for None": (None, 7),
    "length": ([1, 2], [1]),
    "list for dict": ({"a": 1}, [1]),
    "key": ({"a": 1}, {"b": 1}),
    "deque": (deque([1]), [1]),
    "no namedtuple": (Point(1, 2), (1, 2)),
    "namedtuple": (Point(1, 2), Other(1, 2)),
    "struct sequence": (time.gmtime(0), (1,)),
    "namedtuple of another size": (One(1), Point(1, 2)),
    "struct sequence of another size": (time.gmtime(0), os.times_result(range(5))),
    "struct sequence, shown": ([1], time.gmtime(0)),
    "keys of a dict": (UNSORTED, {"z": 1, "y": 2}),
    "keys of an OrderedDict": (OrderedDict(UNSORTED), {"z": 1, "y": 2}),
    "keys in an OrderedDict": (UNSORTED, OrderedDict(z=1, y=2)),
    "keys of a defaultdict": (defaultdict(int, UNSORTED), OrderedDict(z=1, a=2)),
    "keys in a defaultdict": (UNSORTED, defaultdict(list, z=1)),
    "keys that don't compare": (UNSORTED, {3: 1, "x": 2, (1,): 5}),
    "order of a dict": ([1], UNSORTED),
    "order of an OrderedDict": ([1], OrderedDict(z=1, a=2)),
    "length of a deque": ([1], deque([1], 5)),
    "deque of another size": (deque([1]), deque([1, 2], 5)),
}


@pytest.mark.parametrize("name", MISMATCHES)
def test_mismatches_are_told_as_by_optree(name: str) -> None:
    """The message about a rest that doesn't fit is optree's, word for word; then the place."""
    tree, rest = MISMATCHES[name]
    structure: Any = optree.tree_structure
    for wrap, place in ((lambda x: x, "tree"), (lambda x: {"k": [0, x]}, "tree['k'][1]")):
        with pytest.raises(ValueError) as theirs:  # noqa: PT011  # compared below
            structure(wrap(tree)).flatten_up_to(wrap(rest))
        with pytest.raises(ValueError) as ours:  # noqa: PT011  # compared below
            pydag.dag_structure(wrap(tree)).flatten_up_to(wrap(rest))
        assert str(ours.value) == f"{theirs.value}\n  at {place}"


def test_number_of_leaves() -> None:
    """The message about too few or too many leaves has both numbers, where both are known."""
    spec = pydag.dag_structure([1, (2, 3)])
    leaves: Any
    for leaves, message in (
        ([1], "Too few leaves for PyDagSpec; expected: 3, got: 1."),
        (iter([1]), "Too few leaves for PyDagSpec; expected: 3, got: 1."),
        (range(5), "Too many leaves for PyDagSpec; expected: 3, got: 5."),
        ((1, 2, 3, 4), "Too many leaves for PyDagSpec; expected: 3, got: 4."),
        (iter(range(5)), "Too many leaves for PyDagSpec; expected: 3."),
        (itertools.count(), "Too many leaves for PyDagSpec; expected: 3."),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            pydag.dag_unflatten(spec, leaves)


def test_cycle() -> None:
    """A cycle names its path and the ancestor that it returns to."""
    root: Any = {"layers": [0, Layer()]}
    root["layers"][1].w = (1, root["layers"])
    with pytest.raises(pydag.CycleError) as info:
        pydag.dag_flatten(root)
    assert "tree['layers'][1].w[1] is the list at tree['layers']" in str(info.value)
    assert isinstance(info.value, ValueError)


class Long:
    """Its text is endless."""

    def __repr__(self) -> str:
        return "x" * 10**6


class Broken:
    def __repr__(self) -> str:
        raise ZeroDivisionError


LONG: dict[str, Any] = {
    "text": "x" * 10**6,
    "no ASCII": "ü€😀" * 10**5,
    "surrogate": "\ud800" * 10**5,
    "number": 10**4000,
    "list": [["x" * 1000] * 1000] * 1000,
    "dict": {f"key{i}" * 100: "v" * 1000 for i in range(1000)},
    "OrderedDict": OrderedDict.fromkeys(("k" * 1000, "l"), "v" * 10**5),
    "long repr": Long(),
    "in a list": [Long()] * 100,
    "in a tuple": Point(Long(), Long()),
    "fields without names": type("Unnamed", (tuple,), {"_fields": 5})((Long(), 1)),
    "broken repr": Broken(),
    "broken class": type("Nobody", (), {"__class__": property(lambda _: 1 / 0)})(),
    "dicts in dicts": [{"a": {"b": {"c": {"d": {"e": {"f": Long()}}}}}}],
    "class": type("X" * 10**5, (), {}),
    "instance": type("X" * 10**5, (), {})(),
    "bytes": b"x" * 10**6,
}


@pytest.mark.parametrize("name", LONG)
def test_messages_stay_short(name: str) -> None:
    """Whatever stands in a tree, a message about it stays under 2,000 characters."""
    odd = LONG[name]
    works: list[Callable[[], Any]] = [
        lambda: pydag.dag_map(lambda x, y: x, [(1,)], [odd]),
        lambda: pydag.dag_map(lambda x, y: x, {"a": 1}, {"a": odd, "b": odd}.keys()),
        lambda: pydag.dag_map(lambda x, y: x, Layer(odd, w=1), Layer("m", w=1)),
        lambda: pydag.dag_map(lambda x, y: x, Layer(w=1), odd),
        lambda: pydag.dag_unflatten(odd, []),
        lambda: pydag.dag_flatten([1], is_leaf=odd),
        lambda: pydag.dag_flatten([1], identity=odd),
        lambda: pydag.dag_flatten([1], namespace=odd if not isinstance(odd, str) else 7),  # type: ignore[arg-type]  # meant
        lambda: pydag.dag_map(lambda x, y: x, [w, w], [[odd], [odd, 1]]),
        lambda: pydag.PyDagSpec.__new__(pydag.PyDagSpec).__setstate__(odd),
    ]
    w = [[1]]
    if odd.__hash__:
        works.append(lambda: pydag.dag_map(lambda x, y: x, {odd: [1]}, {odd: 2}))
        works.append(lambda: pydag.dag_map(lambda x, y: x, {odd: 1}, {"a": 2}))
        works.append(lambda: pydag.dag_map(lambda x: 1 // 0, {odd: {odd: [odd]}}))
    for work in works:
        with pytest.raises((ValueError, TypeError, ZeroDivisionError)) as info:
            work()
        assert 0 < len(str(info.value)) < 2000
        assert all(len(note) < 2000 for note in getattr(info.value, "__notes__", ()))


def test_names_of_attributes_in_paths() -> None:
    """A path shows attributes, keys, indices and a namedtuple's fields as code does."""
    tree = {"layers": [0, Layer(w=Point(1, {2: [time.gmtime(0)]}))]}
    with pytest.raises(ZeroDivisionError) as info:
        pydag.dag_map(lambda x: 1 // (x != 1970), tree)
    assert info.value.__notes__ == ["raised while mapping tree['layers'][1].w.y[2][0].tm_year"]


def test_arrays_are_shown_by_type_and_shape() -> None:
    """An array's content isn't shown, also inside of containers; NumPy's scalars are values."""
    numpy = pytest.importorskip("numpy")
    from pydag.structure.text import short_repr

    for dtype, text in (
        ("float32", "f32"),
        ("int8", "i8"),
        ("uint16", "u16"),
        ("complex64", "c64"),
        ("bool", "bool"),
    ):
        assert short_repr([numpy.zeros((2, 3), dtype)]) == f"[{text}[2,3]]"
    assert short_repr(numpy.float32(0.5)) == "np.float32(0.5)"
    assert short_repr(numpy.dtype("float32")) == "dtype('float32')"
    with pytest.raises(ValueError, match=r"got f64\[2\]\."):
        pydag.dag_map(lambda x, y: x, [1], numpy.ones(2))


@pytest.mark.parametrize(
    ("is_jax_there", "halves"),
    [
        (
            True,
            "gradient: add them   up, with pydag.retie(spec, other, combine=jnp.add), or take",
        ),
        (False, "sum: add them   up, with pydag.retie(spec, other, combine=operator.add). Where"),
    ],
)
def test_two_halves_of_a_gradient(
    is_jax_there: bool, halves: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The advice is to add them up, by `retie` or `grad`; of JAX if that is there."""
    if is_jax_there:
        monkeypatch.setitem(sys.modules, "pydag.jaxinterop", pydag)
    else:
        monkeypatch.delitem(sys.modules, "pydag.jaxinterop", raising=False)
    w = [1.0]
    tree = {"a": w, "b": w}
    with pytest.raises(pydag.SharingError) as caught:
        pydag.dag_map(lambda x, y: x, tree, {"a": [0.25], "b": [0.5]})
    lines = str(caught.value).splitlines()
    assert lines[:3] == [
        "the trees are shared differently",
        "  first tree:  tree['a'][0] and tree['b'][0] are one object",
        "  other tree:  they are two: 0.25 and 0.5",
    ]
    advice = " ".join(lines[3:-1])
    assert f"Halves of one {halves}" in advice
    assert "Equal copies: make them one object, with pydag.retie(spec, other)." in advice
    assert 'identity="nodes"' in advice
    assert lines[-1] == "  at tree['b'][0]"
    added = pydag.retie(pydag.dag_structure(tree), {"a": [0.25], "b": [0.5]}, lambda x, y: x + y)
    assert added["a"] is added["b"]
    assert added["a"] == [0.75]


RESTS = {
    "map": pydag.dag_map,
    "map in place": pydag.dag_map_,
    "map with path": pydag.dag_map_with_path,
    "map with accessor": pydag.dag_map_with_accessor,
    "some leaves": functools.partial(pydag.dag_map, where="*"),
    "transpose": pydag.dag_transpose_map,
    "broadcast": pydag.dag_broadcast_map,
}


@pytest.mark.parametrize("function", RESTS.values(), ids=RESTS)
def test_which_tree_does_not_fit(function: Any) -> None:
    """Of several trees the error names the one that doesn't fit, of one it need not."""
    good, bad = {"a": [1], "b": [2]}, {"a": [1]}
    two = [1.0]
    tied = {"a": two, "b": two}
    texts = []
    for tree, *rests in ((good, bad, good), (good, good, bad), (tied, good, tied)):
        with pytest.raises(ValueError, match=r"mismatch|differently") as info:
            function(lambda *leaves: leaves, tree, *rests)
        texts.append("\n".join([str(info.value), *getattr(info.value, "__notes__", ())]))
    assert ["rests[0]" in text for text in texts] == [True, False, True]
    assert ["rests[1]" in text for text in texts] == [False, True, False]
    with pytest.raises(ValueError, match="mismatch") as info:
        function(lambda *leaves: leaves, good, bad)
    assert "rests" not in str(info.value)
    assert not hasattr(info.value, "__notes__")


def test_no_message_has_an_address() -> None:
    """An object is shown by its class, a function by its name."""

    class Plain:
        def method(self) -> None:
            """Has an address in its `repr`."""

    class Unwilling:
        def __repr__(self) -> str:
            raise ValueError

    objects = [Plain(), Unwilling(), lambda: 0, Plain().method, iter([]), len, [].append]
    for shown in (*objects, objects, {"a": objects[0]}, functools.partial(max, objects[0])):
        for call in (
            lambda x: pydag.retie(x, 1),
            lambda x: pydag.dag_map(lambda a, b: a, [1, 2], [x]),
            lambda x: pydag.dag_map(lambda a, b: a, {"a": 1}, {object(): x}),
            lambda x: pydag.dag_replace([1], x, 2),
            lambda x: pydag.untie([1], x),
        ):
            with pytest.raises((TypeError, ValueError)) as info:
                call(shown)
            assert "0x" not in str(info.value)


class Settings:
    """Has a set as configuration."""


pydag.register_fields(Settings, data_fields=("w",), meta_fields=("names",))


def test_a_set_as_configuration_is_copied() -> None:
    """Each object that is built gets a set of its own, which it may change."""
    node = Settings()
    node.w, node.names = 1, {"a"}  # type: ignore[attr-defined]  # set from outside
    leaves, spec = pydag.dag_flatten(node)
    first, second = (pydag.dag_unflatten(spec, leaves) for _ in range(2))
    first.names.add("b")
    assert (node.names, second.names) == ({"a"}, {"a"})  # type: ignore[attr-defined]  # as above


def test_a_class_that_was_defined_again() -> None:
    """Two classes of one name, as a notebook makes them: the hint says which object is old."""

    def made() -> Any:
        class Cell:
            pass

        pydag.register_fields(Cell)
        node = Cell()
        node.w = 1  # type: ignore[attr-defined]  # set from outside
        return node

    with pytest.raises(ValueError, match=r"Cell was defined again after one of the two objects"):
        pydag.dag_map(lambda x, y: x, [made()], [made()])


P: Any = pydag  # what follows are mistakes
CORE: Any = _core
PAIR = pydag.dag_structure([1, 2])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: P.dag_leaves([1], none_is_leaf="no"),
            TypeError,
            "none_is_leaf must be a bool",
        ),
        (
            lambda: P.dag_leaves([1], is_leaf=lambda x: "no"),
            RuntimeError,
            "must answer True or",
        ),
        (lambda: P.dag_leaves([1], namespace="\ud800"), ValueError, "Use a name without one"),
        (lambda: P.dag_leaves([1], nothing=1), TypeError, "unexpected keyword argument"),
        (lambda: P.dag_flatten_one_level(Broken()), ValueError, "node: <.*Broken>"),
        (lambda: P.dagspec_structseq((1, 2)), ValueError, "Expected a PyStructSequence"),
        (lambda: CORE.leaves([1], nothing=1), TypeError, "unexpected keyword argument"),
        (lambda: CORE.publish("nothing", len, (), (), 0, 0, False, ""), ValueError, "no function"),
        (
            lambda: CORE.publish("leaves", len, ("a",), (), 0, 0, False, ""),
            ValueError,
            "1 parameters, 0 defaults",
        ),
        (lambda: CORE.structseq_fields(int), TypeError, "Expected a class of struct sequences"),
        (lambda: CORE.structseq_fields(5), TypeError, "an argument has the wrong type: 5"),
        (lambda: CORE.unregister(Settings, 5), TypeError, "namespace must be a string, got 5"),
        (lambda: CORE.json_object([(1, 2)]), TypeError, "pairs of a name and a value"),
        (lambda: CORE.are_same_objects(5, []), TypeError, "two lists or tuples, not int and list"),
        (lambda: CORE.broadcast_leaves(PAIR, [1], PAIR), ValueError, "has 2 leaves, got 1"),
        (lambda: CORE.make_result((PAIR, [], None), ()), TypeError, "sources must be a tuple"),
        (lambda: CORE.make_result(PAIR, {1}), TypeError, r"a tuple or a list, got \{1\}"),
        (lambda: CORE.make_updated(None, (1, 2)), TypeError, r"a plan and leaves, got \(1, 2\)"),
        (
            lambda: CORE.fill_result(CORE.make_result((PAIR, (0, 9), None), (1, 2)), (1,), None),
            IndexError,
            "too few leaves",
        ),
        (
            lambda: CORE.carry_out(
                CORE.update_plan(spec=PAIR, positions=(0,), writers=None), [1, 2], [1, 2]
            ),
            TypeError,
            r"1 positions for \[1, 2\]",
        ),
        (
            lambda: P.dag_rewrite(type("Pairs", (), {"items": lambda _: [(int,)]})(), 1),
            TypeError,
            r"the items\(\) of a mapping must be pairs",
        ),
        (
            lambda: P.register_pydag_node(Settings, list, list, namespace=3),
            TypeError,
            "namespace must be a string",
        ),
        (
            lambda: P.unregister_pydag_node(Settings, namespace=3),
            TypeError,
            "namespace must be a string",
        ),
    ],
)
def test_wrong_arguments(call: Any, error: type[Exception], words: str) -> None:
    """Arguments of another type or value than is wanted are errors that say which."""
    with pytest.raises(error, match=words):
        call()


def test_a_key_with_a_surrogate() -> None:
    """Text that has no UTF-8 is shown with escapes, also as the name of an attribute."""
    with pytest.raises(ValueError, match=r"\\ud800"):
        pydag.dag_map(lambda x, y: x, {"\ud800": [1]}, {"\ud800": (1,)})
    node = type("Node", (), {})()
    pydag.register_fields(type(node))
    vars(node)["\ud800"] = [node]
    with pytest.raises(pydag.CycleError, match=r"tree\.\\ud800\[0\] is the"):
        pydag.dag_leaves(node)
