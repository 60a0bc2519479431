# SPDX-License-Identifier: Apache-2.0
"""Whether all processes of a program hold trees that are alike, but for the values of arrays."""

import hashlib
import itertools
import json
import re
import zlib
from typing import Any

import jax

import pydag._core as _core
from pydag.jaxinterop import jax_private
from pydag.jaxinterop.static.leaves import is_traced
from pydag.jaxinterop.static.untraced import Options
from pydag.structure.listing import Listing, Record, step_text
from pydag.typing import Dag, Leaf

_SECONDS = 300  # how long a process waits for the others
_CHUNK = 1_000_000  # bytes in one message
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_calls = itertools.count()


def assert_same_everywhere(tree: Dag, what: str = "model") -> None:
    """Raise on every process if the processes of a program hold different trees.

    All processes have to call it, in the same order. What is compared: the classes, keys and
    sharing of the tree, the order in which its dicts were filled and its attributes were set,
    what is static, and of each array its shape, type and sharding. The values of arrays are not.
    In a program of one process there is nothing to compare.

    Args:
        tree: The DAG that this process holds.
        what: What messages call it.

    Raises:
        RuntimeError: Two processes differ, or a process did not call this within five minutes. The
            message has the numbers of the processes, the path, and what both hold there.

    >>> assert_same_everywhere({"w": [1.0, 2.0]}, "parameters")
    """
    leaves, spec = Options().flatten(tree, what)
    if jax.process_count() == 1:
        return
    lines = _lines(leaves, spec, what)
    board = _Board(next(_calls), what)
    digests = board.exchange("digest", [hashlib.sha256(repr(lines).encode()).hexdigest()])
    other = next((i for i, digest in enumerate(digests) if digest != digests[0]), None)
    if other is None:
        return
    if jax.process_index() in (0, other):
        board.post_lines(lines)
    raise RuntimeError(_difference(what, other, *map(board.read_lines, (0, other))))


def _lines(leaves: list[Leaf], spec: Any, what: str) -> list[list[str]]:
    """Of each node its path and what stands there; at last the whole, with orders."""
    listing = Listing.of(spec)
    number = {position: i for i, position in enumerate(listing.leaves)}
    lines = []
    for position, record in enumerate(listing.records):
        at = number.get(position)
        text = _node(record) if at is None else _leaf(leaves[at])
        step = step_text(record) if position else ""
        lines.append([listing.path_text(position, what), f"{step}: {text}"])
    orders = _ADDRESS.sub("", repr(_core.spec_key(spec)))
    return [*lines, ["the order of dicts and attributes", orders]]


def _node(record: Record) -> str:
    if record.is_alias:
        return f"the shared object {record.number} again"
    name = getattr(record.type, "__qualname__", str(record.type))
    detail = "" if record.detail is None else f", {_static(record.detail)}"
    shared = f", shared object {record.number}" if record.number >= 0 else ""
    return f"{name} of {record.num_children}{shared}{detail}"


def _leaf(leaf: Leaf) -> str:
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    if shape is None or dtype is None or not is_traced(leaf):
        return _static(leaf)
    where = getattr(leaf, "sharding", None)
    spans = not getattr(leaf, "is_fully_addressable", True)
    spec = getattr(where, "spec", "") if spans else ""
    devices = sorted(device.id for device in getattr(where, "device_set", ())) if spans else ""
    return f"{dtype}{list(shape)} {spec} {devices}".rstrip()


def _static(value: Any) -> str:
    """A value as text that is the same in every process."""
    if isinstance(value, set | frozenset):
        return f"{type(value).__name__}{sorted(map(_static, value))}"
    if isinstance(value, tuple | list):
        return f"{type(value).__name__}({', '.join(map(_static, value))})"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return f"{type(value).__name__} {_ADDRESS.sub('', repr(value))}"


def _difference(what: str, other: int, ours: list[list[str]], theirs: list[list[str]]) -> str:
    pairs = itertools.zip_longest(ours, theirs, fillvalue=["its end", "nothing more"])
    first, second = next(pair for pair in pairs if pair[0] != pair[1])
    where = first[0] if first[0] == second[0] else f"{first[0]}, and {second[0]}"
    return (
        f"{what} is not the same in all processes: they differ at {where}\n"
        f"  process 0: {first[1].removeprefix(': ')}\n"
        f"  process {other}: {second[1].removeprefix(': ')}\n"
        "  Build it in the same way in each process: a set of text has another order in each."
    )


class _Board:
    """Where the processes leave messages for one another, without running anything on devices."""

    def __init__(self, number: int, what: str) -> None:
        self._client = jax_private.coordination_client()
        self._at, self._what = f"pydag/same/{number}", what

    def exchange(self, name: str, own: list[str]) -> list[str]:
        """Leaves a text, and reads that of each process."""
        self._client.key_value_set(f"{self._at}/{name}/{jax.process_index()}", own[0])
        return [self._read(f"{name}/{i}", i) for i in range(jax.process_count())]

    def post_lines(self, lines: list[list[str]]) -> None:
        """Leaves the lines of this process."""
        data = zlib.compress(json.dumps(lines).encode()).hex()
        chunks = [data[i : i + _CHUNK] for i in range(0, len(data), _CHUNK)]
        own = f"{self._at}/lines/{jax.process_index()}"
        for i, chunk in enumerate(chunks):
            self._client.key_value_set(f"{own}/{i}", chunk)
        self._client.key_value_set(f"{own}/count", str(len(chunks)))

    def read_lines(self, process: int) -> list[list[str]]:
        """The lines of a process that leaves them."""
        count = int(self._read(f"lines/{process}/count", process))
        data = "".join(self._read(f"lines/{process}/{i}", process) for i in range(count))
        found: list[list[str]] = json.loads(zlib.decompress(bytes.fromhex(data)))
        return found

    def _read(self, name: str, process: int) -> str:
        try:
            return str(self._client.blocking_key_value_get(f"{self._at}/{name}", _SECONDS * 1000))
        except Exception as error:
            raise RuntimeError(
                f"process {process} did not call assert_same_everywhere for {self._what} within "
                f"{_SECONDS} s\n  All processes have to call it, in the same order."
            ) from error
