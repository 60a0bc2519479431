# SPDX-License-Identifier: Apache-2.0
"""Trees that go through a loop: JAX carries their arrays, and the refs stay outside."""

import types
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import pydag._core as _core
from pydag.errors import SharingError
from pydag.jaxinterop.calls.run import names_in_body, run_body
from pydag.jaxinterop.compiled.kept import kept_for
from pydag.jaxinterop.compiled.models import holder_of_model
from pydag.jaxinterop.content.content import Content, take_apart
from pydag.jaxinterop.content.leaves import is_traced, untraced
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.paths import path_texts
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.notices.source import Source, name_of, named
from pydag.jaxinterop.packed.packed import Packed, packed_of
from pydag.jaxinterop.refs.contents import threaded
from pydag.jaxinterop.treatments.arguments import check_function
from pydag.structure.text import short_repr
from pydag.typing import Dag, Leaf

M = TypeVar("M")

CARRY = "carry"
_ALIKE = "what a body gets and what it returns must be structured alike"


class Carried:
    """A tree without its arrays.

    Args:
        leaves: The traced leaves of the tree.
        takes_contents: Whether JAX also carries the contents of the refs. It must where JAX runs
            the body twice for a derivative: into refs outside, the body would write twice.

    Attributes:
        refs: The refs in it, by their positions among the traced leaves.
    """

    def __init__(
        self, content: Content, leaves: Sequence[Leaf], options: Options, takes_contents: bool
    ) -> None:
        self.options, self.content, self._count = options, content, len(leaves)
        self.refs = {i: leaves[i] for i in jax_private.ref_positions(leaves)}
        is_threaded = takes_contents and jax_private.is_staging()
        self._threaded = list(self.refs.values()) if is_threaded else []

    @classmethod
    def of(
        cls, tree: Dag, options: Options, root: str, *, takes_contents: bool = False
    ) -> tuple["Carried", Any]:
        """A tree, and what JAX carries first. Each array below tuples alone is a separate one."""
        leaves, content = take_apart(tree, options, root, by_tuples=True)
        made = cls(content, leaves, options, takes_contents)
        packed = made.pack(leaf for i, leaf in enumerate(leaves) if i not in made.refs)
        return made, (packed, [ref[...] for ref in made._threaded]) if made._threaded else packed

    def pack(self, arrays: Iterable[Leaf]) -> Packed:
        """The arrays as JAX carries them: under their paths."""
        sources = tuple(0 if i in self.refs else -1 for i in range(self._count))
        return packed_of(self.content, list(arrays), sources if self.refs else None)

    def build(self, packed: Packed, refs: Sequence[Leaf] | None = None) -> Dag:
        """A fresh tree with these arrays.

        Args:
            refs: Stand in the place of the refs; by default the refs of the original tree.
        """
        given = iter(_core.open_result(packed)[0])
        own = iter(self.refs.values() if refs is None else refs)
        leaves = [next(own) if i in self.refs else next(given) for i in range(self._count)]
        return self.content.build(leaves)

    def match(self, tree: Dag, root: str, refs: Sequence[Leaf] | None = None) -> Packed:
        """The arrays of a tree that a body returned, whose sharing and refs must be the same."""
        content, spec = self.content, self.content.spec
        try:
            found = _core.match_at(spec, tree, root)
        except SharingError:
            shown = _core.explain(spec, self.options.flatten(tree, root)[1], roots=root)
            rule = "a carry before the body must be one after it"
            if root != CARRY:
                rule = "an argument must be one in the result"
            raise SharingError(
                f"what is one object in {rule}\n"
                f"  (first: as it was given, second: as the body returned it)\n{shown}\n"
                "  If the objects only start equal, make one a copy before the loop: "
                "pj.tree.copy(...)."
            ) from None
        except ValueError as error:
            raise TypeError(f"{root}: {_ALIKE}\n{error}") from None
        for i, value in zip(content.positions, content.values, strict=True):
            if not _core.is_same_value(found[i], value):
                place = path_texts(spec, root)[i]
                raise _unlike(place, short_repr(value), found[i], "Make it an array.")
        traced, paths = content.traced_among(found), content.paths(root)
        wanted = dict(zip(self.refs, self.refs.values() if refs is None else refs, strict=True))
        refs_now, others = set(jax_private.ref_positions(traced)), set(untraced(traced))
        for i, leaf in enumerate(traced):
            place, is_ref = paths[i], i in refs_now
            if i in wanted and leaf is not wanted[i]:
                if is_ref:
                    raise TypeError(f"{place} must be the very ref that it was before the body")
                raise _unlike(place, "a ref", leaf, "Return the ref; write into it.")
            if i not in wanted and (is_ref or i in others):
                raise _unlike(place, "an array", leaf, "Return an array there.")
        return self.pack(leaf for i, leaf in enumerate(traced) if i not in self.refs)

    def body(
        self, fun: Callable[..., Any], key: str, *names: str, is_condition: bool = False
    ) -> Callable[..., Any]:
        """What JAX is given for a function of the carry, as the last of its arguments.

        Args:
            key: Which function of which loop it is.
            names: Of the arguments, where the function doesn't tell its own.
            is_condition: Whether it returns a flag, and no carry.
        """

        def make(called: Callable[..., Any]) -> Callable[..., Any]:
            def flat(*args: Any) -> Any:
                *before, arrays, refs = args
                result = called(*before, self.build(arrays, refs))
                return result if is_condition else self.match(result, CARRY, refs)

            flat.__name__ = name_of(fun)
            if not self._threaded:
                return lambda *args: flat(*args, None)
            paths, may_write = self.content.paths("init_val"), not is_condition
            places = [paths[i] for i in self.refs]
            run = threaded(flat, self._threaded, places.__getitem__, may_write=may_write)
            return lambda *args: run(*args[:-1], *args[-1])

        return kept_body(fun, names, (key, self.content), self.refs, self.options, make)

    def finish(self, found: Any) -> Dag:
        """The last carry. Writes the contents that JAX carried into the caller's refs."""
        packed, contents = found if self._threaded else (found, ())
        for ref, content in zip(self._threaded, contents, strict=True):
            ref[...] = content
        return self.build(packed)


def _unlike(path: str, before: str, leaf: Any, cure: str) -> TypeError:
    after = "an array" if is_traced(leaf) else short_repr(leaf)
    after = "a ref" if jax_private.is_ref(leaf) else after
    return TypeError(
        f"{_ALIKE}\n  before the body: {path} is {before}\n  after it: it is {after}\n  {cure}"
    )


def kept_body(
    fun: Callable[..., Any],
    names: Sequence[str],
    key: Hashable,
    refs: Collection[Any],
    options: Options,
    make: Callable[[Callable[..., Any]], Callable[..., Any]],
) -> Callable[..., Any]:
    """What JAX is given for the body of a loop; see `Carried.body` and `kept_function`.

    Args:
        make: Gets a function that calls the body, and makes the function for JAX.
    """
    check_function(fun)

    def made(get: Callable[[], Any]) -> Any:
        source = Source(get())

        def called(*args: Any) -> Any:
            return run_body(get(), args, options, source, *names)

        return named(make(called), source, parameters=names_in_body(get(), *names))

    body: Callable[..., Any] = kept_function(fun, key, refs, options, made)
    return body


def kept_function(
    fun: Callable[..., Any],
    key: Hashable,
    refs: Collection[Any],
    options: Options,
    make: Callable[[Callable[[], Any]], M],
) -> M:
    """What JAX is given for a function: the same object for calls of one structure.

    JAX remembers traces by the function. So a function that closes over the refs of the call or
    holds a model, and a callable of any other class, gets a new object for each call.

    Args:
        key: The structure, and which wrapper it is.
        refs: The refs that the function closes over.
        make: Gets a function that returns `fun`, and makes the object.
    """
    is_function = type(fun) is types.FunctionType
    if is_function and not refs and holder_of_model(fun, options.namespace) is None:
        return kept_for(fun, (key, options.key()), make)
    return make(lambda: fun)
