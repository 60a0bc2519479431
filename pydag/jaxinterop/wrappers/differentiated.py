# SPDX-License-Identifier: Apache-2.0
"""A call that is differentiated by some leaves of some arguments.

There are two identity tables: one for the arguments that it is by, and one for all others. What is
in both is two inside of the function, and the other one is constant, as in JAX.
"""

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax

from pydag.errors import SharingError
from pydag.jaxinterop.calls.run import first_arrays, pair_of, run
from pydag.jaxinterop.content.content import Content, take_apart
from pydag.jaxinterop.content.derivative import are_no_state, derivative, is_differentiable
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.paths import CALL
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.notices.shared_selection import selected
from pydag.jaxinterop.notices.source import Source, named
from pydag.jaxinterop.packed.packed import pack, unpack
from pydag.jaxinterop.treatments.arguments import Args, Chosen, Kwargs, numbers_of
from pydag.jaxinterop.updates.update import Update
from pydag.structure.text import short_repr
from pydag.typing import Leaf, Where


class Differentiated:
    """A call, taken apart.

    Args:
        wrt: Which leaves of the arguments at `argnums`; None for all that have a derivative.
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
        self.options, self._call = options, (tuple(args), kwargs)
        self._is_one = isinstance(argnums, int)
        self._numbers = _counted(argnums, len(args))
        own = tuple(args[i] for i in self._numbers)
        self._roots = tuple(f"args[{i}]" for i in self._numbers)
        self._leaves, self.content = take_apart(own, options, self._roots, by_tuples=True)
        rest = tuple(None if i in self._numbers else arg for i, arg in enumerate(args))
        self._others, self._rest = take_apart((rest, kwargs), options, CALL)
        options.check_selects(self._call)
        self._picked = self._pick(wrt, allow_int, may_be_none)
        self.by = [jax_private.read(self._leaves[i]) for i in self._picked]

    def _pick(self, wrt: Where | None, allow_int: bool, may_be_none: bool) -> list[int]:
        """Which of the traced leaves it is by."""
        leaves, content = self._leaves, self.content
        roots, paths = ", ".join(self._roots), content.paths(self._roots)
        able = [is_differentiable(x, allow_int) for x in leaves]
        if wrt is None:
            chosen: Sequence[bool] = are_no_state(content, leaves)
        else:
            for i in jax_private.ref_positions(leaves):
                able[i] = True
            chosen = selected(wrt, content, leaves, able, self._roots, self.options, self._is_one)
        both = zip(able, chosen, strict=True)
        found = [i for i, (can_be, is_chosen) in enumerate(both) if can_be and is_chosen]
        if wrt is None and may_be_none:
            return found
        for i, path in enumerate(paths if wrt is None else ()):
            if path in self._roots and i not in found and not jax_private.is_ref(leaves[i]):
                raise TypeError(  # the argument itself is an array, as in JAX
                    "grad requires real- or complex-valued inputs (input dtype that is a sub-dtype "
                    f"of np.inexact), but {path} is {_kind(leaves[i])}. Use allow_int=True to "
                    "differentiate functions of integers."
                )
        if found or not content.spec.num_leaves:
            return found
        if not leaves:
            raise TypeError(
                f"there is nothing to differentiate by: {roots} holds no array and no number that "
                "is data\n  Pass the arrays in a list, a dict or an object of a registered class; "
                "or name another argument by argnums."
            )
        if wrt is None and any(able):
            raise TypeError(
                f"there is no nnx.Param in {roots}, and all else is state\n"
                "  Choose what to differentiate by: wrt=."
            )
        if wrt is None and all(map(jax_private.is_ref, leaves)):
            raise TypeError(
                f"there are refs alone in {roots}, and no derivative is by a ref that isn't "
                "selected\n  Choose what to differentiate by: wrt=jax.Ref."
            )
        selects, kinds = "there is nothing that has a derivative", list[str]()
        if wrt is not None:
            selects = "wrt= selects nothing that has a derivative"
            selects += f" (but {paths[chosen.index(True)]})" if True in chosen else ""
            pairs = zip(paths, leaves, able, strict=True)
            kinds = [f"{path}: {short_repr(leaf)}" for path, leaf, can_be in pairs if can_be][:4]
        kinds = kinds or sorted(set(map(_kind, leaves)))
        raise TypeError(
            f"{selects} in {roots}: there are {', '.join(kinds)}; grad requires real- or "
            "complex-valued inputs"
        )

    def without_arrays(self) -> "Differentiated":
        """This for what outlives the call: it makes gradients and matches tangents."""
        made = copy.copy(self)
        del made._call, made._leaves, made._others, made.by
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
    ) -> tuple[Any, Update, list[Leaf]]:
        """The result of a function for these leaves, its update, and the new contents of refs."""
        inside, refs = list(self._leaves), []
        for i, leaf in zip(self._picked, by, strict=True):
            is_ref = jax_private.is_ref(self._leaves[i])
            inside[i] = jax.new_ref(leaf) if is_ref else leaf
            refs += [inside[i]] if is_ref else []
        (rest, kwargs), own = self._rest.build(self._others), self.content.build(inside)
        mine = dict(zip(self._numbers, own, strict=True))
        tree = tuple(mine.get(number, arg) for number, arg in enumerate(rest)), kwargs
        starts = first_arrays(self._leaves, self.content.spec.num_shared), inside
        more: dict[str, Any] = {"updated": updated, "starts": starts, "origin": self._call}
        result, update = run(fun, tree, self.options, source, is_staged=False, **more)
        return result, update, [ref[...] for ref in refs]

    def of_leaves(
        self, fun: Callable[..., Any], has_aux: bool
    ) -> tuple[Callable[..., Any], list[Content]]:
        """A function of the leaves that returns the leaves of the result of `fun`.

        Beside these it returns what `finish` takes. Once it was called, the list holds the content
        of the result.
        """
        source, kept = Source(fun), list[Content]()

        def flat(*by: Leaf) -> Any:
            result, _, contents = self.run(fun, by, source)
            aux = None
            if has_aux:
                result, aux = value_and_aux(result)
                aux = self.pack(aux)
            leaves, content = take_apart(result, self.options, "result", is_result=True)
            kept[:] = [content]
            return leaves, (aux, contents)

        return named(flat, source, self.paths), kept

    def pack(self, result: Any) -> Any:
        """A result, for JAX; the caller's refs that come back are origins."""
        return pack(result, self.options, {id(ref): i for i, ref in enumerate(self._refs())})

    def _refs(self) -> list[Leaf]:
        leaves = [*self._leaves, *self._others]
        return [leaves[i] for i in jax_private.ref_positions(leaves)]

    def finish(self, returned: Any, contents: Sequence[Leaf]) -> Any:
        """The result for the caller; updates the arguments and the refs that it is by."""
        by = [self._leaves[i] for i in self._picked]
        for ref, content in zip(filter(jax_private.is_ref, by), contents, strict=True):
            ref[...] = content
        return unpack(returned, self._refs(), self._call)

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


def _kind(leaf: Leaf) -> str:
    return str(getattr(leaf, "dtype", type(leaf).__name__))


def _counted(argnums: int | Sequence[int], count: int) -> tuple[int, ...]:
    """The positions of the arguments, counted from the first."""
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


def value_and_aux(result: Any) -> Any:
    """The result of a function with `has_aux=True`."""
    return pair_of(result, "with has_aux=True the function", "of the value and something else")


@contextlib.contextmanager
def as_type_error(start: str = "") -> Iterator[None]:
    """Makes the error about a tree that doesn't fit a TypeError, as JAX does for derivatives."""
    try:
        yield
    except SharingError:
        raise
    except ValueError as error:
        raise TypeError(f"{start}{error}") from None


def tangents_of(content: Content, found: Sequence[Any]) -> Any:
    """Tangents of a result, given those of its traced leaves; None where it has no derivative."""
    positions = content.traced_positions()
    float0 = jax.dtypes.float0
    pairs = zip(positions, found, strict=True)
    return derivative(content, {i: x for i, x in pairs if getattr(x, "dtype", None) != float0})
