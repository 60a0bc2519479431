# SPDX-License-Identifier: Apache-2.0
"""A call that is differentiated with respect to some leaves of some arguments.

There are two identity tables: one for the arguments to differentiate with respect to, and one for
all others. What is in both is two inside of the function, and the other one is constant, as in JAX.
"""

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax

from pydag.errors import SharingError
from pydag.jaxinterop.calls import first_arrays, pair_of, run
from pydag.jaxinterop.content.content import Content, take_apart
from pydag.jaxinterop.content.options import CALL, Options
from pydag.jaxinterop.content.packed import pack, unpack
from pydag.jaxinterop.content.selection import derivative, is_differentiable, selected
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.naming import Source, named
from pydag.jaxinterop.refs import Refs
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
        primals: The leaves to differentiate with respect to. Of a ref that is the content.
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
        self._other_leaves, self._other_content = take_apart((rest, kwargs), options, CALL)
        options.check_selects(self._call)
        self._picked = self._pick(wrt, allow_int, may_be_none)
        self._refs = Refs([*self._leaves, *self._other_leaves])
        self._written = [i for i in self._picked if i in self._refs.positions]
        picked = ((i, self._leaves[i]) for i in self._picked)
        self.primals = [leaf[...] if i in self._written else leaf for i, leaf in picked]

    def _pick(self, wrt: Where | None, allow_int: bool, may_be_none: bool) -> list[int]:
        """Which of the traced leaves to differentiate with respect to."""
        leaves, content = self._leaves, self.content
        roots, paths = ", ".join(self._roots), content.paths(self._roots)
        able = [is_differentiable(x, allow_int) for x in leaves]
        for i in jax_private.ref_positions(leaves) if wrt is not None else ():
            able[i] = True
        chosen = selected(wrt, content, leaves, able, self._roots, self.options, self._is_one)
        both = zip(able, chosen, strict=True)
        found = [i for i, (can_be, is_chosen) in enumerate(both) if can_be and is_chosen]
        if wrt is None and may_be_none:
            return found
        for i, path in enumerate(paths if wrt is None else ()):
            if path in self._roots and i not in found and not jax_private.is_ref(leaves[i]):
                cure = "Use allow_int=True to differentiate functions of integers."
                raise TypeError(  # the argument itself is an array, as in JAX
                    "grad requires real- or complex-valued inputs (input dtype that is a sub-dtype "
                    f"of np.inexact), but {path} is {_kind(leaves[i])}. "
                    f"{cure if is_differentiable(leaves[i], allow_int=True) else 'It has none.'}"
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
                "  Select leaves of the state, too: wrt=."
            )
        if wrt is None and all(map(jax_private.is_ref, leaves)):
            raise TypeError(
                f"there are refs alone in {roots}, and refs have no derivative unless wrt= "
                "selects them\n  Select refs: wrt=jax.Ref."
            )
        each = zip(paths, leaves, able, strict=True)
        text = "there is nothing that has a derivative"
        if wrt is not None:
            text = "wrt= selects nothing that has a derivative"
            text += f" (but {paths[chosen.index(True)]})" if True in chosen else ""
        if any(able):
            those = [f"{path}: {short_repr(leaf)}" for path, leaf, can_be in each if can_be]
            shown = f"those that have one are {', '.join(those[:4])}"
        else:
            shown = ", ".join([f"{path} is {_kind(leaf)}" for path, leaf, _ in each][:4])
        raise TypeError(f"{text} in {roots}: {shown}; grad requires real- or complex-valued inputs")

    def without_arrays(self) -> "Differentiated":
        """This for what outlives the call: it makes gradients and matches tangents."""
        made = copy.copy(self)
        del made._call, made._leaves, made._other_leaves, made._refs, made.primals
        return made

    def paths(self) -> list[str]:
        """The path of each of the primals."""
        paths = self.content.paths(self._roots)
        return [paths[i] for i in self._picked]

    def run(
        self, fun: Any, primals: Sequence[Leaf], source: Source, updated: Chosen | None = None
    ) -> tuple[Any, Update, list[Leaf]]:
        """The result of a function for these leaves, its update, and the new contents of refs."""
        inside = list(self._leaves)
        for i, leaf in zip(self._picked, primals, strict=True):
            inside[i] = jax.new_ref(leaf) if i in self._written else leaf
        rest, kwargs = self._other_content.build(self._other_leaves)
        mine = dict(zip(self._numbers, self.content.build(inside), strict=True))
        tree = tuple(mine.get(number, arg) for number, arg in enumerate(rest)), kwargs
        starts = first_arrays(self._leaves, self.content.spec.num_shared), inside
        more: dict[str, Any] = {"updated": updated, "starts": starts, "origin": self._call}
        result, update = run(fun, tree, self.options, source, is_staged=False, **more)
        return result, update, [inside[i][...] for i in self._written]

    def of_leaves(self, fun: Any, has_aux: bool) -> tuple[Callable[..., Any], list[Content]]:
        """A function of the leaves that returns the leaves of the result of `fun`.

        Beside these it returns what `finish` takes. Once it was called, the list holds the content
        of the result.
        """
        source, kept = Source(fun), list[Content]()

        def flat(*primals: Leaf) -> Any:
            result, _, contents = self.run(fun, primals, source)
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
        return pack(result, self.options, self._refs.origins)

    def finish(self, returned: Any, contents: Sequence[Leaf]) -> Any:
        """The result for the caller; updates the arguments, and the refs among the primals."""
        for i, content in zip(self._written, contents, strict=True):
            self._leaves[i][...] = content
        return unpack(returned, self._refs, self._call)

    def gradient(self, found: Sequence[Any]) -> Any:
        """What was computed for each of the primals, in the form of the arguments."""
        positions = self.content.traced_positions()
        leaves = {positions[i]: x for i, x in zip(self._picked, found, strict=True)}
        trees: Any = derivative(self.content, leaves)
        return trees[0] if self._is_one else trees

    def match(self, trees: Any, what: str) -> list[Any]:
        """What other trees, as many as arguments, have for each of the primals."""
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
    pairs, float0 = zip(content.traced_positions(), found, strict=True), jax.dtypes.float0
    return derivative(content, {i: x for i, x in pairs if getattr(x, "dtype", None) != float0})
