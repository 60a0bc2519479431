# SPDX-License-Identifier: Apache-2.0
"""What the hash of a spec tells apart, and what it can't."""

import dataclasses
import enum
import os
import subprocess
import sys
from collections import OrderedDict, defaultdict, namedtuple
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import pydag

TEXTS = ["", "a", "b", "ab", "ba", "a" * 8, "a" * 9, "a\0", "\0a"]
TEXTS += ["é", "ée", "中", "中文", "😀", "a😀", "\ud800"]


class Name(str):
    __slots__ = ()


class Color(enum.StrEnum):
    RED = "red"


One = namedtuple("One", "x")
Pair = namedtuple("Pair", "x y")


@pydag.register_fields(data_fields=("w",), meta_fields=("activation",))
class Named:
    def __init__(self, w: Any, activation: Any) -> None:
        self.w, self.activation = w, activation


def test_specs_that_differ_in_a_string_alone_have_other_hashes() -> None:
    """No two of a thousand dicts, whose keys differ in few characters, have one hash."""
    texts = [*TEXTS, *(f"layer{i}" for i in range(500)), *("x" * i for i in range(2, 500))]
    specs = [pydag.dag_structure({text: 0}) for text in texts]
    assert len({hash(spec) for spec in specs}) == len(texts) == len(set(texts))
    assert len({hash(pydag.dag_structure([{text: 0, "z": 1}])) for text in texts}) == len(texts)


@pytest.mark.parametrize("make", [dict, OrderedDict, lambda x: defaultdict(int, x)])
def test_order_and_kind_count_as_in_equality(make: Any) -> None:
    """The hash knows which key stands where, but not in which order a dict was filled."""
    ab, ba = make([("a", 0), ("b", [1])]), make([("b", [1]), ("a", 0)])
    a, b = pydag.dag_structure(ab), pydag.dag_structure(ba)
    assert (a == b) is (make is not OrderedDict)
    assert (hash(a) == hash(b)) is (make is not OrderedDict)
    assert hash(pydag.dag_structure([{"a": 0}, {"b": 0}])) != hash(
        pydag.dag_structure([{"b": 0}, {"a": 0}])
    )


@pytest.mark.parametrize(
    "keys",
    [
        [1, True, 1.0, 1 + 0j, np.int64(1), np.float32(1), Decimal(1)],
        [0, False, -0.0, 0.0],
        ["a", Name("a"), np.str_("a"), (("a") + "b")[:-1]],
        ["red", Color.RED],
        [(1, "a"), (True, Name("a")), (1.0, "a")],
        [None],
        [float("nan")],
    ],
)
def test_equal_specs_have_equal_hashes(keys: list[Any]) -> None:
    """Keys that are equal, of whatever types, make specs that are equal and hash equal."""
    specs = [pydag.dag_structure([{key: [0]}, {"z": 0}]) for key in keys]
    for spec in specs:
        assert spec == specs[0]
        assert hash(spec) == hash(specs[0])


class Equal:
    """Equal to one thing."""

    def __init__(self, to: Any) -> None:
        self.to = to

    def __eq__(self, other: object) -> bool:
        return other == self.to or isinstance(other, Equal)

    __hash__ = None  # type: ignore[assignment]  # that is tested


class _Holder:
    """A node whose aux_data is what it is given."""

    def __init__(self, aux: Any) -> None:
        self.aux = aux


pydag.register_pydag_node(_Holder, lambda x: ((), x.aux), lambda aux, _: _Holder(aux))


def test_hash_asks_nobody() -> None:
    """Keys, aux_data and the values of meta fields aren't asked for their hashes."""

    class Grumpy:
        asked = False

        def __hash__(self) -> int:
            if Grumpy.asked:
                raise ZeroDivisionError
            return 1

    tree = [{Grumpy(): 1, "a": 2}, _Holder(Grumpy()), _Holder([]), {Grumpy(): 0}]
    spec = pydag.dag_structure(tree)
    Grumpy.asked = True
    assert hash(spec) == hash(pydag.dag_structure(tree))


def test_equality_is_the_same_before_and_after_hashing() -> None:
    """A key that is equal to a string without being one is equal to it, whatever was hashed."""

    class Key:
        def __eq__(self, other: object) -> bool:
            return other == "a" or isinstance(other, Key)

        def __hash__(self) -> int:
            return hash("a")

    a, b = pydag.dag_structure({"a": 1}), pydag.dag_structure({Key(): 1})
    assert a == b
    hash(a), hash(b)
    assert a == b


def _record(name: str) -> Any:
    cls = dataclasses.make_dataclass(name, ["w", "b"])
    pydag.register_fields(cls)
    return cls(0, 0)


def _named(name: str, fields: str = "w b") -> Any:
    cls: Any = namedtuple(name, fields)  # type: ignore[misc]  # a name that isn't the variable's
    return cls(*fields.split())


def _tagged(name: str) -> Any:
    cls = type(name, (), {})
    pydag.register_pydag_node(cls, lambda _: ((1,), None), lambda *_: cls())
    return cls()


@pytest.mark.parametrize(
    "aux",
    [
        [1, True, 1.0, np.int64(1), Decimal(1)],
        ["a", Name("a"), np.str_("a")],
        ["red", Color.RED],
        [(), namedtuple("Empty", "")(), Equal(())],
        [(1,), (True,), One(1), Equal((1,))],
        [None, Equal(None)],
        [("a", 1), (Name("a"), True), Pair("a", 1.0)],
        [[1, "a"], [True, np.str_("a")]],
    ],
)
def test_equal_aux_data_has_equal_hashes(aux: list[Any]) -> None:
    """Equal aux_data and equal values of meta fields make specs that are equal and hash equal."""
    for make in (_Holder, lambda x: Named(0, x)):
        specs = [pydag.dag_structure(make(value)) for value in aux]
        assert all(spec == specs[0] for spec in specs)
        assert len({hash(spec) for spec in specs}) == 1


def test_class_that_gets_another_name() -> None:
    """Specs that are equal hash equal, though the class was renamed in between."""
    for make in (_named, _record, _tagged):
        tree = make("Before")
        before = hash(pydag.dag_structure([tree]))
        cls: Any = type(tree)
        cls.__qualname__ = cls.__name__ = cls.__module__ = "after"
        pydag.clear_caches()
        assert hash(pydag.dag_structure([tree])) == before


PROGRAM = """
import collections, sys, time
import pydag
@pydag.register_fields(meta_fields=("m",))
class Layer: pass
layer = Layer(); layer.w = 1; layer.m = "relu"
tree = {"b": [0], "a": {"中": 1, 2: 3}, "\\U0001f600" * 9: ()}
print(hash(pydag.dag_structure(tree)))
tree = [tree, layer, collections.namedtuple("T", "x y")(1, 2), time.gmtime(0), sys.float_info]
print(hash(pydag.dag_structure(tree)))
"""


def test_hash_is_the_same_in_every_process() -> None:
    """The hash has no address in it, nor the interpreter's random seed of hashes."""
    answers = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONUTF8": "1"},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "random")
    ]
    tree = {"b": [0], "a": {"中": 1, 2: 3}, "😀" * 9: ()}
    assert len(set(answers)) == 1
    assert int(answers[0].split()[0]) == hash(pydag.dag_structure(tree))
