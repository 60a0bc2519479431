# SPDX-License-Identifier: Apache-2.0
"""A call that is differentiated by some leaves of some arguments.

There are two identity tables: one for the arguments that it is by, and one for all others. What is
in both is two inside of the function, and the other one is constant, as in JAX.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax

from pydag.jaxinterop.calls.call import Call
from pydag.jaxinterop.calls.run import run
from pydag.jaxinterop.content.content import Content, take_apart
from pydag.jaxinterop.content.derivative import derivative
from pydag.jaxinterop.content.leaves import is_differentiable
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.state import state_leaves
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.notices.shared_selection import warn_of_shared_selection
from pydag.jaxinterop.notices.source import Source
from pydag.jaxinterop.packed.packed import pack, unpack
from pydag.jaxinterop.treatments.arguments import Args, Chosen, Kwargs, numbers_of
from pydag.ops.select import is_prefix, select, where_there
from pydag.structure.text import short_repr
from pydag.typing import Leaf, Where


class Differentiated:
    """A call, taken apart.

    Args:
        argnums: The arguments that it is by: a position, or several.
        wrt: Which of their leaves; None for all that have a derivative.
        allow_int: Whether integers count.
        may_be_none: Whether there may be nothing that has a derivative.

    Attributes:
        by: The leaves that it is by. Of a ref that is the content.
    """

    def __init__(
        self,
        argnums: int | Sequence[int],
        wrt: Where | None,
        args: Args,
        kwargs: Kwargs,
        options: Options,
        *,
        allow_int: bool = False,
        may_be_none: bool = False,
    ) -> None:
        self.options, self._args, self._kwargs = options, tuple(args), kwargs
        self._is_one = isinstance(argnums, int)
        self._numbers = _counted(argnums, len(args))
        own = tuple(args[i] for i in self._numbers)
        self._roots = tuple(f"args[{i}]" for i in self._numbers)
        self._leaves, self.content = take_apart(own, options, self._roots, by_tuples=True)
        mine = set(self._numbers)
        rest = tuple(None if i in mine else arg for i, arg in enumerate(args))
        self._others = Call(rest, kwargs, options)
        options.check_selects((self._args, kwargs))
        self._picked = self._pick(wrt, allow_int, may_be_none)
        self.by = [self._content(self._leaves[i]) for i in self._picked]

    @staticmethod
    def _content(leaf: Leaf) -> Leaf:
        return leaf[...] if jax_private.is_ref(leaf) else leaf

    def _pick(self, wrt: Where | None, allow_int: bool, may_be_none: bool) -> list[int]:
        """Which of the traced leaves it is by."""
        leaves, content, others = self._leaves, self.content, ""
        if wrt is None:
            state = state_leaves(content.spec)
            places = zip(content.traced_positions(), leaves, strict=True)
            found = [
                i
                for i, (position, leaf) in enumerate(places)
                if is_differentiable(leaf, allow_int) and position not in state
            ]
            if may_be_none:
                return found
            self._check_arrays(frozenset(found))
        else:
            flags = content.traced_among(self._selected(wrt, allow_int))
            found = [
                i
                for i, (leaf, flag) in enumerate(zip(leaves, flags, strict=True))
                if flag and (is_differentiable(leaf, allow_int) or jax_private.is_ref(leaf))
            ]
            if True in flags and not found:
                others = f" (but {content.paths(self._roots)[flags.index(True)]})"
            where = content.traced_positions()
            warn_of_shared_selection(
                wrt,
                [where[i] for i in found],
                content.spec,
                content.all_leaves(leaves),
                self._roots,
                depth=1,
            )
        if not leaves and content.positions:
            raise TypeError(
                f"there is nothing to differentiate by: {', '.join(self._roots)} holds no array "
                "and no number that is data\n"
                "  Pass the arrays in a list, a dict or an object of a registered class; or name "
                "another argument by argnums."
            )
        if not found and content.spec.num_leaves:
            kinds = sorted({str(getattr(x, "dtype", type(x).__name__)) for x in leaves})
            if wrt is not None:
                kinds = self._able(allow_int)[:4] or kinds
            selects = (
                f"wrt= selects nothing that has a derivative{others}"
                if wrt is not None
                else "there is nothing that has a derivative"
            )
            if wrt is None and any(map(is_differentiable, leaves)):
                raise TypeError(
                    f"there is no nnx.Param in {', '.join(self._roots)}, and all else is state\n"
                    "  Choose what to differentiate by: wrt=."
                )
            if wrt is None and leaves and all(map(jax_private.is_ref, leaves)):
                raise TypeError(
                    f"there are refs alone in {', '.join(self._roots)}, and no derivative is by "
                    "a ref that isn't selected\n  Choose what to differentiate by: wrt=jax.Ref."
                )
            raise TypeError(
                f"{selects} in {', '.join(self._roots)}: there are "
                f"{', '.join(kinds) or 'no arrays'}; grad requires real- or complex-valued inputs"
            )
        return found

    def _able(self, allow_int: bool) -> list[str]:
        """What it could be by, with paths."""
        pairs = zip(self.content.paths(self._roots), self._leaves, strict=True)
        return [f"{path}: {short_repr(x)}" for path, x in pairs if is_differentiable(x, allow_int)]

    def _selected(self, wrt: Where, allow_int: bool) -> list[bool]:
        content, namespace = self.content, self.options.namespace
        # Predicates are asked about what can be chosen.
        leaves: list[Leaf] = [None] * content.spec.num_leaves
        for i, leaf in zip(content.traced_positions(), self._leaves, strict=True):
            if is_differentiable(leaf, allow_int) or jax_private.is_ref(leaf):
                leaves[i] = leaf
        if self._is_one and is_prefix(wrt, namespace):
            return select(wrt, content.spec.child(0), leaves, namespace)
        must_match = bool(leaves)
        where = where_there(wrt)
        return select(where, content.spec, leaves, namespace, depth=1, must_match=must_match)

    def _check_arrays(self, found: frozenset[int]) -> None:
        """Checks that an argument that is an array itself has a derivative.

        Raises:
            TypeError: It has none, as in JAX.
        """
        paths = self.content.paths(self._roots)
        for i, (leaf, path) in enumerate(zip(self._leaves, paths, strict=True)):
            if i not in found and path in self._roots and not jax_private.is_ref(leaf):
                raise TypeError(
                    "grad requires real- or complex-valued inputs (input dtype that is a sub-dtype "
                    f"of np.inexact), but {path} is {getattr(leaf, 'dtype', type(leaf).__name__)}. "
                    "Use allow_int=True to differentiate functions of integers."
                )

    def without_arrays(self) -> "Differentiated":
        """This for what outlives the call: it makes gradients and matches tangents."""
        made = object.__new__(Differentiated)
        made.content, made._picked, made._numbers = self.content, self._picked, self._numbers
        made._is_one, made._roots = self._is_one, self._roots
        return made

    def paths(self) -> list[str]:
        """The path of each leaf that it is by."""
        paths = self.content.paths(self._roots)
        return [paths[i] for i in self._picked]

    def run(
        self,
        fun: Callable[..., Any],
        by: Sequence[Leaf],
        source: Source,
        updated: Chosen | None = None,
    ) -> tuple[Any, Any, list[Leaf]]:
        """The result of a function for these leaves; the same for JAX; the new contents of refs."""
        inside, refs = list(self._leaves), []
        for i, leaf in zip(self._picked, by, strict=True):
            is_ref = jax_private.is_ref(self._leaves[i])
            inside[i] = jax.new_ref(leaf) if is_ref else leaf
            refs += [inside[i]] if is_ref else []
        own: Any = self.content.build(inside)
        args, kwargs = self._others.build(self._others.arrays)
        args = list(args)
        for number, arg in zip(self._numbers, own, strict=True):
            args[number] = arg
        tree = tuple(args), kwargs
        result, update = run(fun, tree, self.options, source, updated=updated, is_staged=False)
        packed = self.pack(result)
        return result, update.beside(packed) if updated else packed, [ref[...] for ref in refs]

    def pack(self, result: Any) -> Any:
        """A result, for JAX; the caller's refs that come back are origins."""
        return pack(result, self.options, self._origins())

    def _refs(self) -> list[Leaf]:
        """The caller's refs."""
        return [x for x in (*self._leaves, *self._others.leaves) if jax_private.is_ref(x)]

    def _origins(self) -> dict[int, int]:
        return {id(ref): number for number, ref in enumerate(self._refs())}

    def finish(self, returned: Any) -> Any:
        """The result for the caller; updates the arguments."""
        return unpack(returned, self._refs(), (self._args, self._kwargs))

    def write(self, contents: Sequence[Leaf]) -> None:
        """Writes the contents of the refs that it is by."""
        refs = [self._leaves[i] for i in self._picked if jax_private.is_ref(self._leaves[i])]
        for ref, content in zip(refs, contents, strict=True):
            ref[...] = content

    def gradient(self, found: Sequence[Any]) -> Any:
        """What was computed for each leaf that it is by, in the form of the arguments."""
        positions = self.content.traced_positions()
        leaves = {positions[i]: x for i, x in zip(self._picked, found, strict=True)}
        trees: Any = derivative(self.content, leaves)
        return trees[0] if self._is_one else trees

    def match(self, trees: Any, what: str) -> list[Any]:
        """What other trees, as many as arguments, have for each leaf that it is by."""
        found = self.content.match(
            tuple(trees), tuple(f"{what}[{i}]" for i in self._numbers), f"the tuple of the {what}"
        )
        return [found[i] for i in self._picked]


def _counted(argnums: int | Sequence[int], count: int) -> tuple[int, ...]:
    """The positions of the arguments, counted from the first.

    Raises:
        TypeError: There is no such argument, or one is named twice.
    """
    numbers = numbers_of(argnums)
    for number in numbers:
        if not -count <= number < count:
            raise TypeError(
                f"differentiating by argument {number} needs at least "
                f"{number + 1 if number >= 0 else -number} positional arguments, and the function "
                f"was called with {count} positional arguments"
            )
    found = tuple(number % count for number in numbers)
    if len(set(found)) < len(found):
        raise TypeError(f"argnums={numbers} names an argument twice: name each once")
    return found


def checked_pair(result: Any) -> Any:
    """A result of a function with `has_aux=True`.

    Raises:
        TypeError: It is no pair.
    """
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise TypeError(
            "with has_aux=True the function must return a pair of the value and something else, "
            f"got {type(result).__name__}"
        )
    return result


def tangents_of(content: Content, found: Sequence[Any]) -> Any:
    """Tangents of a result, given those of its traced leaves; None where it has no derivative."""
    positions = content.traced_positions()
    float0 = jax.dtypes.float0
    pairs = zip(positions, found, strict=True)
    return derivative(content, {i: x for i, x in pairs if getattr(x, "dtype", None) != float0})
