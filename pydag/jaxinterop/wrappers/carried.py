# SPDX-License-Identifier: Apache-2.0
"""Trees that go through a loop: JAX carries their arrays, and the refs stay outside."""

import types
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any

import jax

import pydag._core as _core
from pydag.jaxinterop.calls.run import first_arrays, names_in_body, run_body
from pydag.jaxinterop.compiled.kept import kept_for
from pydag.jaxinterop.compiled.models import holder_of_model
from pydag.jaxinterop.content.content import Content, take_apart
from pydag.jaxinterop.content.leaves import is_number, is_traced
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.paths import path_texts
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.notices.source import Source, named
from pydag.jaxinterop.packed.packed import Packed, packed_of, parts_of, unpack, without_refs
from pydag.jaxinterop.refs.contents import threaded
from pydag.jaxinterop.treatments.arguments import check_function
from pydag.jaxinterop.typed import R
from pydag.structure.reshared import with_merged_leaves
from pydag.structure.text import short_repr
from pydag.typing import Dag, Leaf

CARRY = "carry"
_ALIKE = "what a body gets and what it returns must be structured alike"


class CameApart(Exception):  # noqa: N818 (no error: the loop begins anew)
    """The body made two of one object: what `Content.shared_with` returns for a carry of two."""


class Carried:
    """A tree without its arrays.

    Args:
        leaves: The traced leaves of the tree.
        takes_contents: Whether JAX also carries the contents of the refs. It must where JAX runs
            the body twice for a derivative: into refs outside, the body would write twice.
    """

    def __init__(
        self, content: Content, leaves: Sequence[Leaf], options: Options, takes_contents: bool
    ) -> None:
        self.options, self.content = options, content
        self._positions = jax_private.ref_positions(leaves)
        self.refs = [leaves[i] for i in self._positions]
        self._threaded = self.refs if takes_contents and jax_private.is_staging() else []
        arrays = [x for i, x in enumerate(leaves) if i not in self._positions]
        self._first = first_arrays(arrays, content.spec.num_shared)

    def start(self, leaves: Sequence[Leaf]) -> Any:
        """What JAX carries first."""
        packed = _packed(self.content, leaves, self.refs)
        return (packed, [ref[...] for ref in self._threaded]) if self._threaded else packed

    def match(self, tree: Dag, root: str, refs: Sequence[Leaf] | None = None) -> Packed:
        """The arrays of a tree that a body returned, whose refs must be these, by default its own.

        Raises:
            CameApart: What is one object in the carry is two in the tree.
        """
        refs, content = self.refs if refs is None else refs, self.content
        picked: Sequence[int] = range(len(content.traced_positions()))
        if content.spec.num_shared:
            leaves, spec = self.options.flatten(tree, root)
            if spec != content.spec:
                first: dict[int, int] = {}  # a number has no identity in a structure; here it has
                same = {i: first.setdefault(id(leaf), i) for i, leaf in enumerate(leaves)}
                content, picked = content.shared_with([with_merged_leaves(spec, same)])
        try:
            found = _core.match_at(content.spec, tree, root)
        except ValueError as error:
            raise TypeError(f"{root}: {_ALIKE}\n{error}") from None
        for i, value in zip(content.positions, content.values, strict=True):
            if not _core.is_same_value(found[i], value):
                place = path_texts(content.spec, root)[i]
                cure, was_number = "Make it an array.", is_number(value)
                raise _unlike(place, short_repr(value), found[i], cure, was_number=was_number)
        traced, wanted = content.traced_among(found), dict(zip(self._positions, refs, strict=True))
        for i, leaf, place in zip(picked, traced, content.paths(root), strict=True):
            is_ref = jax_private.is_ref(leaf)
            if i not in wanted and (is_ref or not is_traced(leaf)):
                raise _unlike(place, "an array", leaf, "Return an array there.")
            if i in wanted and leaf is not wanted[i]:
                if is_ref:
                    raise TypeError(f"{place} must be the very ref that it was before the body")
                raise _unlike(place, "a ref", leaf, "Return the ref; write into it.")
        runs_once = not jax_private.is_staging() and root == CARRY
        if content is not self.content and not runs_once:
            raise CameApart(content, picked)
        return _packed(content, traced, refs)

    def body(
        self, fun: Callable[..., Any], key: Hashable, *names: str, finish: Any = None
    ) -> Callable[..., Any]:
        """What JAX is given for a function of such trees, and perhaps of other things.

        Args:
            key: Which function of which loop it is.
            names: Of the arguments, where the function doesn't tell its own.
            finish: Makes of a result that isn't the carry what JAX gets.
        """
        check_function(fun)

        def make(get: Callable[[], Any]) -> Callable[..., Any]:
            source, first = Source(get()), dict(self._first)  # each keeps its own answers

            def flat(*args: Any) -> Any:
                *given, refs = args
                starts = first, next(parts_of(x)[0] for x in given if type(x) is Packed)
                trees = tuple(unpack(x, refs) if type(x) is Packed else x for x in given)
                result = run_body(get(), trees, self.options, source, *names, starts=starts)
                return finish(result) if finish else self.match(result, CARRY, refs)

            flat.__name__ = source.__name__
            run: Callable[..., Any] = flat
            if self._threaded:
                paths = self.content.paths("init_val")
                places = [paths[i] for i in self._positions]
                may_write = finish is None  # a condition mustn't
                run = threaded(flat, self._threaded, places.__getitem__, may_write=may_write)

            def body(*args: Any) -> Any:
                return run(*args[:-1], *args[-1]) if self._threaded else run(*args, self.refs)

            return named(body, source, parameters=names_in_body(get(), *names))

        return kept_function(fun, (key, self.content), self.refs, self.options, make)

    def finish(self, found: Any) -> Dag:
        """The last carry. Writes the contents that JAX carried into the caller's refs."""
        packed, contents = found if self._threaded else (found, ())
        for ref, content in zip(self._threaded, contents, strict=True):
            ref[...] = content
        return unpack(packed, self.refs)


def _packed(content: Content, leaves: Sequence[Leaf], refs: Sequence[Leaf]) -> Packed:
    """Arrays as JAX carries them: under their paths, without the refs."""
    origins = {id(ref): number for number, ref in enumerate(refs)}
    return packed_of(content, *without_refs(leaves, origins, makes_refs=False))


def carried(
    fun: Callable[..., Any],
    key: Hashable,
    tree: Dag,
    root: str,
    options: Options,
    run: Callable[[Carried, Any], R],
    *,
    beside: Sequence[Leaf] | None = None,
    takes_contents: bool = False,
) -> R:
    """What `run` returns, given a carry and what JAX carries first.

    Each array below tuples alone is a separate one. Where the body makes two of one object in the
    carry, `run` is called again, with a carry that has two.

    Args:
        fun: The body.
        key: Which loop it is.
        beside: The leaves of what is scanned; None where nothing is.
    """
    if beside is None:
        options.check_selects(tree, root)
    leaves, content = take_apart(tree, options, root, by_tuples=True)
    known: dict[str, Any] = {}
    if content.spec.num_shared:
        refs = jax_private.ref_positions(leaves)
        avals = tuple(map(jax.typeof, [*leaves, *(beside or ())]))
        known = kept_function(fun, (key, content, avals), refs, options, lambda _: {})
    content, picked = known.get(CARRY, (content, range(len(leaves))))
    while True:
        own = [leaves[i] for i in picked]
        carry = Carried(content, own, options, takes_contents)
        try:
            return run(carry, carry.start(own))
        except CameApart as found:
            content, last = found.args
        picked = [picked[i] for i in last]
        known[CARRY] = content, picked


def _unlike(path: str, before: str, leaf: Any, cure: str, *, was_number: bool = False) -> TypeError:
    is_data = is_traced(leaf) and not (was_number and is_number(leaf))
    is_ref = jax_private.is_ref(leaf)
    after = "a ref" if is_ref else "an array" if is_data else short_repr(leaf)
    return TypeError(
        f"{_ALIKE}\n  before the body: {path} is {before}\n  after it: it is {after}\n  {cure}"
    )


def kept_function(
    fun: Callable[..., Any],
    key: Hashable,
    refs: Collection[Any],
    options: Options,
    make: Callable[[Callable[[], Any]], R],
) -> R:
    """What `make` makes, given what returns the function: one object for calls of one structure.

    JAX remembers traces by the function. So a function that closes over the refs of the call or
    holds a model, and a callable of any other class, gets a new object for each call.
    """
    is_function = type(fun) is types.FunctionType
    if is_function and not refs and holder_of_model(fun, options.namespace) is None:
        return kept_for(fun, (key, options.key()), make)
    return make(lambda: fun)
