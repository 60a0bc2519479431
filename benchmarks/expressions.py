# SPDX-License-Identifier: Apache-2.0
"""The same expressions in several libraries: sums and products of variables.

Sums hold products and products sums, so that no library simplifies anything.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from peers import Peers

import pydag

VARIABLES = 16


@pydag.register_fields
@dataclass(frozen=True, eq=False, slots=True)
class Variable:
    """A variable of the plain expressions, which belong to no library."""

    name: str = field(metadata={"static": True})


@pydag.register_fields
@dataclass(frozen=True, eq=False, slots=True)
class Sum:
    """A plain sum."""

    left: Any
    right: Any


@pydag.register_fields
@dataclass(frozen=True, eq=False, slots=True)
class Product:
    """A plain product."""

    left: Any
    right: Any


@dataclass(frozen=True)
class Algebra:
    """How a library writes an expression."""

    owner: str  # of the classes
    variable: Callable[[int], Any]  # the same object each time
    add: Callable[[Any, Any], Any]
    multiply: Callable[[Any, Any], Any]

    def operation(self, level: int) -> Callable[[Any, Any], Any]:
        """Sums and products take turns."""
        return self.multiply if level % 2 else self.add


def plain_algebra(peers: Peers) -> Algebra:
    """Classes that a user would write for the purpose."""
    return Algebra("plain classes", cache(lambda i: Variable(f"x{i}")), Sum, Product)


def sympy_algebra(peers: Peers) -> Algebra:
    """sympy's own, which it builds with much care each time; pydag has to call it for that."""
    sympy = peers["sympy"]
    for cls in (sympy.Add, sympy.Mul):
        _register(cls, "args")
    return Algebra("sympy's", cache(lambda i: sympy.Symbol(f"x{i}")), sympy.Add, sympy.Mul)


def ufl_algebra(peers: Peers) -> Algebra:
    """UFL's own, called in the same way."""
    ufl = peers["UFL"]
    for cls in (ufl.classes.Sum, ufl.classes.Product):
        _register(cls, "ufl_operands")
    mesh = ufl.Mesh(_Element(ufl.triangle))
    return Algebra(
        "UFL's", cache(lambda i: ufl.Constant(mesh)), ufl.classes.Sum, ufl.classes.Product
    )


def _register(cls: Any, operands: str) -> None:
    """A class whose instances are made of their operands."""
    pydag.register_pydag_node(
        cls, lambda node: (getattr(node, operands), None), lambda _, parts: cls(*parts)
    )


@dataclass(frozen=True)
class _Element:
    """What a mesh wants to know of its coordinates."""

    cell: Any
    reference_value_shape: tuple[int, ...] = (2,)


def _balanced(algebra: Algebra, parts: list[Any], level: int) -> Any:
    while len(parts) > 1:
        level += 1
        operation = algebra.operation(level)
        parts = [operation(*parts[i : i + 2]) for i in range(0, len(parts), 2)]
    return parts[0]


def tree(algebra: Algebra, leaves: int = 512) -> Any:
    """A tree in which each variable stands once."""
    return _balanced(algebra, [algebra.variable(i) for i in range(leaves)], 0)


def lattice(algebra: Algebra, levels: int) -> Any:
    """Each level holds each part of the one below it twice: 2**levels ways to each variable."""
    layer = [algebra.variable(i) for i in range(VARIABLES)]
    for level in range(levels):
        operation = algebra.operation(level)
        layer = [operation(part, layer[i - 1]) for i, part in enumerate(layer)]
    return _balanced(algebra, layer, levels - 1)


def unfolded(algebra: Algebra, levels: int) -> Any:
    """A lattice with every part written out at each of its places."""
    variables = [algebra.variable(i) for i in range(VARIABLES)]

    def part(level: int, i: int) -> Any:
        if level == 0:
            return variables[i % VARIABLES]
        return algebra.operation(level - 1)(part(level - 1, i), part(level - 1, i - 1))

    return _balanced(algebra, [part(levels, i) for i in range(VARIABLES)], levels - 1)


def chain(algebra: Algebra, length: int) -> Any:
    """One operation in the next."""
    variables = [algebra.variable(i) for i in range(VARIABLES)]
    result = variables[0]
    for level in range(length):
        result = algebra.operation(level)(result, variables[level % VARIABLES])
    return result


SIXTY_FOLD = "shared sixty-fold"
SHAPES: dict[str, Callable[[Algebra], Any]] = {
    "a tree of 512 leaves": tree,
    "shared twelve-fold": lambda algebra: lattice(algebra, 12),
    SIXTY_FOLD: lambda algebra: lattice(algebra, 60),
}
CHAIN = "a chain of 20,000"
