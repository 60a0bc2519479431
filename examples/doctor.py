# SPDX-License-Identifier: Apache-2.0
"""A tied model goes through a careless conversion; the doctor says what is wrong, and repairs it.

The model is a small language model whose head is its embedding, saved in shards with an index and a
`config.json`, as they are on model hubs. The conversion copies each array under each of its names,
and forgets to write one of its shards into the index. What is printed is what
`python -m pydag check` prints of such directories. The picture shows which names are one array, of
each directory. Nothing here needs JAX or PyTorch.

    python examples/doctor.py [--layers 3] [--out out/doctor.png]
"""

import argparse
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from safetensors.numpy import save_file

import pydag
from pydag.__main__ import main as run_pydag

WORDS, WIDTH = 400, 64
INDEX = "model.safetensors.index.json"
CONFIG = {"architectures": ["LlamaForCausalLM"], "tie_word_embeddings": True}
Arrays = dict[str, np.ndarray[Any, Any]]


# --- a model, and what happens to it ---


def tied_model(layers: int) -> Arrays:
    """A state dict: the head is the embedding, and the last layer is the first one."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray[Any, Any]:
        return rng.normal(size=shape).astype(np.float32)

    embedding = normal(WORDS, WIDTH)
    blocks = [normal(WIDTH, WIDTH) for _ in range(layers)]
    named = {f"model.layers.{i}.weight": block for i, block in enumerate([*blocks, blocks[0]])}
    return {"model.embed_tokens.weight": embedding, **named, "lm_head.weight": embedding}


def save_well(model: Arrays, folder: Path) -> None:
    """By pydag: each array once, its other names as aliases."""
    pydag.files.save(folder, model, shard_size="60KB")
    (folder / "config.json").write_text(json.dumps(CONFIG), "utf-8")


def convert_badly(model: Arrays, folder: Path) -> None:
    """An array for each name, in two shards; the index has the names of the first one alone."""
    folder.mkdir(parents=True)
    names = list(model)
    shards = {"model-00001-of-00002.safetensors": names[::2]}
    shards["model-00002-of-00002.safetensors"] = names[1::2]
    for file, held in shards.items():
        save_file({name: model[name].copy() for name in held}, folder / file)
    first = next(iter(shards))
    index = {"metadata": {}, "weight_map": dict.fromkeys(shards[first], first)}
    (folder / INDEX).write_text(json.dumps(index), "utf-8")
    (folder / "config.json").write_text(json.dumps(CONFIG), "utf-8")


def complete_index(folder: Path) -> None:
    """Names each array, with the shard that has it."""
    where = {
        name: path.name
        for path in sorted(folder.glob("*.safetensors"))
        for name in pydag.files.load(path)
    }
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": where}), "utf-8")


# --- what is shown ---


def names_of_arrays(folder: Path) -> list[tuple[str, ...]]:
    """The names in a directory, those of one array together."""
    groups: dict[int, list[str]] = {}
    for name, array in pydag.files.load(folder).items():
        groups.setdefault(id(array), []).append(name)
    return [tuple(group) for group in groups.values()]


def picture(folders: Mapping[str, Sequence[tuple[str, ...]]], path: Path) -> None:
    """Names on the left, arrays on the right; a name's line leads to its array."""
    names = sorted({name for groups in folders.values() for group in groups for name in group})
    figure = Figure(figsize=(7, 0.4 * len(names) + 1), layout="constrained")
    panels = figure.subplots(1, len(folders))
    for axes, (title, groups) in zip(panels, folders.items(), strict=True):
        for group in groups:
            heights = [-names.index(name) for name in group]
            middle = sum(heights) / len(heights)
            color = "tab:orange" if len(group) > 1 else "tab:gray"
            for height in heights:
                axes.plot([0, 1], [height, middle], color=color)
            axes.plot([1], [middle], "s", color=color, markersize=8)
        axes.set_title(f"{title}\n{len(groups)} arrays", fontsize=9)
        axes.set(xlim=(-0.05, 1.2), ylim=(0.5 - len(names), 0.5), xticks=[])
        is_first = axes.get_subplotspec().is_first_col()
        axes.set_yticks([-i for i in range(len(names))], names if is_first else [], fontsize=7)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def check(folder: Path, *options: str) -> None:
    """Runs the doctor as from the command line."""
    print(f"\n$ python -m pydag check {' '.join([str(folder), *options])}")
    run_pydag(["check", str(folder), *options])


def main() -> None:
    parser = argparse.ArgumentParser(description="Check and repair the files of a tied model.")
    parser.add_argument("--layers", type=int, default=3, help="layers (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("out/doctor.png"))
    args = parser.parse_args()
    if args.layers < 1:
        parser.error(f"--layers must be at least 1, not {args.layers}")

    base = args.out.with_suffix("")
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir(parents=True)
    saved, converted, repaired = (base / name for name in ("saved", "converted", "repaired"))
    model = tied_model(args.layers)
    save_well(model, saved)
    check(saved)
    convert_badly(model, converted)
    check(converted)
    complete_index(converted)
    check(converted, "--write", str(repaired))
    check(repaired, "--against", str(saved))

    folders = {path.name: names_of_arrays(path) for path in (saved, converted, repaired)}
    picture(folders, args.out)
    print(f"\nThe directories are in {base}, the picture is in {args.out}")


if __name__ == "__main__":
    main()
