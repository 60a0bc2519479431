# SPDX-License-Identifier: Apache-2.0
"""Random arguments for compiled functions, how they change, and what a function sees of them."""

import dataclasses
import functools
import random
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

import pydag

NUMBERS = [0, 1, 2, True, False, 1.0, 0.0, -0.0, 2.5, "a", "b"]
"""What is configuration. Some are equal to others, and none may stand for another one."""


@pydag.register_fields
class Record:
    """Its attributes are data. It gets no numbers: compiled functions see arrays for them."""


@pydag.register_module
class Module:
    """Arrays and containers are data, numbers are configuration."""


class Constant:
    """Its class is registered nowhere; it is a value, which is compared by what it shows."""

    def __init__(self, number: Any) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and repr(self.number) == repr(other.number)

    def __hash__(self) -> int:
        return hash(repr(self.number))


class Equinox(eqx.Module):
    """A field of data and a static one."""

    data: Any
    static: Any = eqx.field(static=True)


@functools.partial(jax.tree_util.register_dataclass, data_fields=["data"], meta_fields=["meta"])
@dataclasses.dataclass
class Registered:
    """A dataclass that JAX knows, with a field of data and a meta field."""

    data: Any
    meta: Any


class Network(nnx.Module):
    """A parameter and a number; the parameter's metadata change, too."""

    def __init__(self, array: Any, number: Any) -> None:
        self.weight, self.number = nnx.Param(array), number


def parts(obj: Any) -> list[tuple[str, Any]] | None:
    """What an object holds, by names; None for what is one thing."""
    if isinstance(obj, list | tuple):
        return [("", item) for item in obj]
    if isinstance(obj, dict):
        return [(repr(key), value) for key, value in obj.items()]
    if isinstance(obj, Equinox):
        return [("data", obj.data), ("static", obj.static)]
    if isinstance(obj, nnx.Variable):
        metadata = sorted((key, repr(value)) for key, value in obj._var_metadata.items())
        return [(repr(metadata), obj._raw_value)]
    if isinstance(obj, Network):
        return [("weight", obj.weight), ("number", obj.number)]
    if isinstance(obj, Record | Module | Constant | Registered):
        return sorted(vars(obj).items())
    return None


def seen(tree: Any) -> tuple[str, Any]:
    """All that a function can see of its arguments.

    Returns:
        Order, names, sharing, types and whatever is static, in words; and a sum of all arrays, in
        which each counts by the place where it was met first.
    """
    words: list[str] = []
    known: dict[int, tuple[int, Any]] = {}  # owns what the ids are of
    total: Any = 0.0

    def is_again(obj: Any) -> bool:
        if id(obj) in known:
            words.append(f"again {known[id(obj)][0]}")
            return True
        known[id(obj)] = len(known), obj
        return False

    def visit(obj: Any) -> None:
        nonlocal total
        if isinstance(obj, jax.Array | np.ndarray | np.generic):
            if not is_again(obj):
                array = jnp.asarray(obj)
                words.append(f"{array.dtype}{array.shape}")
                total = total + len(words) * jnp.sum(array.astype(jnp.float32))
            return
        below = parts(obj)
        if below is None:
            words.append(f"{type(obj).__name__} {obj!r}")
        elif isinstance(obj, tuple) or not is_again(obj):
            words.append(f"{type(obj).__name__}(")
            for name, child in below:
                words.append(name)
                visit(child)
            words.append(")")

    visit(tree)
    return " ".join(filter(None, words)), total


class Growing:
    """Makes trees and changes them, by the choices of one generator."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._arrays: list[Any] = []  # what may be met again

    def often(self, probability: float) -> bool:
        """Whether something happens."""
        return self.rng.random() < probability

    def array(self) -> Any:
        """An array, NumPy's or JAX's, which may be elsewhere, too."""
        if self._arrays and self.often(0.35):
            return self.rng.choice(self._arrays)
        kind = self.rng.choice([np.float32, np.int32, np.float32, np.int8])
        values = self.rng.choice([self.rng.randrange(5), [1, 2], [self.rng.randrange(9)] * 3])
        made = np.asarray(values, kind)
        self._arrays.append(jnp.asarray(made) if self.often(0.8) else made)
        del self._arrays[:-12]
        return self._arrays[-1]

    def number(self) -> Any:
        """Something for a place of configuration."""
        return self.rng.choice(NUMBERS)

    def leaf(self) -> Any:
        """An array, a value, text or None."""
        if self.often(0.7):
            return self.array()
        return Constant(self.number()) if self.often(0.3) else self.rng.choice([None, "a", "b"])

    def tree(self, depth: int) -> Any:
        """A tree of that depth at most."""
        if depth == 0 or self.often(0.3):
            return self.leaf()
        return self.rng.choice(_SHAPES)(self, depth - 1)

    def several(self, depth: int) -> list[Any]:
        """Trees for the items of a container."""
        return [self.tree(depth) for _ in range(self.rng.randrange(4))]

    def items(self, depth: int) -> list[tuple[str, Any]]:
        """Items of a dict."""
        return [(self.rng.choice("abcd"), tree) for tree in self.several(depth)]

    def attributes(self, made: Any, child: Callable[[], Any]) -> Any:
        """An object that was given attributes."""
        for name in self.rng.sample("xyz", self.rng.randrange(1, 4)):
            setattr(made, name, child())
        return made

    def change(self, tree: Any) -> None:
        """Changes something in a tree, if anything in it can be changed."""
        found = list(changeable(tree))
        if found:
            obj = self.rng.choice(found)
            _CHANGES[type(obj)](self, obj)

    def data(self) -> Any:
        """Something for a place of data."""
        return self.array() if self.often(0.6) else self.tree(1)

    def _of_list(self, obj: list[Any]) -> None:
        if not obj or self.often(0.2):
            obj.append(self.data())
        elif self.often(0.7):
            obj[self.rng.randrange(len(obj))] = self.data()
        else:
            obj.pop()

    def _of_dict(self, obj: dict[str, Any]) -> None:
        if not obj or self.often(0.4):
            obj[self.rng.choice("abcd")] = self.data()
            return
        key = self.rng.choice(list(obj))
        value = obj.pop(key)
        if self.often(0.8):
            obj[key] = value  # it is the last one now

    def _of_record(self, obj: Any) -> None:
        setattr(obj, self.rng.choice("xyz"), self.data())

    def _of_module(self, obj: Any) -> None:
        if len(vars(obj)) > 1 and self.often(0.2):
            delattr(obj, self.rng.choice(list(vars(obj))))
        else:
            setattr(obj, self.rng.choice("xyz"), self.data_or_number())

    def data_or_number(self) -> Any:
        """Something for an attribute of a module."""
        return self.number() if self.often(0.5) else self.data()

    def _of_equinox(self, obj: Any) -> None:
        if self.often(0.5):
            object.__setattr__(obj, "data", self.data())
        else:
            object.__setattr__(obj, "static", self.number())

    def _of_registered(self, obj: Any) -> None:
        if self.often(0.5):
            obj.data = self.data()
        else:
            obj.meta = self.number()

    def _of_network(self, obj: Any) -> None:
        row = jnp.asarray([1.0, self.rng.randrange(4)])
        how = self.rng.randrange(4)
        if how == 0:
            obj.number = self.number()
        elif how == 1:
            object.__setattr__(obj.weight, "_raw_value", row)
        elif how == 2:
            obj.weight._var_metadata["tag"] = self.number()
        else:
            obj.weight = nnx.Param(row)


def changeable(tree: Any) -> Iterator[Any]:
    """The objects of a tree that can be changed."""
    known: set[int] = set()
    todo = [tree]
    while todo:
        obj = todo.pop()
        if id(obj) in known:
            continue
        known.add(id(obj))
        if type(obj) in _CHANGES:
            yield obj
        todo.extend(child for _, child in parts(obj) or ())


_CHANGES: dict[type, Callable[[Growing, Any], None]] = {
    list: Growing._of_list,
    dict: Growing._of_dict,
    OrderedDict: Growing._of_dict,
    Record: Growing._of_record,
    Module: Growing._of_module,
    Equinox: Growing._of_equinox,
    Registered: Growing._of_registered,
    Network: Growing._of_network,
}

_SHAPES: list[Callable[[Growing, int], Any]] = [
    lambda grow, depth: grow.several(depth),
    lambda grow, depth: tuple(grow.several(depth)),
    lambda grow, depth: dict(grow.items(depth)),
    lambda grow, depth: OrderedDict(grow.items(depth)),
    lambda grow, depth: grow.attributes(Record(), lambda: grow.tree(depth)),
    lambda grow, depth: grow.attributes(
        Module(), lambda: grow.tree(depth) if grow.often(0.6) else grow.number()
    ),
    lambda grow, depth: Equinox(grow.tree(depth), grow.number()),
    lambda grow, depth: Registered(grow.tree(depth), grow.number()),
    lambda grow, _: Network(jnp.asarray([1.0, grow.rng.randrange(4)]), grow.number()),
]
