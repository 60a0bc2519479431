# SPDX-License-Identifier: Apache-2.0
"""pydag and optree side by side: one call, made by either, and what there is to compare of it."""

from collections.abc import Callable
from typing import Any

import agreement  # noqa: F401  (pydag knows the specimens, whichever tests run)
import optree
import specimens as sp
from isomorphism import difference
from reference_kinds import Callbacks

import pydag

PEER = "peers"
"""The namespace in which optree knows the classes of `specimens.GLOBAL` that have callbacks."""

for _cls, _registration in sp.GLOBAL.items():
    if isinstance(_registration, Callbacks) and not _registration.foreign:
        sp.register_with_optree(_cls, PEER)


class Peer:
    """One of the two libraries, by optree's names without their prefix."""

    def __init__(self, module: Any, prefix: str) -> None:
        self.module, self.prefix = module, prefix

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, self.prefix + name)


PEERS = {"theirs": Peer(optree, "tree_"), "ours": Peer(pydag, "dag_")}


def first_line(error: BaseException) -> str:
    """The type of an error and its first line, in pydag's words."""
    line = (str(error).splitlines() or [""])[0].replace("PyTreeSpec", "PyDagSpec")
    return f"{type(error).__name__}: {line}"


def told(call: Callable[[Peer], Any], peer: Peer) -> tuple[Any, list[Any], str]:
    """What a call returns, what the classes' callbacks saw, and what it raised."""
    sp.EVENTS.clear()
    try:
        result, error = call(peer), ""
    except Exception as raised:
        result, error = None, first_line(raised)
    return result, list(sp.EVENTS), error


def disagreement(call: Callable[[Peer], Any]) -> str:
    """Where the results of a call part, what the callbacks saw or what was raised; "" nowhere."""
    theirs, ours = (told(call, PEERS[name]) for name in ("theirs", "ours"))
    if theirs[2] != ours[2]:
        return f"optree raises {theirs[2]!r}, pydag {ours[2]!r}"
    return difference(theirs[0], ours[0]) or difference(theirs[1], ours[1])
