# SPDX-License-Identifier: Apache-2.0
"""Which leaves: predicates, classes, patterns, prefixes, lists; and `dag_mask`."""

import fnmatch
import time
from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from registering import Linear
from strategies import BUILTIN, dags, thorough

import pydag
from pydag import SharingError, dag_mask
from pydag.ops.select import select
from pydag.structure.listing import Listing, step_text


@pydag.register_fields
class Model:
    def __init__(self, *layers: Any) -> None:
        self.layers = list(layers)


@pydag.register_fields(data_fields=("weight", "bias"))
class Special(Linear):
    pass


class Array:
    """A leaf with identity."""


w, v, b = Array(), Array(), Array()


def selected(tree: Any, where: Any) -> list[bool]:
    leaves, spec = pydag.dag_flatten(tree)
    return select(where, spec, leaves)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("layers[*].bias", [False, True, False, True]),
        ("*.weight", [True, False, True, False]),
        (".layers[0].weight", [True, False, False, False]),
        ("layers[0].weight", [True, False, False, False]),
        ("layers[?].weight", [True, False, True, False]),
        ("layers[??].weight", [False] * 4),
        ("LAYERS*", [False] * 4),
        ("layers", [False] * 4),
        ("weight", [False] * 4),
        ("*", [True] * 4),
        ("**[0]**", [True, True, False, False]),
        ("", [False] * 4),
        ("layers[01].weight", [False] * 4),
        ("[!x]*", [False] * 4),
    ],
)
def test_patterns(pattern: str, expected: list[bool]) -> None:
    """A pattern is compared with the whole path, with and without its dot, case and all."""
    assert selected(Model(Linear(1.0, 2.0), Linear(3.0, 4.0)), pattern) == expected


def test_any_path_counts() -> None:
    """A shared object is selected when any of its paths matches, also by a node above it."""
    layer = Linear(w, b)
    tree = {"encoder": layer, "decoder": [layer, w]}
    assert selected(tree, "['encoder'].weight") == [True, False]
    assert selected(tree, "['decoder'][1]") == [True, False]
    assert selected(tree, "['decoder'][0].bias") == [False, True]
    mask = dag_mask(tree, "['encoder'].weight")
    assert mask["encoder"] is mask["decoder"][0]
    assert mask["decoder"][1] is True


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (Array, [True, True, True, False]),
        (float, [False, False, False, True]),
        ((float, Array), [True] * 4),
        (Special, [True, True, False, False]),
        (Linear, [True, True, False, False]),
        (dict, [True] * 4),
        (list, [False, False, True, False]),
        (int, [False] * 4),
    ],
)
def test_classes(where: Any, expected: list[bool]) -> None:
    """A class selects leaves that are instances, and all that lies below nodes that are."""
    assert selected({"a": Special(w, v), "b": [b], "c": 1.5}, where) == expected


def test_below_a_class_on_any_path() -> None:
    """What is reached through an instance on one path is selected on all."""
    inner = [w]
    tree = {"a": inner, "b": Special(inner, 1), "c": [v]}
    assert selected(tree, Special) == [True, True, False]


def test_predicates() -> None:
    """A predicate is asked once for each distinct leaf, once per occurrence of a value."""
    asked: list[Any] = []

    def is_v(x: Any) -> bool:
        asked.append(x)
        return x is v

    assert selected([w, [w, v], 1, 1], is_v) == [False, True, False, False]
    assert asked == [w, v, 1, 1]


def test_prefixes() -> None:
    """A prefix is a tree of booleans, or a bare one."""
    tree = {"a": Linear(w, v), "b": [b, 1]}
    assert selected(tree, True) == [True] * 4
    assert selected(tree, False) == [False] * 4
    assert selected(tree, {"b": True, "a": False}) == [False, False, True, True]
    assert selected(tree, OrderedDict(a=Linear(True, False), b=[False, True])) == [
        *(True, False, False, True)
    ]
    assert selected([w, v], [True, False]) == [True, False]
    assert selected((w, v), (True, False)) == [True, False]
    assert pydag.dag_map(str, [1, 2.0], where=int) == ["1", 2.0]


def test_prefixes_along_every_path() -> None:
    """A prefix that gives one object two answers is a SharingError with both paths."""
    layer = [w, v]
    tree = {"a": layer, "b": {"c": layer}}
    with pytest.raises(SharingError, match=r"(?s)tree\['a'\]\[0\]: True.*tree\['b'\]\['c'\]\[0\]"):
        dag_mask(tree, {"a": True, "b": False})
    with pytest.raises(SharingError, match=r"tree\['a'\]\[1\]"):
        dag_mask(tree, {"a": [True, False], "b": True})
    assert selected(tree, {"a": [True, False], "b": {"c": [True, False]}}) == [True, False]
    half = [True, False]
    assert selected(tree, {"a": half, "b": {"c": half}}) == [True, False]


@pytest.mark.parametrize(
    ("prefix", "words"),
    [
        ([True, False], "prefix: list of 2"),
        ({"a": True}, r"dict with \['a'\]"),
        ({"a": True, "c": False}, r"\['a', 'c'\]"),
        ({"a": [True, False], "b": True}, r"at tree\['a'\]"),
        ({"a": {"x": True}, "b": True}, r"(?s)at tree\['a'\].*a leaf"),
    ],
)
def test_prefixes_that_do_not_fit(prefix: Any, words: str) -> None:
    """A prefix of another structure is a ValueError with the path and both sides."""
    with pytest.raises(ValueError, match=words):
        dag_mask({"a": w, "b": [v]}, prefix)


def test_lists() -> None:
    """A list means any of its items, unless all of its leaves are booleans."""
    tree = [Linear(w, v), b]
    assert selected(tree, ["*.bias", lambda x: x is b]) == [False, True, True]
    assert selected(tree, [[Special, "*.weight"], "[1]"]) == [True, False, True]
    assert selected(tree, []) == [False, False, False]
    assert selected(tree, [True, False]) == [True, True, False]


@pytest.mark.parametrize("where", [3, None, 1.5, b"x", object(), {"a": 1}, (), ("x", Linear)])
def test_what_is_no_selection(where: Any) -> None:
    """Anything else is a TypeError, or a prefix that doesn't fit."""
    with pytest.raises((TypeError, ValueError), match=r"which leaves|prefix"):
        dag_mask([w], where)


def test_sixty_levels() -> None:
    """Every way to select is linear on sixty levels of [t, t]."""
    tree: Any = [w]
    prefix: Any = [True]
    for _ in range(60):
        tree, prefix = [tree, tree], [prefix, prefix]
    began = time.thread_time()
    assert selected(tree, "*[1][0]*[0]") == [True]
    assert selected(tree, "[1]*" + "[0]" * 70) == [False]
    for where in (list, prefix, ["x", lambda x: x is w]):
        assert selected(tree, where) == [True]
    assert time.thread_time() - began < 2


patterns = st.text("ab*?[]01.", max_size=8)


@thorough
@given(dags(BUILTIN), patterns)
def test_patterns_agree_with_every_path(tree: Any, pattern: str) -> None:
    """A leaf is selected exactly if one of all its paths matches, as `fnmatch` has it."""
    spec = pydag.dag_structure(tree)
    if spec.num_paths > 500:
        return
    literal = pattern.replace("[", "[[]")
    wanted: list[bool] = []
    listing = Listing.of(spec)
    for leaf in listing.leaves:
        texts = ["".join(step_text(listing.records[s]) for s in way) for way in listing.ways(leaf)]
        wanted.append(
            any(
                fnmatch.fnmatchcase(text, literal)
                or fnmatch.fnmatchcase(text.removeprefix("."), literal)
                for text in texts
            )
        )
    assert selected(tree, pattern) == wanted


@pytest.mark.parametrize(
    ("pattern", "is_meant"),
    [
        ("['" + "a" * 70 + "']", True),
        ("*" + "a" * 70 + "*", True),
        ("*" + "a" * 71 + "*", False),
        ("['" + "?" * 70 + "']", True),
        ("*a" * 70 + "*", True),
        ("*a" * 71 + "*", False),
    ],
)
def test_patterns_longer_than_a_machine_word(pattern: str, is_meant: bool) -> None:
    """A pattern may have any length."""
    assert selected({"a" * 70: w, "b": v}, pattern) == [is_meant, False]


class Hostile:
    """A key whose `repr` does something else first."""

    def __init__(self, act: Any) -> None:
        self.act = act

    def __repr__(self) -> str:
        return str(self.act())


def test_keys_that_raise() -> None:
    """A key whose `repr` raises is written in outline; what is no Exception passes unchanged."""

    def interrupt() -> str:
        raise KeyboardInterrupt

    def refuse() -> str:
        raise ValueError("no")

    assert selected({Hostile(refuse): w}, "[<*Hostile object at *>]") == [True]
    with pytest.raises(KeyboardInterrupt):
        selected({Hostile(interrupt): w}, "*x")


@pydag.register_fields
class Block:
    """Holds what it is given."""

    def __init__(self, weight: Any, bias: Any) -> None:
        self.weight, self.bias = weight, bias


SHARED = Block(w, v)
MODEL = Model(Block(w, v), Block(1.0, 2.0), SHARED)
NESTED = {"params": {"dense": {"kernel": 1, "bias": 2}, "out": {"kernel": 3}}, "mlp/~/linear": [4]}
TIED = {"enc": SHARED, "head": {"w": w, "more": SHARED}}


@pytest.mark.parametrize(
    ("tree", "pattern", "meant"),
    [
        (MODEL, "**/weight", "*.weight"),
        (MODEL, "layers", "layers*"),
        (MODEL, "layers.0.weight", "layers[0].weight"),
        (MODEL, "layers/1/weight", "layers[1].weight"),
        (MODEL, "layers[-1].bias", "layers[2].bias"),
        (MODEL, "layers.*.bias", "layers*.bias"),
        (MODEL, "layers[:].bias", "layers*.bias"),
        (MODEL, "weight", "*.weight"),
        (MODEL, "model.layers[0]*", "layers[0]*"),
        (MODEL, "Layers[0].Weight", "layers[0].weight"),
        (MODEL, "layrs.0.wieght", "layers[0].weight"),  # codespell:ignore
        (NESTED, "params/dense/kernel", "['params']['dense']['kernel']"),
        (NESTED, "params.*", "['params']*"),
        (NESTED, "dense", "*['dense']*"),
        (NESTED, "*.kernel", "*['kernel']"),
        (NESTED, "mlp/~/linear", "['mlp/~/linear']*"),
        (TIED, "enc.*", "['enc']*"),
        (TIED, "head.w", "['head']['w']"),
        (TIED, "head/more/bias", "['head']['more'].bias"),
        (NESTED, "params.den*.kernel", "['params']['den*']['kernel']"),
    ],
)
def test_what_a_pattern_may_mean(tree: Any, pattern: str, meant: str) -> None:
    """Spellings of other libraries are corrected, and what is suggested matches."""
    with pytest.raises(ValueError, match="no path matches the pattern") as caught:
        dag_mask(tree, pattern)
    assert f"Did you mean {meant!r}" in str(caught.value)
    assert any(selected(tree, meant))


def test_the_nearest_path_is_one_of_all() -> None:
    """A path that isn't the first of a shared leaf is suggested, too."""
    with pytest.raises(ValueError, match=r"the nearest that exist: \['head'\]\['more'\].bias"):
        dag_mask(TIED, "['head']['mor'].bias")
    assert selected(TIED, "['head']['more'].bias") == [True, False]


def test_the_nearest_paths_are_those_of_the_pattern_that_is_meant() -> None:
    """Where a pattern is suggested, the paths that are named are some that it matches.

    Nothing is suggested for an empty one.
    """
    model = {"act": len, "blocks": [{"w": w}, {"w": v}]}
    with pytest.raises(ValueError, match="no path matches the pattern ''") as caught:
        dag_mask(MODEL, "")
    assert "Did you mean" not in str(caught.value)
    said = r"exist: \['blocks'\]\[0\]\['w'\], \['blocks'\]\[1\]\['w'\]\n  Did you mean \"\*\['w'\]"
    with pytest.raises(ValueError, match=said):
        dag_mask(model, "**/w")


@pytest.mark.parametrize("where", ["*", callable, float])
@pytest.mark.parametrize("function", [lambda a, b: dag_mask(b, a), pydag.dag_partition])
def test_a_selection_in_the_place_of_the_tree(function: Any, where: Any) -> None:
    """Where a tree and what selects its leaves are swapped, the error says which is which."""
    with pytest.raises(TypeError, match=r"must be booleans, got 4\n  Swap them: the tree is"):
        function(NESTED, where)


def test_suggestions_are_quick_where_paths_are_many() -> None:
    """A pattern that matches nothing in a tree with 2 ** 60 paths is an error at once."""
    tree: Any = [w]
    for _ in range(60):
        tree = [tree, tree]
    started = time.perf_counter()
    with pytest.raises(ValueError, match="no path matches"):
        dag_mask(tree, "weight")
    assert time.perf_counter() - started < 5


class Sized:
    """Looks like an array."""

    shape, dtype = (2, 3), "float32"
    ndim = 2


def test_predicates_of_masks_get_arrays_and_numbers() -> None:
    """Text, functions, classes and other objects aren't selected, nor is a predicate asked."""
    asked: list[Any] = []
    big = Sized()
    tree = {"a": big, "f": print, "g": len, "n": 3, "s": "text", "t": Sized, "x": w, "z": 1.5}

    def is_there(leaf: Any) -> bool:
        asked.append(leaf)
        return True

    mask = dag_mask(tree, is_there)
    assert asked == [big, 3, 1.5]
    assert [key for key, flag in mask.items() if flag] == ["a", "n", "z"]
    assert dag_mask({"a": big, "f": print}, lambda leaf: leaf.ndim > 1) == {"a": True, "f": False}
    assert dag_mask({"a": big, "f": print}, [lambda leaf: leaf.ndim > 1, "*f*"])["f"] is True


def test_predicates_elsewhere_get_every_leaf() -> None:
    """`dag_partition`, whose predicate is optree's, and `where=` of maps ask about all leaves."""
    tree = {"f": print, "n": 3, "s": "text"}
    assert pydag.dag_partition(lambda leaf: isinstance(leaf, str), tree)[0]["s"] == "text"
    assert pydag.dag_map(str.upper, tree, where=lambda leaf: isinstance(leaf, str))["s"] == "TEXT"


@pytest.mark.parametrize(
    "call",
    [
        lambda f: dag_mask({"a": [1, 2], "f": print}, f),
        lambda f: dag_mask({"a": [1, 2], "f": print}, ["*f*", f]),
        lambda f: pydag.dag_partition(f, {"a": [1, 2]}),
        lambda f: pydag.dag_map(abs, {"a": [1, 2]}, where=f),
    ],
)
def test_an_error_of_a_predicate_names_the_path(call: Any) -> None:
    """A note names it; the error is the user's own."""
    with pytest.raises(AttributeError) as caught:
        call(lambda leaf: leaf == 1 or leaf.missing)
    assert caught.value.__notes__ == ["raised while selecting tree['a'][1]"]
