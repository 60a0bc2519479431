# SPDX-License-Identifier: Apache-2.0
"""Seven ways to save one tied transformer: `python benchmarks/files.py [--small]`.

Everything in the table is tried, not claimed: the size of what was written, whether the tie came
back, whether reading ran code of the file's, whether arrays are mapped, and whether a file that
lacks an array is refused. A full run writes the table into docs/saving.md.
"""

import importlib
import pickle
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from words import duration, table

import pydag

PAGE = Path(__file__).parents[1] / "docs/saving.md"
BEGIN, END = "<!-- figures: files -->", "<!-- /figures: files -->"
Model = Any


class Way(NamedTuple):
    """How one library saves and loads.

    Args:
        load: Fills the structure of a model from a file.
        part: Reads one array and no more; None where there is no way to ask for that.
    """

    save: Callable[[Path, Model], Any]
    load: Callable[[Path, Model], Model]
    part: Callable[[Path], Any] | None


def transformer(width: int, layers: int, words: int) -> Model:
    """A model whose embedding and unembedding are one table, and whose layers share a norm."""
    keys = iter(jax.random.split(jax.random.key(0), 1 + 4 * layers))

    def matrix(*shape: int) -> jax.Array:
        return jax.random.normal(next(keys), shape)

    norm = {"scale": jnp.ones(width), "bias": jnp.zeros(width)}
    embedding = matrix(words, width)
    blocks = [
        {
            "attention": {"qkv": matrix(width, 3 * width), "out": matrix(width, width)},
            "mlp": {"up": matrix(width, 4 * width), "down": matrix(4 * width, width)},
            "norm": norm,
        }
        for _ in range(layers)
    ]
    return {"embed": embedding, "blocks": blocks, "unembed": embedding}


def flat(model: Model) -> dict[str, Any]:
    """All paths with their arrays, as state dicts have them."""
    paths = jax.tree_util.tree_leaves_with_path(model)
    return {
        jax.tree_util.keystr(path, simple=True, separator="."): np.asarray(leaf)
        for path, leaf in paths
    }


def filled(model: Model, arrays: Any) -> Model:
    """The model with the arrays of a state dict."""
    leaves = [arrays[name] for name in flat(model)]
    return jax.tree.unflatten(jax.tree.structure(model), leaves)


def _ours() -> Way:
    from pydag import files

    return Way(
        files.save,
        lambda path, like: files.load(path, like),
        lambda path: files.load(path, only="['embed']")["embed"],
    )


def _safetensors() -> Way:
    st = importlib.import_module("safetensors.numpy")
    opened = importlib.import_module("safetensors").safe_open

    def part(path: Path) -> Any:
        with opened(path, framework="np") as file:
            return file.get_tensor("embed")

    return Way(
        lambda path, model: st.save_file(flat(model), path),
        lambda path, like: filled(like, st.load_file(path)),
        part,
    )


def _npz() -> Way:
    def save(path: Path, model: Model) -> None:
        with path.open("wb") as file:
            np.savez(file, **flat(model))

    def read(path: Path) -> Any:
        return np.load(path, allow_pickle=False)

    return Way(save, lambda path, like: filled(like, read(path)), lambda path: read(path)["embed"])


def _equinox() -> Way:
    eqx = importlib.import_module("equinox")
    return Way(
        eqx.tree_serialise_leaves,
        lambda path, like: eqx.tree_deserialise_leaves(path, like),
        None,
    )


def _flax() -> Way:
    serialization = importlib.import_module("flax.serialization")
    return Way(
        lambda path, model: path.write_bytes(serialization.to_bytes(model)),
        lambda path, like: serialization.from_bytes(like, path.read_bytes()),
        None,
    )


def _orbax() -> Way:
    ocp = importlib.import_module("orbax.checkpoint")

    def save(path: Path, model: Model) -> None:
        with ocp.StandardCheckpointer() as checkpointer:
            checkpointer.save(path, model)

    def load(path: Path, like: Model) -> Model:
        with ocp.StandardCheckpointer() as checkpointer:
            return checkpointer.restore(path, like)

    def part(path: Path) -> Any:
        with ocp.PyTreeCheckpointer() as checkpointer:
            wanted = ocp.args.PyTreeRestore({"embed": 0}, partial_restore=True)
            return checkpointer.restore(path, args=wanted)["embed"]

    return Way(save, load, part)


def _pickle() -> Way:
    return Way(
        lambda path, model: path.write_bytes(pickle.dumps(model)),
        lambda path, like: pickle.loads(path.read_bytes()),
        None,
    )


WAYS: dict[str, Callable[[], Way]] = {
    "pydag.files": _ours,
    "safetensors": _safetensors,
    "npz": _npz,
    "equinox": _equinox,
    "flax": _flax,
    "orbax": _orbax,
    "pickle": _pickle,
}


class Bomb:
    """Notes when reading a file calls a function that the file names."""

    gone_off = False

    def __reduce__(self) -> Any:
        return setattr, (Bomb, "gone_off", True)


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _runs_code(way: Way, folder: Path) -> bool:
    Bomb.gone_off = False
    try:
        way.save(folder / "bomb", {"embed": Bomb()})
        way.load(folder / "bomb", {"embed": Bomb()})
    except Exception:  # it refuses, in its own way
        pass
    return Bomb.gone_off


def _is_strict(way: Way, folder: Path, model: Model) -> bool:
    fewer = {name: part for name, part in model.items() if name != "blocks"}
    way.save(folder / "fewer", fewer | {"blocks": model["blocks"][1:]})
    try:
        way.load(folder / "fewer", model)
    except Exception:  # each has its own
        return True
    return False


def _part(way: Way, path: Path, model: Model) -> bool:
    if way.part is None:
        return False
    found = way.part(path)
    return bool(np.asarray(found).shape == model["embed"].shape)


def row(name: str, model: Model) -> list[str]:
    """One line of the table."""
    way = WAYS[name]()
    distinct = sum(leaf.nbytes for leaf in pydag.dag_leaves(model))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        began = time.perf_counter()
        way.save(folder / "model", model)
        saved = time.perf_counter() - began
        size = _size(folder)
        began = time.perf_counter()
        found = way.load(folder / "model", model)
        loaded = time.perf_counter() - began
        for one, other in zip(flat(model).values(), flat(found).values(), strict=True):
            assert np.array_equal(one, other), name
        ties = found["embed"] is found["unembed"]
        ties = ties and found["blocks"][0]["norm"] is found["blocks"][1]["norm"]
        yes = {True: "yes", False: "no"}
        return [
            name,
            f"{size / distinct:.2f}",
            yes[ties],
            yes[_runs_code(way, folder)],
            yes[_part(way, folder / "model", model)],
            yes[isinstance(getattr(found["embed"], "base", None), np.memmap)],
            yes[_is_strict(way, folder, model)],
            duration(saved),
            duration(loaded),
        ]


HEAD = [
    *("", "bytes over distinct bytes", "ties kept", "runs code of the file", "a part alone"),
    *("mapped", "a missing array is refused", "save", "load"),
]


def main(small: bool) -> str:
    """The table."""
    model = transformer(16, 2, 100) if small else transformer(256, 4, 32_000)
    row("pydag.files", model)  # what is imported at the first use
    return table(HEAD, [row(name, model) for name in WAYS], left=len(HEAD))


def insert(page: Path, begin: str, end: str, text: str) -> None:
    """Puts a text between two marks of a page."""
    before, _, rest = page.read_text("utf-8").partition(begin)
    _, _, after = rest.partition(end)
    page.write_text(f"{before}{begin}\n\n{text}\n{end}{after}", "utf-8")


if __name__ == "__main__":
    is_small = "--small" in sys.argv
    found = main(is_small)
    print(found)
    if not is_small:
        insert(PAGE, BEGIN, END, found)
