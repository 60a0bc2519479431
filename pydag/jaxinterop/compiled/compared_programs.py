# SPDX-License-Identifier: Apache-2.0
"""Whether the processes of a program compile the same function for arrays that span them.

Processes that compile different programs exchange wrong values, or wait for one another forever.
So each leaves a digest of every such program with the coordination service before it runs it, and
looks at the digests that are there. Nobody waits: of two processes, the later one compares.
"""

import hashlib
import json
import re
from typing import Any, NamedTuple

import jax

from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.messages.naming import Source
from pydag.jaxinterop.messages.roots import CALL
from pydag.jaxinterop.static.lines import ORDERS, Line, first_difference, lines_of

from .extra_results import TracedCall

_MOST_CHARACTERS = 8000  # of the lines that are left with the service, to say where a difference is
_ADDRESSES = re.compile(r'(callback[^\n]*?backend_config = )"\d+"')  # of callbacks, in a program


class _Program(NamedTuple):
    """What a process leaves of a program.

    Args:
        digest: Of its text.
        arguments: A digest of the arguments' structure, static content and sharing.
        orders: A digest of the order of their dicts and attributes.
        lines: What these were made of; none if it is long.
    """

    digest: str
    arguments: str
    orders: str
    lines: list[Line]


def compare_programs(traced_call: TracedCall, source: Source, shardings: Any) -> None:
    """Compares the program of a call with those of the other processes, if its arrays span them.

    Args:
        source: Of the function.
        shardings: Those that were given for its arguments and its result.

    Raises:
        RuntimeError: Another process has compiled the function for the same shapes, and its program
            is another one.
    """
    leaves = jax.tree.leaves(traced_call.arguments[1:])
    if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
        return
    placed = *leaves, *jax.tree.leaves(shardings), *jax_private.mesh_of_context()
    devices = {i for what in placed if _spans(what) for i in _devices(what)}
    if not devices:
        return
    text = _ADDRESSES.sub(r"\1", traced_call.trace().lower().as_text())
    values = [getattr(leaf, "inner", leaf) for leaf in traced_call.leaves]  # of static arguments
    lines = lines_of(values, traced_call.key.untraced.spec, CALL)
    arguments, orders = (_digest(repr(part)) for part in (lines[:-1], lines[-1]))
    is_short = len(json.dumps(lines)) <= _MOST_CHARACTERS
    own = _Program(_digest(text), arguments, orders, lines if is_short else [])
    # Kinds, and not how many arrays there are of each: that depends on what is shared.
    kinds = {f"{getattr(x, 'dtype', type(x))}{getattr(x, 'shape', ())}" for x in leaves}
    where = source.__qualname__, sorted(kinds), sorted(devices)
    _compare(own, source, f"pydag/programs/{_digest(repr(where))}")


def _spans(what: Any) -> bool:
    """Whether an array, a sharding or a mesh is on devices of several processes."""
    is_here = getattr(what, "is_fully_addressable", True)
    return getattr(what, "is_multi_process", False) is True or is_here is False


def _devices(what: Any) -> list[int]:
    """The devices of an array, a sharding or a mesh. Groups of processes may differ."""
    where = getattr(what, "sharding", what)
    found = getattr(where, "device_set", None) or where.devices.flat
    return [device.id for device in found]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _compare(own: _Program, source: Source, at: str) -> None:
    """Leaves a program at a place, and compares it with what the others have left there.

    A function may have several programs for the same shapes. So a program is another one only if
    a process has left as many as this process, and it isn't among them.
    """
    client = jax_private.coordination_client()
    index = jax.process_index()
    programs = _read(client, at)
    ours = programs.get(index, {})
    if own.digest in (program.digest for program in ours.values()):
        return
    client.key_value_set(f"{at}/{index}/{len(ours)}", json.dumps(own), allow_overwrite=True)
    # Read again: of two processes that leave theirs at once, one sees the other's.
    for process, theirs in sorted(_read(client, at).items()):
        digests = {program.digest for program in theirs.values()}
        if process != index and len(theirs) > len(ours) and own.digest not in digests:
            raise RuntimeError(_difference(own, theirs[len(ours)], source, index, process))


def _read(client: Any, at: str) -> dict[int, dict[int, _Program]]:
    """The programs at a place, by process and number."""
    found: dict[int, dict[int, _Program]] = {}
    for key, text in client.key_value_dir_get(f"{at}/"):
        process, number = map(int, key.split("/")[-2:])
        found.setdefault(process, {})[number] = _Program(*json.loads(text))
    return found


def _difference(own: _Program, other: _Program, source: Source, index: int, process: int) -> str:
    where = first_difference(own.lines, other.lines) if own.lines and other.lines else None
    if own[1:3] == other[1:3]:
        text = (
            "their arguments are alike, so they differ in what the function has from elsewhere: "
            "constants that it closes over, or the order of a set"
        )
    elif where is None:
        is_order = own.arguments == other.arguments
        text = ORDERS if is_order else "structure, sharing or statics"
        text = f"their arguments differ in {text}; assert_same_everywhere says where"
    elif where[0] == ORDERS:
        text = (
            "dicts were filled, or attributes set, in another order\n"
            f"  process {index}: {where[1]}\n  process {process}: {where[2]}"
        )
    else:
        text = (
            f"their arguments differ in structure, sharing or statics at {where[0]}\n"
            f"  process {index}: {where[1]}\n  process {process}: {where[2]}"
        )
    return (
        f"processes {index} and {process} compile different programs for {source.text}, and their "
        f"arrays span both: {text}\n"
        "  Build the arguments in the same way in each process: a set of text has another order in "
        "each."
    )
