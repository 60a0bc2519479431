"""Object-oriented code under JAX: a graph of objects that refer to one another.

Equations hold one slope between them; bodies know their partner by its index. Graphs
that are built apart but shared alike have one structure, hence one compiled function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import pydag

pytest.importorskip("jax")

import jax
import jax.numpy as jnp

from pydag import jaxinterop

POINTS = ((3.0, 1.0), (8.0, 3.0))


class Module:
    """Each subclass is a node: its attributes are the children."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        pydag.register_fields(cls)


class Slope(Module):
    """A number that many equations refer to."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Equation(Module):
    """`slope * x = right_side`."""

    def __init__(self, right_side: Any, slope: Slope, x: Any) -> None:
        self.right_side = right_side
        self.slope = slope
        self.x = x

    def error(self) -> Any:
        """The squared difference of the sides."""
        return (self.right_side - self.slope.value * self.x) ** 2

    def error_by_branch(self) -> Any:
        """The same, through a method of this object as either branch of a `cond`."""
        return jax.lax.cond(True, self.error, self.error)


def equations(
    slope: float, points: Sequence[tuple[float, float]] = POINTS, *, tied: bool = True
) -> list[Equation]:
    """One equation for each (right side, x), over one slope or, if not tied, over equal ones."""
    shared = Slope(slope)
    return [Equation(c, shared if tied else Slope(slope), x) for c, x in points]


def total_error(system: list[Equation]) -> Any:
    """The sum of the equations' errors."""
    return sum(equation.error_by_branch() for equation in system)


def scaled(system: list[Equation]) -> list[Equation]:
    """The system with all numbers doubled."""
    doubled: list[Equation] = pydag.dag_map(lambda x: 2.0 * x, system)
    return doubled


def test_the_slope_is_flattened_once() -> None:
    """Two equations give five numbers, not six."""
    assert pydag.dag_leaves(equations(2.0)) == [3.0, 2.0, 1.0, 8.0, 3.0]


def test_equations_come_back_over_one_slope() -> None:
    """After a round trip the equations still refer to one slope, a new one."""
    system = equations(2.0)
    leaves, spec = pydag.dag_flatten(system)
    first, second = pydag.dag_unflatten(spec, leaves)
    assert first.slope is second.slope
    assert first.slope is not system[0].slope
    assert first is not second


def test_graphs_of_one_shape_have_equal_specs() -> None:
    """A structure numbers its objects by order, so it doesn't matter which objects they are."""
    one, other = pydag.dag_structure(equations(2.0)), pydag.dag_structure(equations(5.0))
    assert one == other
    assert hash(one) == hash(other)


def test_graphs_shared_differently_have_unequal_specs() -> None:
    """Equal slopes that are two objects make another shape than one slope does."""
    tied, untied = equations(2.0), equations(2.0, tied=False)
    assert pydag.dag_structure(tied) != pydag.dag_structure(untied)


def test_methods_work_inside_jit() -> None:
    """Traced objects are of their class, hold one slope, and their methods run."""

    @jaxinterop.jit
    def error(system: list[Equation]) -> Any:
        assert type(system[0]) is Equation
        assert system[0].slope is system[1].slope
        return total_error(system)

    assert error(equations(2.0)) == 5.0


def test_objects_come_out_of_jit_tied() -> None:
    """A jitted function may return the graph; its equations share one slope."""
    first, second = jaxinterop.jit(scaled)(equations(2.0))
    assert type(first) is Equation
    assert first.slope is second.slope
    assert first.slope.value == 4.0


def test_graphs_of_one_shape_compile_once() -> None:
    """The compile cache is keyed by structure, and separately built graphs share one."""
    traces: list[str] = []

    @jaxinterop.jit
    def error(system: list[Equation]) -> Any:
        traces.append("trace")
        return total_error(system)

    errors = [float(error(equations(slope))) for slope in (1.0, 2.0, 3.0)]
    assert errors == [29.0, 5.0, 1.0]
    assert traces == ["trace"]


def test_graphs_shared_differently_compile_apart() -> None:
    """A graph whose equations have a slope each is another structure, hence another trace."""
    traces: list[bool] = []

    @jaxinterop.jit
    def error(system: list[Equation]) -> Any:
        traces.append(system[0].slope is system[1].slope)
        return total_error(system)

    assert error(equations(2.0)) == 5.0
    assert error(equations(2.0, tied=False)) == 5.0
    assert error(equations(2.0)) == 5.0
    assert traces == [True, False]


def test_a_dag_takes_the_graph_through_plain_jit() -> None:
    """JAX's own `jit` compiles once for all graphs of one shape, given each as a `Dag`."""
    traces: list[bool] = []

    @jax.jit
    def error(dag: Any) -> Any:
        system = dag.tree
        traces.append(system[0].slope is system[1].slope)
        return total_error(system)

    errors = [float(error(jaxinterop.Dag(equations(slope)))) for slope in (1.0, 2.0, 3.0)]
    assert errors == [29.0, 5.0, 1.0]
    assert traces == [True]


def test_the_gradient_of_the_slope_sums_over_its_equations() -> None:
    """-2 from the first equation and -12 from the second make -14, at both places."""
    first, second = jaxinterop.grad(total_error)(equations(2.0))
    assert first.slope is second.slope
    assert float(first.slope.value) == -14.0
    assert [float(first.right_side), float(first.x)] == [2.0, -4.0]
    assert [float(second.right_side), float(second.x)] == [4.0, -8.0]


def test_the_equations_are_solved_by_descent() -> None:
    """A step taken on the slope of one equation is taken for all: they stay one system."""
    system = equations(0.0, ((6.0, 2.0), (9.0, 3.0)))
    gradient = jaxinterop.jit(jaxinterop.grad(total_error))
    for _ in range(20):
        system[0].slope.value -= 0.05 * gradient(system)[1].slope.value
    assert system[0].slope is system[1].slope
    assert float(system[1].slope.value) == pytest.approx(3.0, abs=1e-5)


def batch_of_equations(slopes: Sequence[float]) -> Any:
    """One graph that holds, at each place, the numbers of many graphs of its shape."""
    systems = [equations(slope) for slope in slopes]
    return pydag.dag_map(lambda *numbers: jnp.stack([*map(jnp.asarray, numbers)]), *systems)


def test_a_batch_of_graphs_is_a_graph_of_their_shape() -> None:
    """Stacking keeps the sharing: one slope, and one stacked number for it."""
    first, second = batch_of_equations([1.0, 2.0, 3.0])
    assert first.slope is second.slope
    assert first.slope.value.tolist() == [1.0, 2.0, 3.0]
    assert first.right_side.tolist() == [3.0, 3.0, 3.0]


def test_vmap_over_a_batch_of_graphs() -> None:
    """`vmap` hands one graph at a time to the function, tied."""

    def error(dag: Any) -> Any:
        system = dag.tree
        assert system[0].slope is system[1].slope
        return total_error(system)

    errors = jax.vmap(error)(jaxinterop.Dag(batch_of_equations([1.0, 2.0, 3.0])))
    assert errors.tolist() == [29.0, 5.0, 1.0]


def test_graphs_come_out_of_vmap_tied() -> None:
    """A mapped function may return a graph; the batched result shares as each of them did."""

    def double(dag: Any) -> Any:
        return jaxinterop.Dag(scaled(dag.tree))

    first, second = jax.vmap(double)(jaxinterop.Dag(batch_of_equations([1.0, 2.0]))).tree
    assert first.slope is second.slope
    assert first.slope.value.tolist() == [2.0, 4.0]


def test_batches_of_one_shape_share_one_compiled_function() -> None:
    """A jitted `vmap` is traced for the first batch and reused for the next."""
    traces: list[str] = []

    def error(dag: Any) -> Any:
        traces.append("trace")
        return total_error(dag.tree)

    errors = jax.jit(jax.vmap(error))
    assert errors(jaxinterop.Dag(batch_of_equations([1.0, 2.0]))).tolist() == [29.0, 5.0]
    assert errors(jaxinterop.Dag(batch_of_equations([3.0, 2.0]))).tolist() == [1.0, 5.0]
    assert traces == ["trace"]


def test_deref_takes_the_graph_through_plain_vmap() -> None:
    """A derefed graph is an ordinary pytree, so `vmap` needs no `Dag` either."""

    def error(derefed: Any) -> Any:
        system = pydag.reref(derefed)
        assert system[0].slope is system[1].slope
        return total_error(system)

    errors = jax.vmap(error)(pydag.deref(batch_of_equations([1.0, 2.0, 3.0])))
    assert errors.tolist() == [29.0, 5.0, 1.0]


# References that run both ways.


class Body:
    """A point that knows its partner by the partner's index."""

    def __init__(self, position: Any, partner: int) -> None:
        self.position = position
        self.partner = partner


class System:
    """Bodies, in the order that their indices mean."""

    def __init__(self, bodies: list[Body]) -> None:
        self.bodies = bodies

    def partner_of(self, body: Body) -> Body:
        """The body that `body` refers to."""
        return self.bodies[body.partner]


pydag.register_fields(Body, data_fields=("position",), meta_fields=("partner",))
pydag.register_fields(System, data_fields=("bodies",))


def pair() -> System:
    """Two bodies that refer to each other."""
    return System([Body(1.0, partner=1), Body(4.0, partner=0)])


def energy(system: System) -> Any:
    """The sum of the bodies' squared distances from their partners."""
    return sum((body.position - system.partner_of(body).position) ** 2 for body in system.bodies)


def test_objects_that_hold_each_other_are_no_dag() -> None:
    """A reference that leads back to where it came from is an error, not an endless walk."""
    one, other = Slope(None), Slope(None)
    one.value, other.value = other, one
    with pytest.raises(pydag.CycleError):
        pydag.dag_flatten(one)


def test_objects_refer_to_each_other_by_index() -> None:
    """Indices are structure: bodies that were each other's partners are so when rebuilt."""
    system = pydag.dag_map(lambda x: 10.0 * x, pair())
    first, second = system.bodies
    assert system.partner_of(first) is second
    assert system.partner_of(second) is first
    assert [first.position, second.position] == [10.0, 40.0]


def test_a_body_held_directly_and_by_index_is_one() -> None:
    """A second holder of a body gets the rebuilt body that the index leads to."""
    system = pair()
    rebuilt, chosen = pydag.dag_map(float, (system, system.bodies[1]))
    assert chosen is rebuilt.bodies[1]
    assert chosen is rebuilt.partner_of(rebuilt.bodies[0])


def test_mutual_references_work_inside_jit() -> None:
    """Under a trace the partner's partner is the body itself, and the energy is 9 twice."""

    @jaxinterop.jit
    def traced_energy(system: System) -> Any:
        for body in system.bodies:
            assert system.partner_of(system.partner_of(body)) is body
        return energy(system)

    assert traced_energy(pair()) == 18.0


def test_the_gradient_of_mutual_references() -> None:
    """Each body is pulled by its own term and by its partner's; indices stay as they were."""
    first, second = jaxinterop.grad(energy)(pair()).bodies
    assert [float(first.position), float(second.position)] == [-12.0, 12.0]
    assert [first.partner, second.partner] == [1, 0]


def test_other_references_are_another_structure() -> None:
    """Who refers to whom is compared with the structure, not traced as a number."""
    recluses = System([Body(1.0, partner=0), Body(4.0, partner=1)])
    assert pydag.dag_structure(recluses) != pydag.dag_structure(pair())


# `deref` and `reref` around JAX's own `jit`.


def tied_arrays() -> dict[str, Any]:
    """Two arrays of equal content: one stands at two places, and so does the other."""
    first, second = np.array(0.0), np.array(0.0)
    return {"x": [first, first, second], "y": second}


def test_reref_and_deref_inside_plain_jit() -> None:
    """Tracers tied inside the function, results tied outside of it."""

    @jax.jit
    def add_one(derefed: Any) -> Any:
        tree = pydag.reref(derefed)
        assert tree["x"][0] is tree["x"][1]
        assert tree["x"][2] is tree["y"]
        assert tree["x"][0] is not tree["y"]
        return pydag.deref(pydag.dag_map(lambda x: x + 1.0, tree))

    tree = pydag.reref(add_one(pydag.deref(tied_arrays())))
    assert tree["x"][0] is tree["x"][1]
    assert tree["x"][2] is tree["y"]
    assert tree["x"][0] is not tree["y"]
    assert [float(tree["x"][0]), float(tree["y"])] == [1.0, 1.0]


def test_a_derefed_tree_passes_each_array_once() -> None:
    """JAX finds two leaves where it would otherwise find four."""
    assert len(jax.tree.leaves(tied_arrays())) == 4
    assert len(jax.tree.leaves(pydag.deref(tied_arrays()))) == 2


def test_plain_jit_compiles_once_for_one_sharing() -> None:
    """Derefed trees of one sharing have one structure for JAX; another sharing retraces."""
    traces: list[bool] = []

    @jax.jit
    def total(derefed: Any) -> Any:
        tree = pydag.reref(derefed)
        traces.append(tree["x"][0] is tree["x"][1])
        return sum(tree["x"]) + tree["y"]

    for tree in (tied_arrays(), tied_arrays(), {"x": [*map(np.array, (0.0, 0.0, 0.0))], "y": 0.0}):
        assert total(pydag.deref(tree)) == 0.0
    assert traces == [True, False]


def test_objects_cross_plain_jit_derefed() -> None:
    """Modules, too, go into and out of JAX's own `jit`, and come out of their class and tied."""

    @jax.jit
    def double(derefed: Any) -> Any:
        return pydag.deref(scaled(pydag.reref(derefed)))

    first, second = pydag.reref(double(pydag.deref(equations(2.0))))
    assert type(first) is Equation
    assert first.slope is second.slope
    assert float(first.slope.value) == 4.0
