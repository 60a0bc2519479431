# SPDX-License-Identifier: Apache-2.0
"""`assert_same_everywhere`: whether all processes hold the same tree up to array values."""

import hashlib
import itertools
import json
import re
from typing import Any

import jax
import numpy as np

from pydag.jaxinterop.content.leaves import is_traced
from pydag.jaxinterop.content.options import Options
from pydag.structure.listing import MAPPINGS, Listing, Record, shorten
from pydag.typing import Dag, Leaf

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def assert_same_everywhere(tree: Dag, what: str = "model") -> None:
    """Raise on every process if the processes of a program hold different trees.

    All processes have to call it, in the same order. What is compared: the classes, keys and
    sharing of the tree, the order in which its dicts were filled, what is static, and of each array
    its shape, type and sharding. The values of arrays are not. In a program of one process there is
    nothing to compare.

    Args:
        tree: The DAG that this process holds.
        what: What messages call it.

    Raises:
        RuntimeError: Two processes differ. The message has the numbers of the processes, the path,
            and what both hold there.

    >>> assert_same_everywhere({"w": [1.0, 2.0]}, "parameters")
    """
    lines = _lines_of(tree, what)
    if jax.process_count() == 1:
        return
    data = json.dumps(lines).encode()
    digest = hashlib.sha256(data).digest() + len(data).to_bytes(8, "big")
    found = _gathered(digest)
    other = next((i for i, theirs in enumerate(found) if theirs != found[0]), None)
    if other is None:
        return
    longest = max(int.from_bytes(theirs[-8:], "big") for theirs in found)
    texts = _gathered(data.ljust(longest))
    first, second = json.loads(texts[0]), json.loads(texts[other])
    pairs = itertools.zip_longest(first, second, fillvalue=["its end", "nothing more"])
    a, b = next((a, b) for a, b in pairs if a != b)
    where = a[0] if a[0] == b[0] else f"{a[0]}, and {b[0]}"
    raise RuntimeError(
        f"{what} is not the same in all processes: they differ at {where}\n  process 0: "
        f"{shorten(a[1])}\n  process {other}: {shorten(b[1])}\n  Build it in the same way in each "
        "process: a set of text has another order in each."
    )


def _gathered(data: bytes) -> list[bytes]:
    """What each process gives: as many bytes each."""
    from jax.experimental.multihost_utils import process_allgather

    rows: Any = process_allgather(np.frombuffer(data, np.uint8))
    return [np.asarray(row).tobytes() for row in rows]


def _lines_of(tree: Dag, root: str) -> list[list[str]]:
    """Of each node its path and what stands there: the same text where trees are alike."""
    orders: list[str] = []

    def note_order(node: Any) -> bool:
        if isinstance(node, dict):
            orders.append(", ".join(map(_static, node)))
        return False

    leaves, spec = Options().flatten(tree, root, is_leaf=note_order)
    listing, lines, filled = Listing.of(spec), list[list[str]](), iter(orders)
    for position, record in enumerate(listing.records):
        number = listing.leaf_numbers.get(position)
        text = _node(record) if number is None else _leaf(leaves[number])
        if record.kind in MAPPINGS:
            text += f", filled in the order {next(filled, '')}"
        lines.append([listing.path_text(position, root), text])
    return lines


def _node(record: Record) -> str:
    if record.is_alias:
        return f"the shared object {record.number} again"
    text = f"{getattr(record.type, '__qualname__', record.type)} of {record.num_children}"
    text += f", shared object {record.number}" if record.number >= 0 else ""
    return text + ("" if record.detail is None else f", {_static(record.detail)}")


def _leaf(leaf: Leaf) -> str:
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    if shape is None or dtype is None or not is_traced(leaf):
        return _static(leaf)
    if getattr(leaf, "is_fully_addressable", True):
        return f"{dtype}{list(shape)}"
    devices = sorted(device.id for device in leaf.sharding.device_set)
    return f"{dtype}{list(shape)} {getattr(leaf.sharding, 'spec', '')} {devices}"


def _static(value: Any) -> str:
    """A value as text that is the same in every process."""
    if isinstance(value, set | frozenset):
        return f"{type(value).__name__}{sorted(map(_static, value))}"
    if isinstance(value, tuple | list):
        return f"{type(value).__name__}({', '.join(map(_static, value))})"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return f"{type(value).__name__} {_ADDRESS.sub('', repr(value))}"
