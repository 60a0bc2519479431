# SPDX-License-Identifier: Apache-2.0
"""Whether all processes of a program hold trees that are alike, but for the values of arrays."""

import hashlib
import itertools
import json
import zlib

import jax

from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.static.lines import Line, first_difference, lines_of
from pydag.jaxinterop.static.untraced import Options
from pydag.typing import Dag

_SECONDS = 300  # how long a process waits for the others
_CHUNK = 1_000_000  # bytes in one message
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
    lines = lines_of(leaves, spec, what)
    board = _Board(next(_calls), what)
    digests = board.exchange("digest", [hashlib.sha256(repr(lines).encode()).hexdigest()])
    other = next((i for i, digest in enumerate(digests) if digest != digests[0]), None)
    if other is None:
        return
    if jax.process_index() in (0, other):
        board.post_lines(lines)
    raise RuntimeError(_difference(what, other, *map(board.read_lines, (0, other))))


def _difference(what: str, other: int, first: list[Line], second: list[Line]) -> str:
    where, ours, theirs = first_difference(first, second) or ("", "", "")
    return (
        f"{what} is not the same in all processes: they differ at {where}\n"
        f"  process 0: {ours}\n"
        f"  process {other}: {theirs}\n"
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

    def post_lines(self, lines: list[Line]) -> None:
        """Leaves the lines of this process."""
        data = zlib.compress(json.dumps(lines).encode()).hex()
        chunks = [data[i : i + _CHUNK] for i in range(0, len(data), _CHUNK)]
        own = f"{self._at}/lines/{jax.process_index()}"
        for i, chunk in enumerate(chunks):
            self._client.key_value_set(f"{own}/{i}", chunk)
        self._client.key_value_set(f"{own}/count", str(len(chunks)))

    def read_lines(self, process: int) -> list[Line]:
        """The lines of a process that leaves them."""
        count = int(self._read(f"lines/{process}/count", process))
        data = "".join(self._read(f"lines/{process}/{i}", process) for i in range(count))
        found: list[Line] = json.loads(zlib.decompress(bytes.fromhex(data)))
        return found

    def _read(self, name: str, process: int) -> str:
        try:
            return str(self._client.blocking_key_value_get(f"{self._at}/{name}", _SECONDS * 1000))
        except Exception as error:
            raise RuntimeError(
                f"process {process} did not call assert_same_everywhere for {self._what} within "
                f"{_SECONDS} s\n  All processes have to call it, in the same order."
            ) from error
