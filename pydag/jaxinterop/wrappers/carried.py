# SPDX-License-Identifier: Apache-2.0
"""Trees that go through a loop: JAX carries their arrays, and the refs stay outside."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax

import pydag._core as _core
from pydag.jaxinterop.calls import first_arrays, names_in_body, run_body
from pydag.jaxinterop.compiled.kept import kept_function
from pydag.jaxinterop.content.content import Content, take_apart
from pydag.jaxinterop.content.leaves import is_number, is_traced
from pydag.jaxinterop.content.options import Options, path_texts
from pydag.jaxinterop.content.packed import Packed, packed_of, parts_of, unpack, without_refs
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.naming import Source, named
from pydag.jaxinterop.refs import Refs, check_not_closed_over, with_contents
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
        self.refs = Refs(leaves)
        self._takes_contents = bool(self.refs) and takes_contents and jax_private.is_staging()
        self._first = first_arrays(self.refs.without(leaves), content.spec.num_shared)

    def start(self, leaves: Sequence[Leaf]) -> Any:
        """What JAX carries first."""
        packed = _packed(self.content, leaves, self.refs)
        return (packed, tuple(ref[...] for ref in self.refs)) if self._takes_contents else packed

    def match(self, tree: Dag, root: str, refs: Sequence[Leaf] | None = None) -> Packed:
        """The arrays of a tree that a body returned; `CameApart` if it has two for one object.

        Its refs must be these, by default those of the carry.
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
        traced, wanted = (
            content.traced_among(found),
            dict(zip(self.refs.positions, refs, strict=True)),
        )
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
            count = len(self.refs)

            def flat(*args: Any) -> Any:
                given, refs = args[: len(args) - count], args[len(args) - count :]
                starts = first, next(parts_of(x)[0] for x in given if type(x) is Packed)
                trees = tuple(unpack(x, refs) if type(x) is Packed else x for x in given)
                result = run_body(get(), trees, self.options, source, *names, starts=starts)
                return finish(result) if finish else self.match(result, CARRY, refs)

            flat.__name__ = source.__name__

            def check(traced: Any) -> None:
                paths = self.content.paths("init_val")
                places = [paths[i] for i in self.refs.positions]
                check_not_closed_over(traced, self.refs, range(count), places.__getitem__)
                if finish is not None and jax_private.written_inputs(traced):
                    raise ValueError(
                        f"{flat.__name__} writes into a ref of the carry, and is a condition\n"
                        "  Write in the body of the loop."
                    )

            def body(*args: Any) -> Any:
                if not self._takes_contents:
                    return flat(*args, *self.refs)
                *others, (packed, contents) = args
                return with_refs(*others, packed, *contents)

            if self._takes_contents:
                positions = range(-count, 0)
                written = positions if finish is None else ()
                with_refs = with_contents(jax.jit(flat), positions, written, check)
            return named(body, source, parameters=names_in_body(get(), *names))

        return kept_function(fun, (key, self.content), self.refs, self.options, make)

    def finish(self, found: Any) -> Dag:
        """The last carry. Writes the contents that JAX carried into the caller's refs."""
        if self._takes_contents:
            found, contents = found
            self.refs.assign(contents)
        return unpack(found, self.refs)


def _packed(content: Content, leaves: Sequence[Leaf], refs: Sequence[Leaf]) -> Packed:
    """Arrays as JAX carries them: under their paths, without the refs."""
    return packed_of(content, *without_refs(leaves, Refs(refs).origins, makes_refs=False))


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
