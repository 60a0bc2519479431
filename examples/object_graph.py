# SPDX-License-Identifier: Apache-2.0
"""A suspension bridge as a graph of ordinary objects, solved by Newton's method under `jit`.

Springs hold the bodies between which they are stretched and the material they are made of: each
body is held by several springs, each material by dozens. The classes know nothing of JAX. The
energy of the bridge is a sum over its parts, and the force on a body is the energy's gradient:
being shared, the body gets the sum over all springs that hold it, which is the law of mechanics.
A lorry stops at many places on the bridge, and all these bridges are solved at once by `vmap`.

    python examples/object_graph.py [--places 45] [--panels 10] [--out out/object_graph.png]
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from tqdm import tqdm

import pydag
import pydag.jaxinterop as pj

LORRY = 6.0  # its weight; a part of the deck weighs 1
NEWTON_STEPS = 12
LONGEST_STEP = 0.3

# --- the bridge: plain objects that refer to one another ---


class Item:
    def __init_subclass__(cls) -> None:
        pydag.register_fields(cls)


@dataclass(eq=False)
class Body(Item):
    """A place where springs meet. A support has no weight, and is never moved."""

    x: float
    y: float
    weight: float = 0.0


@dataclass(eq=False)
class Material(Item):
    stiffness: float


class Spring(Item):
    def __init__(self, one: Body, other: Body, material: Material) -> None:
        self.one, self.other, self.material = one, other, material
        self.rest_length = 0.98 * self.length()  # it is under tension from the start

    def length(self) -> Any:
        return ((self.one.x - self.other.x) ** 2 + (self.one.y - self.other.y) ** 2) ** 0.5

    def tension(self) -> Any:
        return self.material.stiffness * (self.length() / self.rest_length - 1)

    def energy(self) -> Any:
        stretch = self.length() - self.rest_length
        return self.material.stiffness / self.rest_length * stretch**2 / 2


class Bridge(Item):
    def __init__(self, panels: int, lorry_at: float) -> None:
        steel, rope = Material(500.0), Material(200.0)
        cable = [Body(x, 0.5 + 2.0 * (2 * x / panels - 1) ** 2, 0.1) for x in range(panels + 1)]
        deck = [Body(x, 0.0, 1 + LORRY * max(0, 1 - abs(x - lorry_at))) for x in range(panels + 1)]
        self.bodies = cable[1:-1] + deck[1:-1]  # those that move; the ends are supports
        self.cable = [Spring(*pair, steel) for pair in pairwise(cable)]
        self.deck = [Spring(*pair, steel) for pair in pairwise(deck)]
        self.hangers = [Spring(*pair, rope) for pair in zip(cable[1:-1], deck[1:-1], strict=True)]

    def energy(self) -> Any:
        springs = self.cable + self.deck + self.hangers
        return sum(s.energy() for s in springs) + sum(b.weight * b.y for b in self.bodies)

    def positions(self) -> list[tuple[Any, Any]]:
        return [(body.x, body.y) for body in self.bodies]

    def move(self, positions: Sequence[Any]) -> None:
        """Each body is moved once; all springs that hold it see it."""
        for body, (x, y) in zip(self.bodies, positions, strict=True):
            body.x, body.y = x, y

    def sag(self) -> Any:
        """How far down the middle of the deck hangs."""
        return -self.deck[len(self.deck) // 2].one.y


# --- the physics: JAX enters here ---


def energy_at(positions: jax.Array, bridge: Bridge) -> jax.Array:
    bridge.move(list(positions))  # objects of this call: nobody else's bridge moves
    energy: jax.Array = bridge.energy()
    return energy


def settle(bridge: Bridge) -> Bridge:
    """The bridge at rest, by Newton's method: where the forces vanish."""

    def step(positions: jax.Array, stiffness: jax.Array) -> jax.Array:
        force = pj.grad(energy_at)(positions, bridge)
        moves: jax.Array = jnp.linalg.solve(stiffness, -force.ravel())
        return moves.reshape(force.shape)

    def improve(_: Any, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        positions, _ = state
        stiffness = pj.hessian(energy_at)(positions, bridge).reshape(size, size)
        move = step(positions, stiffness)
        return positions + move * jnp.minimum(1, LONGEST_STEP / jnp.max(jnp.abs(move))), stiffness

    start = jnp.asarray(bridge.positions(), dtype=float)
    size = start.size
    state = jax.lax.fori_loop(0, NEWTON_STEPS, improve, (start, jnp.eye(size)))
    # One step more, which hardly moves anything: its derivative is that of the place where the
    # forces vanish, as the implicit function theorem has it. So nothing before it needs any.
    positions, stiffness = jax.lax.stop_gradient(state)
    bridge.move(list(positions + step(positions, stiffness)))
    return bridge


def largest_force(bridge: Bridge) -> jax.Array:
    """What is left of the forces on the bodies, each the sum over all springs that hold it."""
    gradient = pj.grad(Bridge.energy)(bridge)
    return jnp.max(jnp.abs(jnp.asarray(gradient.positions())))


def stiffer(bridge: Bridge, by: float) -> Bridge:
    """A copy whose cable and deck are of a stiffer steel: one number, in one place."""
    bridge = pydag.dag_copy(bridge)
    bridge.cable[0].material.stiffness += by
    return bridge


# --- the report ---


def numbers(bridges: Sequence[Bridge]) -> Any:
    """Many graphs of one structure as one graph with a number from each of them at each place."""
    return pydag.dag_map(lambda *values: jnp.stack([*map(jnp.float32, values)]), *bridges)


def picture(places: np.ndarray[Any, Any], settled: Bridge, path: Path) -> None:
    figure = Figure(figsize=(11, 4), layout="constrained")  # no pyplot: needs no display
    axes = figure.subplot_mosaic([["side", "force"], ["side", "sag"]], width_ratios=(3, 2))
    side = axes["side"]
    for number, i in enumerate(np.linspace(0, len(places) - 1, 4).astype(int)):
        bridge = pydag.dag_map(lambda values, i=i: values[i], settled)
        for spring in bridge.cable + bridge.deck + bridge.hangers:
            ends = (spring.one.x, spring.other.x), (spring.one.y, spring.other.y)
            side.plot(*ends, color=f"C{number}", linewidth=1)
        side.plot(places[i], 0.15, "v", color=f"C{number}")
    side.set(title="the bridge, with a lorry at several places", aspect="equal")
    strongest = np.max([spring.tension() for spring in settled.cable], axis=0)
    deepest = np.min([spring.one.y for spring in settled.deck], axis=0)
    axes["force"].plot(places, strongest)
    axes["force"].set(title="strongest force in the cable", ylim=0)
    axes["sag"].plot(places, deepest)
    axes["sag"].set(title="deepest place of the deck", xlabel="place of the lorry")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description="Solve bridges that are graphs of objects.")
    parser.add_argument("--places", type=int, default=45, help="of the lorry (%(default)s)")
    parser.add_argument("--panels", type=int, default=10, help="of the bridge (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("out/object_graph.png"))
    args = parser.parse_args()
    if args.places < 1 or args.panels < 2:
        parser.error("there must be at least one place and two panels")

    places = np.linspace(0.5, args.panels - 0.5, args.places)
    bridges = [Bridge(args.panels, place) for place in tqdm(places, "building", unit="bridge")]
    spec = pydag.dag_structure(bridges[0])
    assert all(pydag.dag_structure(bridge) == spec for bridge in bridges)

    batch, traces = numbers(bridges), []

    @pj.jit
    @pj.vmap
    def solve(bridge: Bridge) -> tuple[Bridge, jax.Array]:
        traces.append(bridge.cable[0].material is bridge.deck[-1].material)
        bridge = settle(bridge)
        return bridge, largest_force(bridge)

    seconds = []
    for _ in tqdm(range(2), desc=" solving", unit="batch"):
        start = time.perf_counter()
        settled, rest = solve(batch)
        rest.block_until_ready()
        seconds.append(time.perf_counter() - start)

    sag = pj.jit(pj.value_and_grad(lambda bridge: settle(bridge).sag()))
    middle = pydag.dag_map(jnp.float32, Bridge(args.panels, args.panels // 2))
    _, slope = sag(middle)
    change = (sag(stiffer(middle, 25.0))[0] - sag(stiffer(middle, -25.0))[0]) / 50

    print(f"""
numbers of one bridge, and paths to them      {spec.num_leaves} and {spec.num_paths}
bridges solved at once                        {len(places)}
traced                                        {len(traces)} time, the steel being one: {traces[0]}
first call, with compilation                  {seconds[0]:.2f} s
second call                                   {1000 * seconds[1]:.1f} ms
largest force left on a body                  {jnp.max(rest):.1e}
sag of the middle per stiffness of the steel  {slope.cable[0].material.stiffness:.3e}, by gradient
                                              {change:.3e}, by two bridges""")
    picture(places, settled, args.out)
    print(f"\nThe picture is in {args.out}")


if __name__ == "__main__":
    main()
