# SPDX-License-Identifier: Apache-2.0
"""A suspension bridge as a graph of ordinary objects, solved by Newton's method under `jit`.

Springs hold the bodies between which they are stretched and the material they are made of: each
body is held by several springs, each material by dozens. The classes know nothing of JAX. The
energy of the bridge is a sum over its parts, and the force on a body is the energy's gradient:
being shared, the body gets the sum over all springs that hold it, which is the law of mechanics.
Plain JAX gives each spring bodies of its own, and the bridge falls apart; a picture shows it, and
an animation beside it. A lorry stops at many places on the bridge, and all these bridges are
solved at once by `vmap`.

    python examples/object_graph.py [--places 45] [--panels 10] [--out out/object_graph.png]
"""

import argparse
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.animation import PillowWriter
from matplotlib.figure import Figure
from tqdm import tqdm

import pydag
import pydag.jaxinterop as pj

LORRY = 6.0  # its weight; a part of the deck weighs 1
NEWTON_STEPS = 12
LONGEST_STEP = 0.3
DOWNHILL_STEPS, RATE = 300, 5e-4  # of the comparison with plain JAX
STEPS_OF_A_FRAME = 10  # of its animation

# Compiling takes longer than all the rest; these programs are run a few times only.
QUICKLY = {"xla_backend_optimization_level": 0}

# --- the bridge: plain objects that refer to one another ---


class Item:
    """A class whose attributes are its children; one line tells pydag so."""

    def __init_subclass__(cls) -> None:
        pydag.register_fields(cls)
        # Registered with JAX as well, for the comparison alone.
        jax.tree_util.register_pytree_node(
            cls, lambda item: (vars(item).values(), tuple(vars(item))), partial(build, cls)
        )


def build(cls: type[Item], names: Sequence[str], children: Sequence[Any]) -> Item:
    item = object.__new__(cls)
    vars(item).update(zip(names, children, strict=True))
    return item


@dataclass(eq=False)
class Body(Item):
    """A place where springs meet. A support has no weight, and is never moved."""

    x: Any
    y: Any
    weight: Any = 0.0


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
        for support in (cable[0], cable[-1], deck[0], deck[-1]):
            support.weight = 0.0
        self.bodies = cable[1:-1] + deck[1:-1]  # those that move
        self.cable = [Spring(*pair, steel) for pair in pairwise(cable)]
        self.deck = [Spring(*pair, steel) for pair in pairwise(deck)]
        self.hangers = [Spring(*pair, rope) for pair in zip(cable[1:-1], deck[1:-1], strict=True)]

    def springs(self) -> list[Spring]:
        return self.cable + self.deck + self.hangers

    def energy(self) -> Any:
        return sum(s.energy() for s in self.springs()) + sum(b.weight * b.y for b in self.bodies)

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
    moved = pydag.dag_copy(bridge)  # for this sum alone: a change of `bridge` would be lost
    moved.move(list(positions))
    energy: jax.Array = moved.energy()
    return energy


def settle(bridge: Bridge) -> Bridge:
    """The bridge at rest, by Newton's method: where the forces vanish."""

    def uphill(positions: jax.Array) -> tuple[jax.Array, jax.Array]:
        gradient = pj.grad(energy_at)(positions, bridge)
        return gradient, gradient

    def step(gradient: jax.Array, stiffness: jax.Array) -> jax.Array:
        moves: jax.Array = jnp.linalg.solve(stiffness, -gradient.ravel())
        return moves.reshape(gradient.shape)

    def improve(_: Any, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        positions, _ = state
        derivative, gradient = pj.jacfwd(uphill, has_aux=True)(positions)
        move = step(gradient, stiffness := derivative.reshape(size, size))
        return positions + move * jnp.minimum(1, LONGEST_STEP / jnp.max(jnp.abs(move))), stiffness

    start = jnp.asarray(bridge.positions(), dtype=float)
    size = start.size
    state = jax.lax.fori_loop(0, NEWTON_STEPS, improve, (start, jnp.eye(size)))
    # One step more, which hardly moves anything: its derivative is that of the place where the
    # forces vanish, as the implicit function theorem has it. So nothing before it needs any.
    positions, stiffness = jax.lax.stop_gradient(state)
    settled = pydag.dag_copy(bridge)
    settled.move(list(positions + step(uphill(positions)[0], stiffness)))
    return settled


def largest_force(bridge: Bridge) -> jax.Array:
    """What is left of the forces on the bodies, each the sum over all springs that hold it."""
    gradient = pj.grad(Bridge.energy)(bridge)
    return jnp.max(jnp.abs(jnp.asarray(gradient.positions())))


def stiffer(bridge: Bridge, by: float) -> Bridge:
    """A copy whose cable and deck are of a stiffer steel: one number, in one place."""
    bridge = pydag.dag_copy(bridge)
    bridge.cable[0].material.stiffness += by
    return bridge


# --- the same graph by plain JAX, in which every path has an object of its own ---


def slide(jit: Any, grad: Any, tree_map: Any, bridge: Bridge) -> list[Bridge]:
    """The bridge, after more and more steps in which its bodies follow the forces on them."""

    def follow(item: Any, force: Any) -> Any:
        if not isinstance(item, Body):
            return item
        rate = RATE * jnp.sign(item.weight)  # supports stay
        return Body(item.x - rate * force.x, item.y - rate * force.y, item.weight)

    def step(bridge: Bridge) -> Bridge:
        forces, is_body = grad(Bridge.energy)(bridge), lambda item: isinstance(item, Body)
        moved: Bridge = tree_map(follow, bridge, forces, is_leaf=is_body)
        return moved

    fast_step, bridges = jit(step), [bridge]
    for number in range(1, DOWNHILL_STEPS + 1):
        bridge = fast_step(bridge)
        if number % STEPS_OF_A_FRAME == 0:
            bridges.append(bridge)
    return bridges


def counts(bridge: Bridge) -> dict[str, int]:
    """How many there are of what: objects, by their identity."""
    ends = [body for spring in bridge.springs() for body in (spring.one, spring.other)]
    return {
        "numbers": pydag.dag_structure(bridge).num_leaves,
        "bodies": len(set(map(id, ends + bridge.bodies))),
        "materials": len({id(spring.material) for spring in bridge.springs()}),
    }


def gap(bridge: Bridge, built: Bridge) -> float:
    """How far a body is from the end of a spring that held it when the bridge was built."""

    def joints(bridge: Bridge) -> list[Body]:
        return bridge.bodies + [end for s in bridge.springs() for end in (s.one, s.other)]

    where: dict[int, Body] = {}
    gaps = [0.0]
    for joint, before in zip(joints(bridge), joints(built), strict=True):
        body = where.setdefault(id(before), joint)
        gaps.append(float(jnp.hypot(joint.x - body.x, joint.y - body.y)))
    return max(gaps)


# --- the report ---


@contextmanager
def progress(stages: int) -> Iterator[Callable[[str], None]]:
    """A bar with a clock that runs while JAX is at work; its caller names what is going on.

    Into a pipe it is a line for each stage.
    """
    if not sys.stderr.isatty():
        yield lambda what: print(what, file=sys.stderr, flush=True)
        return
    ended = threading.Event()
    layout = "{desc:<34}|{bar}| {n_fmt}/{total_fmt} [{elapsed}]"
    with tqdm(total=stages, bar_format=layout) as bar:

        def tick() -> None:
            while not ended.wait(0.25):
                bar.refresh()

        def begin(what: str) -> None:
            bar.update(int(bool(bar.desc)))
            bar.set_description_str(what)

        clock = threading.Thread(target=tick, daemon=True)
        clock.start()
        try:
            yield begin
            bar.update()
            bar.set_description_str("done")
        finally:
            ended.set()
            clock.join()


def numbers(bridges: Sequence[Bridge]) -> Any:
    """Many graphs of one structure as one graph with a number from each of them at each place."""
    return pydag.dag_map(lambda *values: jnp.stack([*map(jnp.float32, values)]), *bridges)


COLORS = {"pydag": "C0", "plain JAX": "C3"}


def draw(panel: Any, bridge: Bridge, color: str, *, bodies: bool = False) -> None:
    for spring in bridge.springs():
        ends = (spring.one.x, spring.other.x), (spring.one.y, spring.other.y)
        panel.plot(*ends, color=color, linewidth=1)
    if bodies:
        xs, ys = zip(*bridge.positions(), strict=True)
        panel.plot(xs, ys, "o", color=color, markersize=4)


def draw_both(panels: Any, slid: dict[str, list[Bridge]], frame: int) -> None:
    """The two bridges after some steps; the panels have room for where the bodies fall to."""
    lowest = min(float(y) for bridges in slid.values() for _, y in bridges[-1].positions())
    for name, bridges in slid.items():
        panels[name].clear()
        draw(panels[name], bridges[frame], COLORS[name], bodies=True)
        panels[name].set(title=f"{name}: {counts(bridges[frame])['bodies']} bodies")
        panels[name].set_ylim(lowest - 0.3, 2.8)


def picture(
    places: np.ndarray[Any, Any], settled: Bridge, slid: dict[str, list[Bridge]], path: Path
) -> None:
    """Panels that are readable in a column of 650 pixels."""
    figure = Figure(figsize=(7, 6), layout="constrained")  # no pyplot: needs no display
    mosaic: Any = [["pydag", "plain JAX"], ["side", "side"]]
    panels = figure.subplot_mosaic(mosaic)
    draw_both(panels, slid, -1)
    for number, i in enumerate(np.linspace(0, len(places) - 1, 4).astype(int)):
        draw(panels["side"], pydag.dag_map(lambda x, i=i: x[i], settled), f"C{number}")
        panels["side"].plot(places[i], 0.15, "v", color=f"C{number}")
    panels["side"].set(title="At rest, with a lorry at several places", aspect="equal")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def animation(slid: dict[str, list[Bridge]], path: Path) -> None:
    """The two bridges in motion; the last frame stays for two seconds."""
    figure = Figure(figsize=(7, 2.8), layout="constrained")
    panels = figure.subplot_mosaic([list(slid)])
    frames, writer = len(slid["pydag"]), PillowWriter(fps=10)
    with writer.saving(figure, path, dpi=100):
        for frame in [*range(frames), *[frames - 1] * 20]:
            draw_both(panels, slid, frame)
            writer.grab_frame()


def main() -> None:
    parser = argparse.ArgumentParser(description="Solve bridges that are graphs of objects.")
    parser.add_argument("--places", type=int, default=45, help="of the lorry (%(default)s)")
    parser.add_argument("--panels", type=int, default=10, help="of the bridge (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("out/object_graph.png"))
    args = parser.parse_args()
    if args.places < 1 or args.panels < 2:
        parser.error("there must be at least one place and two panels")

    with progress(7) as begin:
        begin(f"building {args.places} bridges")
        places = np.linspace(0.5, args.panels - 0.5, args.places)
        bridges = [Bridge(args.panels, place) for place in places]
        spec = pydag.dag_structure(bridges[0])
        assert all(pydag.dag_structure(bridge) == spec for bridge in bridges)
        middle = pydag.dag_map(jnp.float32, Bridge(args.panels, args.panels // 2))

        begin("following the forces, by pydag")
        slid = {"pydag": slide(pj.jit, pj.grad, pydag.dag_map, middle)}
        begin("following the forces, by plain JAX")
        slid["plain JAX"] = slide(jax.jit, jax.grad, jax.tree.map, middle)

        batch, traces = numbers(bridges), []

        @pj.jit
        @pj.vmap
        def solve(bridge: Bridge) -> tuple[Bridge, jax.Array]:
            traces.append(bridge.cable[0].material is bridge.deck[-1].material)
            bridge = settle(bridge)
            return bridge, largest_force(bridge)

        seconds = [time.perf_counter()]
        begin("tracing the solver")
        lowered = solve.lower(batch)
        seconds.append(time.perf_counter())
        begin("compiling the solver")
        solver = lowered.compile(compiler_options=QUICKLY)
        seconds.append(time.perf_counter())
        begin("solving all bridges at once")
        settled, rest = solver(batch)
        rest.block_until_ready()
        seconds.append(time.perf_counter())

        begin("compiling and asking its derivative")
        sag = pj.jit(pj.value_and_grad(lambda bridge: settle(bridge).sag()))
        how_it_sags = sag.lower(middle).compile(compiler_options=QUICKLY)
        _, slope = how_it_sags(middle)
        change = how_it_sags(stiffer(middle, 25.0))[0] - how_it_sags(stiffer(middle, -25.0))[0]

    tracing, compiling, solving = np.diff(seconds)
    ends = [middle, *(bridges[-1] for bridges in slid.values())]
    found = [(*counts(bridge).values(), gap(bridge, middle)) for bridge in ends]
    names = (*counts(middle), "widest gap at a joint")
    rows = "\n".join(
        f"{name:28}{row[0]:>8.3g}  {''.join(f'{x:>12.3g}' for x in row[1:])}"
        for name, row in zip(names, zip(*found, strict=True), strict=True)
    )
    print(f"""
One bridge, whose bodies followed the forces on them for {DOWNHILL_STEPS} steps:

                            as built  {"".join(f"{name:>12}" for name in slid)}
{rows}

Under plain JAX each spring has bodies of its own: the bridge falls apart. Under pydag a body is one
object, and the force on it is the sum over the springs that hold it: the bridge stands.

All bridges at rest, by Newton's method:

numbers of one bridge, and paths to them      {spec.num_leaves} and {spec.num_paths}
bridges solved at once                        {len(places)}
traced                                        {len(traces)} time, the steel being one: {traces[0]}
tracing, compiling, solving                   {tracing:.1f} s, {compiling:.1f} s, {solving:.3f} s
largest force left on a body                  {jnp.max(rest):.1e}
sag of the middle per stiffness of the steel  {slope.cable[0].material.stiffness:.3e}, by gradient
                                              {change / 50:.3e}, by two bridges""")
    moving = args.out.with_suffix(".gif")
    picture(places, settled, slid, args.out)
    animation(slid, moving)
    print(f"\nThe picture is in {args.out}, the two bridges in motion in {moving}")


if __name__ == "__main__":
    main()
