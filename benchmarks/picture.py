# SPDX-License-Identifier: Apache-2.0
"""The picture: speed-ups, growth, sharing, the jit boundary."""

from pathlib import Path
from typing import Any

from boundary import FLOOR
from cold import FRESH, HELD
from models import MAPPINGS
from peers import WORKS
from records import Record, Results, chosen, geometric_mean
from words import union

COLOURS = {"pydag": "#c0392b", "optree": "#2980b9", "jax": "#27ae60", "dm-tree": "#8e44ad"}
OTHERS = "#95a5a6"


def draw(results: Results, path: Path) -> None:
    """Draw what was measured; a section that wasn't leaves its panel empty."""
    from matplotlib.figure import Figure  # here, so that the rest can be tested without it

    figure = Figure(figsize=(12, 9), layout="constrained")
    (top_left, top_right), (bottom_left, bottom_right) = figure.subplots(2, 2)
    _speedups(top_left, results.records)
    _boundary(top_right, results.records)
    _growth(bottom_left, results.records)
    _sharing(bottom_right, results.records)
    figure.savefig(path, dpi=110)


def _speedups(axes: Any, records: list[Record]) -> None:
    """A bar for each kind of work: the mean; a tick: the worst model."""
    works = (*WORKS, HELD, FRESH)
    for shift, (mapping, colour) in enumerate(zip(MAPPINGS, ("#c0392b", "#e59866"), strict=True)):
        for place, work in enumerate(works):
            own = [
                record
                for section in ("tables", "cold")
                for record in chosen(records, section, work=work, mapping=mapping)
                if not record.labels.get("shared")
            ]
            ratios = [ratio for record in own if (ratio := record.speedup()) is not None]
            if ratios:
                y = place + 0.4 * shift
                label = mapping if place == 0 else None
                axes.barh(y, geometric_mean(ratios), 0.38, color=colour, label=label)
                axes.plot([min(ratios)] * 2, [y - 0.19, y + 0.19], color="black", linewidth=1.5)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks([place + 0.2 for place in range(len(works))], works)
    axes.invert_yaxis()
    axes.set_xlabel("mean over the nine models; the tick is the worst of them")
    axes.set_title("Times as fast as the fastest other library")
    if axes.get_legend_handles_labels()[0]:
        axes.legend()


def _boundary(axes: Any, records: list[Record]) -> None:
    """The call of a function that updates the model, as a multiple of the floor."""
    own = chosen(records, "boundary", work="update")
    names = [n for n in union(record.times for record in own) if n != FLOOR]
    for shift, record in enumerate(own):
        floor = record.times[FLOOR].minimum
        places = [place for place, name in enumerate(names) if name in record.times]
        axes.barh(
            [place + 0.8 * shift / len(own) for place in places],
            [record.times[names[place]].minimum / floor for place in places],
            0.75 / len(own),
            label=f"{record.labels['leaves']} leaves",
            color=["#c0392b" if names[place].startswith("pydag") else OTHERS for place in places],
            alpha=1 - 0.25 * shift,
        )
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks([place + 0.27 for place in range(len(names))], names)
    axes.invert_yaxis()
    sizes = ", ".join(f"{record.labels['leaves']}" for record in own)
    axes.set_xscale("log")
    axes.set_xlabel(f"times jax.jit on a flat tuple; {sizes} leaves")
    axes.set_title("Calls that update a model, compiled")


def _growth(axes: Any, records: list[Record]) -> None:
    """Time per object of nested dicts."""
    for work, style in (("flatten", "-"), ("unflatten", "--")):
        own = chosen(records, "growth", kind="dicts", work=work)
        for name in union(record.times for record in own):
            points = _points(own, "objects", name)
            axes.plot(
                [count for count, _ in points],
                [seconds / count * 1e9 for count, seconds in points],
                style,
                marker=".",
                color=COLOURS.get(name, OTHERS),
                label=f"{name} {work}",
            )
    _logarithmic(axes, "objects, in dicts of nine leaves", "nanoseconds an object")
    axes.set_title("Growth")
    axes.set_ylim(bottom=axes.get_ylim()[0] / 5)  # room for the legend


def _sharing(axes: Any, records: list[Record]) -> None:
    """Flatten of `t = [t, t]`."""
    own = chosen(records, "sharing")
    for name in [n for n in union(record.times for record in own) if n.endswith(" flatten")]:
        points = _points(own, "depth", name)
        colour = COLOURS.get(name.partition(" ")[0], OTHERS)
        axes.plot(*zip(*points, strict=True), marker=".", color=colour, label=name)
    _logarithmic(axes, "depth of t = [t, t]", "seconds")
    axes.set_xscale("linear")
    axes.set_title("Sharing")


def _logarithmic(axes: Any, x: str, y: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small", ncols=2)


def _points(records: list[Record], label: str, name: str) -> list[tuple[int, float]]:
    return [(int(r.labels[label]), r.times[name].minimum) for r in records if name in r.times]
