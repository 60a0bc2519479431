# SPDX-License-Identifier: Apache-2.0
"""The picture: speed-ups, and calls of compiled functions. It is read in a column of 650 pixels."""

from pathlib import Path
from typing import Any

from boundary import FLOOR
from cold import FRESH, HELD, UNSEEN
from models import MAPPINGS
from peers import WORKS
from records import Record, Results, chosen, geometric_mean
from words import union

OTHERS = "#95a5a6"


def draw(results: Results, path: Path) -> None:
    """Draw what was measured; a section that wasn't leaves its panel empty."""
    from matplotlib.figure import Figure  # here, so that the rest can be tested without it

    figure = Figure(figsize=(7, 8.5), layout="constrained")
    top, bottom = figure.subplots(2, 1)
    _speedups(top, results.records)
    _boundary(bottom, results.records)
    figure.savefig(path, dpi=130)


def _speedups(axes: Any, records: list[Record]) -> None:
    """A bar for each kind of work: the mean; a tick: the worst model."""
    works = (*WORKS, HELD, FRESH, UNSEEN)
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
        axes.legend(loc="center right")  # the bars there are short


def _boundary(axes: Any, records: list[Record]) -> None:
    """The call of a function that updates the model, as a multiple of the floor."""
    own = chosen(records, "boundary", work="update")
    own = [*own[:1], *own[1:][-1:]]
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
    axes.set_yticks([place + 0.2 for place in range(len(names))], names)
    axes.invert_yaxis()
    sizes = " and ".join(f"{record.labels['leaves']}" for record in own)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel(f"times as long as jax.jit with a flat tuple; {sizes} leaves")
    axes.set_title("Calls of a compiled function that updates a model")
