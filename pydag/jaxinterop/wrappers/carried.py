# SPDX-License-Identifier: Apache-2.0
"""Trees that a loop carries or takes apart: their arrays go through JAX, refs stay outside."""

import types
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import pydag._core as _core
from pydag.errors import SharingError
from pydag.jaxinterop.compiled.kept import kept_for
from pydag.jaxinterop.content.content import Content, take_apart
from pydag.jaxinterop.content.leaves import is_traced
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.paths import path_texts
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.packed.packed import Packed, packed_of, parts_of
from pydag.structure.text import short_repr
from pydag.typing import Dag, Leaf

M = TypeVar("M")


class Carried:
    """A tree without its arrays.

    Args:
        leaves: The traced leaves of the tree.

    Attributes:
        refs: The refs in it, by their positions among the traced leaves.
    """

    def __init__(self, content: Content, leaves: Sequence[Leaf], options: Options) -> None:
        self.options, self.content = options, content
        self.refs = {i: x for i, x in enumerate(leaves) if jax_private.is_ref(x)}
        self._count = len(leaves)

    @classmethod
    def of(cls, tree: Dag, options: Options, root: str) -> tuple["Carried", list[Leaf]]:
        """A tree, and its arrays. An array to which tuples alone lead is one of its own."""
        leaves, content = take_apart(tree, options, root, by_tuples=True)
        arrays = [leaf for leaf in leaves if not jax_private.is_ref(leaf)]
        return cls(content, leaves, options), arrays

    def pack(self, arrays: Iterable[Leaf]) -> Packed:
        """The arrays as JAX carries them: under their paths."""
        sources = tuple(0 if i in self.refs else -1 for i in range(self._count))
        return packed_of(self.content, list(arrays), sources if self.refs else None)

    def build(self, packed: Packed, refs: Sequence[Leaf] | None = None) -> Dag:
        """A fresh tree with these arrays.

        Args:
            refs: Stand in the place of the refs; by default these themselves.
        """
        given, own = iter(parts_of(packed)[0]), iter(self.refs.values() if refs is None else refs)
        leaves = [next(own) if i in self.refs else next(given) for i in range(self._count)]
        return self.content.build(leaves)

    def match(self, tree: Dag, root: str, refs: Sequence[Leaf] | None = None) -> Packed:
        """The arrays of a tree that came back: what was one object is one, refs are the same.

        Raises:
            SharingError: What was one object is two.
            TypeError: It is of another structure; a static leaf or a ref is another one.
        """
        content, spec = self.content, self.content.spec
        try:
            found = _core.match_at(spec, tree, root)
        except SharingError:
            shown = _core.explain(spec, self.options.flatten(tree, root)[1], roots=root)
            raise SharingError(
                "what is one object in a carry before the body must be one after it\n"
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
        traced = content.traced_among(found)
        wanted = dict(zip(self.refs, self.refs.values() if refs is None else refs, strict=True))
        paths = content.paths(root)
        for i, leaf in enumerate(traced):
            is_ref = jax_private.is_ref(leaf)
            if i in wanted and leaf is not wanted[i]:
                if is_ref:
                    raise TypeError(f"{paths[i]} must be the very ref that it was before the body")
                raise _unlike(paths[i], "a ref", leaf, "Return the ref; write into it.")
            if i not in wanted and (is_ref or not is_traced(leaf)):
                raise _unlike(paths[i], "an array", leaf, "Return an array there.")
        return self.pack(leaf for i, leaf in enumerate(traced) if i not in self.refs)


_ALIKE = "what a body gets and what it returns must be structured alike"


def _unlike(path: str, before: str, leaf: Any, cure: str) -> TypeError:
    after = "an array" if is_traced(leaf) else short_repr(leaf)
    after = "a ref" if jax_private.is_ref(leaf) else after
    return TypeError(
        f"{_ALIKE}\n  before the body: {path} is {before}\n  after it: it is {after}\n  {cure}"
    )


def kept_body(
    fun: Callable[..., Any],
    key: Hashable,
    refs: Iterable[Leaf],
    make: Callable[[Callable[[], Any]], M],
) -> M:
    """What JAX is given for a function: the same for calls of one structure.

    A function that closes over the refs of the call, or a callable that holds anything, gets one
    of its own for each call: JAX remembers traces by the function.
    """
    if type(fun) is types.FunctionType and not any(True for _ in refs):
        return kept_for(fun, key, make)
    return make(lambda: fun)
