# SPDX-License-Identifier: Apache-2.0
"""Extra results of compiled functions: what is written into the caller's objects after a call.

A ref is passed as its content, an array. The compiled function makes a ref of it, and returns the
content of each that the function wrote into; these contents are donated. Which they are is known
once the function is traced, with the refs themselves: `jax.jit` keeps what it traced, so the
function that takes contents calls it and traces nothing anew.

The compiled function returns `(result, contents)`: beside the result the new contents.
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import jax

import pydag._core as _core
from pydag._core import CallKey, PyDagSpec
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.packed.outputs import unpacked
from pydag.jaxinterop.prefixes.arguments import Args, Kwargs, argument_text
from pydag.jaxinterop.refs.access import content_of, new_ref, own_content_of, pin_of, write
from pydag.jaxinterop.refs.table import both_texts
from pydag.jaxinterop.static.leaves import Carried
from pydag.jaxinterop.updates.update import finished
from pydag.typing import Dag as AnyDag
from pydag.typing import Leaf

from .flat_arguments import FlatArguments, join
from .key import Key


class ExtraKey(NamedTuple):
    """What a function with extra results is compiled for. Positions are among the traced leaves."""

    inner: CallKey  # the `Key` of the function that is given the refs themselves
    tag: Carried  # a tag for calls of that function
    donated: tuple[int, ...]
    order: tuple[int, ...] | None
    refs: tuple[int, ...]
    written: tuple[int, ...]
    pins: tuple[Any, ...]  # for each written ref the sharding of its content, where that counts

    def __repr__(self) -> str:
        return repr(self.inner.value)


class WritesMoreError(Exception):
    """A function writes into more refs than it did with other arrays.

    Args:
        key: The inner one.
        written: Positions of refs among the traced leaves.
    """

    def __init__(self, key: CallKey, written: frozenset[int]) -> None:
        super().__init__(key, written)
        self.key, self.written = key, written


def run_with_contents(inner: Any, key: ExtraKey, donated: Any, kept: Any) -> Any:
    """Runs a function on contents of refs; returns its result and its extra results.

    Args:
        inner: The compiled function of a key, a tag and the traced leaves, refs among them.
    """
    leaves = join(key.donated, key.order, donated, kept)
    for place in key.refs:
        leaves[place] = new_ref(leaves[place])
    written = written_refs(inner.trace(key.inner, key.tag.value, leaves), key.refs)
    if not written.issubset(key.written):
        raise WritesMoreError(key.inner, written)
    result = inner(key.inner, key.tag.value, leaves)
    contents = tuple(
        _pinned(leaves[i][...], pin) for i, pin in zip(key.written, key.pins, strict=True)
    )
    return result, contents


def _pinned(content: Any, pin: Any) -> Any:
    constrain: Any = jax.lax.with_sharding_constraint
    return content if pin is None else constrain(content, pin)


def written_refs(traced: Any, refs: Sequence[int]) -> frozenset[int]:
    """Into which of its refs a traced function writes, by their positions among the leaves."""
    return jax_private.written_inputs(traced).intersection(refs)


class WrittenRefs:
    """How a function is called that writes into some of its refs.

    Args:
        positions: Of the refs that it writes into, among the traced leaves.
    """

    def __init__(self, positions: frozenset[int]) -> None:
        self.positions = positions
        self.flat_arguments: FlatArguments | None = None  # made at the first call
        self.keys: dict[tuple[Any, ...], CallKey] = {}  # by the pins


class ExtraResults:
    """What is known of the extra results of a function for one key.

    Args:
        refs: Positions of refs, among all leaves.
        closed_over: Refs that the function takes from around it.
        written: Positions of the refs that it writes into, among the traced leaves.
    """

    def __init__(
        self, refs: tuple[int, ...], closed_over: Sequence[Any], written: frozenset[int]
    ) -> None:
        self.refs, self.closed_over = refs, tuple(closed_over)
        self.written = WrittenRefs(
            written
        )  # replaced as a whole, while other threads use the old one

    def add_written(self, written: frozenset[int]) -> None:
        """Adds refs that are written into; positions among the traced leaves."""
        self.written = WrittenRefs(self.written.positions | written)


def check_not_closed_over(
    closed_over: Sequence[Any], leaves: Sequence[Leaf], spec: PyDagSpec, name: str
) -> None:
    """Raises what JAX raises where a function takes a ref from around it that is an argument, too.

    JAX looks for that when it traces the function, not at each call.
    """
    if not closed_over:
        return
    known = set(map(jax_private.identity, closed_over))
    for position, leaf in enumerate(leaves):
        if jax_private.identity(leaf) in known:
            where = argument_text(spec.accessors()[position])
            raise ValueError(both_texts(name, where))


class TracedCall(NamedTuple):
    """A call, taken apart for JAX.

    Args:
        function: A function compiled by JAX.
        arguments: What it is called with.
        leaves: All leaves of the caller's arguments.
        call: The caller's arguments.
        written: The refs that the new contents are for; None for a function without extra results.
        is_spread: Whether the function takes the leaves one by one.
    """

    function: Any
    arguments: tuple[CallKey, *tuple[Any, ...]]
    leaves: Sequence[Leaf]
    call: tuple[Args, Kwargs] = ((), {})
    written: Sequence[Any] | None = None
    is_spread: bool = False

    @property
    def key(self) -> Key:
        """The key of the function that is given the refs themselves."""
        key = self.arguments[0].value
        found: Key = key.inner.value if isinstance(key, ExtraKey) else key
        return found

    def run(self) -> AnyDag:
        """Calls the function, and writes its extra results."""
        key = self.arguments[0]
        return self.finish(_core.call_for_key(key, self.function, self.arguments))

    def trace(self) -> Any:
        """Traces the function."""
        return _core.call_for_key(self.arguments[0], self.function.trace, self.arguments)

    def finish(self, found: Any) -> AnyDag:
        """Writes the extra results, and returns the result, given what the function returned."""
        if self.written is not None:
            found, contents = found
            for ref, content in zip(self.written, contents, strict=True):
                write(ref, content)
        return finished(found, self.call, lambda result: unpacked(result, self.leaves))


def contents_in(
    leaves: Sequence[Leaf], refs: Sequence[int], written: Collection[int] = ()
) -> list[Leaf]:
    """The leaves, with contents in the place of refs; those of `written` belong to nobody else."""
    found = list(leaves)
    for position in refs:
        get = own_content_of if position in written else content_of
        found[position] = get(found[position])
    return found


def pins_of(leaves: Sequence[Leaf], written: Sequence[int]) -> tuple[Any, ...]:
    """The shardings that new contents must have, where that counts."""
    return tuple(pin_of(content_of(leaves[position])) for position in written)
