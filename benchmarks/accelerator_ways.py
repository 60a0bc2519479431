# SPDX-License-Identifier: Apache-2.0
"""One way to train a tied language model on one device, in a process of its own.

The embedding table is also the projection onto the words, and most of the parameters. Each way
trains the same arrays by the same loss with Adam, and donates them. `accelerator.py` runs this file
once for each way, because a device knows only the peak of a whole process.
"""

import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
import optax

import pydag
import pydag.jaxinterop as pj

BLOCKS, HEAD, WORDS = 4, 64, 64  # transformer blocks; width of a head; words for a unit of width
ROWS, LENGTH = 8, 64  # of a batch
RATE = 1e-4
STATE = 3  # a parameter and two moments
OUT_OF_MEMORY = "out of memory"

Arrays = dict[str, Any]


@dataclass
class Run:
    """A model in training: a step that returns the loss, and the distinct parameters."""

    step: Callable[[Any], Any]
    parameters: Callable[[], list[Any]]


def shapes(width: int) -> dict[str, tuple[int, ...]]:
    """The distinct arrays, in a flat dict."""
    found: dict[str, tuple[int, ...]] = {"embed": (WORDS * width, width), "norm": (width,)}
    for i in range(BLOCKS):
        found |= {
            f"{i}.before": (width,),
            f"{i}.qkv": (width, 3 * width),
            f"{i}.out": (width, width),
            f"{i}.between": (width,),
            f"{i}.up": (width, 4 * width),
            f"{i}.down": (4 * width, width),
        }
    return found


def width_for(memory: float, itemsize: int) -> int:
    """The largest width, in whole heads, whose parameters and moments take no more memory."""
    for_each = STATE * itemsize * (WORDS + BLOCKS * (3 + 1 + 4 + 4))
    return max(HEAD, int((memory / for_each) ** 0.5) // HEAD * HEAD)


def arrays(width: int, dtype: str) -> Arrays:
    """The same values for every way."""
    found: Arrays = {}
    for i, (name, shape) in enumerate(shapes(width).items()):
        if len(shape) == 1:
            found[name] = jnp.ones(shape, dtype)
        else:
            found[name] = _normal(jax.random.fold_in(jax.random.key(0), i), shape, dtype)
    return found


@partial(jax.jit, static_argnums=(1, 2))
def _normal(key: Any, shape: tuple[int, ...], dtype: str) -> Any:
    scale = shape[0] if shape[0] < WORDS * shape[1] else shape[1]
    return jax.random.normal(key, shape, dtype) * jnp.asarray(scale**-0.5, dtype)


def batch(width: int) -> Any:
    """Distinct words: a GPU adds up what several places give one row in no fixed order."""
    some = jax.random.permutation(jax.random.key(1), min(WORDS * width, 1 << 16))
    return some[: ROWS * (LENGTH + 1)].reshape(ROWS, LENGTH + 1)


def tied(flat: Arrays) -> dict[str, Any]:
    """The model as one would write it: the table is at two places."""
    blocks = [
        {name: flat[f"{i}.{name}"] for name in ("before", "qkv", "out", "between", "up", "down")}
        for i in range(BLOCKS)
    ]
    return {
        "embed": flat["embed"],
        "blocks": blocks,
        "norm": flat["norm"],
        "unembed": flat["embed"],
    }


def loss_of(model: Any, words: Any) -> Any:
    """The mean loss of the next word."""
    x = model["embed"].at[words[:, :-1]].get(unique_indices=True)
    for block in model["blocks"]:
        x = _block(block, x)
    scores = (_normed(x, model["norm"]) @ model["unembed"].T).astype(jnp.float32)
    # A comparison, since the derivative of a lookup is a scatter.
    is_next = jax.lax.broadcasted_iota(words.dtype, scores.shape, 2) == words[:, 1:, None]
    return (jax.nn.logsumexp(scores, -1) - jnp.where(is_next, scores, 0).sum(-1)).mean()


def _normed(x: Any, scale: Any) -> Any:
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale


def _block(block: Any, x: Any) -> Any:
    rows, length, width = x.shape
    qkv = _normed(x, block["before"]) @ block["qkv"]
    heads = qkv.reshape(rows, length, 3, width // HEAD, HEAD)
    mixed = jax.nn.dot_product_attention(*(heads[:, :, i] for i in range(3)), is_causal=True)
    x = x + mixed.reshape(x.shape) @ block["out"]
    return x + jax.nn.gelu(_normed(x, block["between"]) @ block["up"]) @ block["down"]


def _trained(
    model: Any, loss: Any, jit: Any, value_and_grad: Any, optimizer: Any, apply: Any, leaves: Any
) -> Run:
    """A step in the manner of optax, by the functions of one library."""
    state = optimizer.init(model)

    @partial(jit, donate_argnums=(0, 1))
    def compiled(model: Any, state: Any, words: Any) -> Any:
        value, gradient = value_and_grad(loss)(model, words)
        updates, state = optimizer.update(gradient, state, model)
        return apply(model, updates), state, value

    def step(words: Any) -> Any:
        nonlocal model, state
        model, state, value = compiled(model, state, words)
        return value

    return Run(step, lambda: leaves(model))


def _plain(model: Any, loss: Any) -> Run:
    optimizer, leaves = optax.adam(RATE), jax.tree_util.tree_leaves
    return _trained(
        model, loss, jax.jit, jax.value_and_grad, optimizer, optax.apply_updates, leaves
    )


def untied(flat: Arrays) -> Run:
    """Plain JAX makes two arrays of a table at two places, and can't donate one array twice."""
    model = tied(flat)
    return _plain({**model, "unembed": jnp.copy(model["unembed"])}, loss_of)


def by_hand(flat: Arrays) -> Run:
    """Plain JAX with a dict of the distinct arrays; the loss puts the table at both places."""
    return _plain(flat, lambda flat, words: loss_of(tied(flat), words))


def by_pydag(flat: Arrays) -> Run:
    """pydag with the model as it is."""
    optimizer = pj.optimizer(optax.adam(RATE))
    return _trained(
        tied(flat), loss_of, pj.jit, pj.value_and_grad, optimizer, pj.apply_updates, pj.tree.leaves
    )


def by_nnx(flat: Arrays) -> Run:
    """NNX with one Param at both places."""
    from flax import nnx  # here: the other ways do without

    class Block(nnx.Module):
        def __init__(self, arrays: Arrays) -> None:
            for name, array in arrays.items():
                setattr(self, name, nnx.Param(array))

    class Model(nnx.Module):
        def __init__(self, arrays: Arrays) -> None:
            self.embed = nnx.Param(arrays["embed"])
            self.blocks = nnx.List([Block(block) for block in arrays["blocks"]])
            self.norm = nnx.Param(arrays["norm"])
            self.unembed = self.embed

    def values(module: Any) -> Any:
        names = ("before", "qkv", "out", "between", "up", "down")
        return {
            "embed": module.embed[...],
            "blocks": [{name: getattr(b, name)[...] for name in names} for b in module.blocks],
            "norm": module.norm[...],
            "unembed": module.unembed[...],
        }

    model = Model(tied(flat))
    optimizer = nnx.Optimizer(model, optax.adam(RATE), wrt=nnx.Param)

    def step(model: Any, optimizer: Any, words: Any) -> Any:
        value, gradient = nnx.value_and_grad(lambda m: loss_of(values(m), words))(model)
        optimizer.update(model, gradient)
        return value

    compiled: Any = nnx.jit(step, donate_argnums=(0, 1))
    return Run(
        partial(compiled, model, optimizer),
        lambda: jax.tree_util.tree_leaves(nnx.state(model, nnx.Param)),
    )


WAYS: dict[str, Callable[[Arrays], Run]] = {
    "JAX, not tied": untied,
    "JAX, tied by hand": by_hand,
    "pydag": by_pydag,
    "NNX": by_nnx,
}


def measured(way: str, width: int, dtype: str, steps: int) -> dict[str, Any]:
    """The figures of one way. Those that were not reached are left out."""
    found: dict[str, Any] = {"way": way}
    try:
        run = WAYS[way](arrays(width, dtype))
        found["parameters"] = sum(x.size for x in run.parameters())
        found["parameter_bytes"] = sum(x.nbytes for x in run.parameters())
        found |= _timed(run.step, batch(width), steps)
        found["peak_bytes"], found["peak_of"] = _peak()
        found["checksum"] = int(_checksum(run.parameters()))
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        found["note"] = OUT_OF_MEMORY
    return found


def _timed(step: Callable[[Any], Any], words: Any, steps: int) -> dict[str, Any]:
    """Seconds: of the first call, which compiles; and of the others but for one, as medians."""
    words.block_until_ready()
    host, whole, losses = [], [], []
    for _ in range(steps):
        start = time.perf_counter()
        value = step(words)
        host.append(time.perf_counter() - start)
        value.block_until_ready()
        whole.append(time.perf_counter() - start)
        losses.append(value)
    return {
        "first_call_s": whole[0],
        "step_s": statistics.median(whole[2:]),
        "host_s": statistics.median(host[2:]),
        "losses": [float(loss).hex() for loss in losses],
        "loss": float(losses[-1]),
    }


def _peak() -> tuple[int | None, str]:
    stats = jax.devices()[0].memory_stats()
    if stats and "peak_bytes_in_use" in stats:
        return stats["peak_bytes_in_use"], "device"
    try:
        import resource  # not on Windows
    except ImportError:
        return None, "not known"
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit, "process"


@jax.jit
def _checksum(leaves: list[Any]) -> Any:
    """A sum of all bits: where it differs, a parameter does."""
    total = jnp.uint32(0)
    for x in leaves:
        bits = jax.lax.bitcast_convert_type(x, f"uint{8 * x.dtype.itemsize}")
        total = total + bits.astype(jnp.uint32).sum(dtype=jnp.uint32)
    return total


def about() -> dict[str, Any]:
    """The device and the versions."""
    device = jax.devices()[0]
    versions = {"jax": jax.__version__, "optax": version("optax"), "pydag": pydag.__version__}
    with suppress(ImportError):  # then that way has a note
        versions["flax"] = version("flax")
    return {
        "device": device.device_kind,
        "platform": device.platform,
        "limit_bytes": (device.memory_stats() or {}).get("bytes_limit"),
        "python": platform.python_version(),
        "versions": versions,
    }


def main(
    way: str,
    dtype: str,
    steps: int,
    width: int | None,
    memory: int | None = None,
    fraction: float = 0.0,
) -> dict[str, Any]:
    """Choose the width where none is given, and measure."""
    described = about()
    limit = described["limit_bytes"]
    if width is None:
        memory = memory or int(fraction * limit if limit else 0)
        width = width_for(memory, jnp.dtype(dtype).itemsize)
    described |= {"dtype": dtype, "steps": steps}
    figures = measured(way, width, dtype, steps)
    return {"about": described, "width": width, "figures": figures}


if __name__ == "__main__":
    print(json.dumps(main(**json.loads(sys.argv[1]))))
