# SPDX-License-Identifier: Apache-2.0
"""Optimistix on object graphs: solvers that know pytrees only, given a Dag."""

from typing import Any

import pytest

import pydag

optimistix: Any = pytest.importorskip("optimistix")
equinox: Any = pytest.importorskip("equinox")

import jax
import jax.numpy as jnp

from pydag.jaxinterop import Dag


@pydag.register_fields
class Quantity:
    """An unknown, or a given number, that several equations hold."""

    def __init__(self, value: float) -> None:
        self.value = jnp.asarray(value)


@pydag.register_fields
class Equation:
    """`a * a + b = target`."""

    def __init__(self, a: Quantity, b: Quantity, target: float) -> None:
        self.a, self.b, self.target = a, b, target

    def residual(self) -> Any:
        return self.a.value**2 + self.b.value - self.target


def system() -> list[Equation]:
    """Two equations in two unknowns, each of which holds both: x² + y = 7 and y² + x = 11."""
    x, y = Quantity(2.5), Quantity(2.5)
    return [Equation(x, y, 7.0), Equation(y, x, 11.0)]


def assert_solved(equations: list[Equation]) -> None:
    one, two = equations
    assert one.a is two.b
    assert one.b is two.a
    assert float(one.a.value) == pytest.approx(2.0, abs=1e-3)
    assert float(one.b.value) == pytest.approx(3.0, abs=1e-3)


def combined(unknown: Any, given: Any) -> Any:
    return equinox.combine(unknown, given).tree


def values(unknown: Any, given: Any) -> Any:
    return jnp.stack([equation.residual() for equation in combined(unknown, given)])


def split(equations: list[Equation]) -> Any:
    """What is solved for, and the rest: unknowns are arrays, targets are floats."""
    return equinox.partition(Dag(equations), equinox.is_array)


def test_newton() -> None:
    """Each unknown is one unknown, however many equations hold it: the system is square."""
    unknown, given = split(system())
    assert len(jax.tree.leaves(unknown)) == 2
    solution = optimistix.root_find(
        lambda y, args: Dag(values(y, args)), optimistix.Newton(1e-6, 1e-6), unknown, given
    )
    assert_solved(combined(solution.value, given))


def test_least_squares() -> None:
    """The same by Levenberg and Marquardt, where the plain tree would have four unknowns."""
    unknown, given = split(system())
    solver = optimistix.LevenbergMarquardt(1e-6, 1e-6)
    solution = optimistix.least_squares(values, solver, unknown, given)
    assert_solved(combined(solution.value, given))
