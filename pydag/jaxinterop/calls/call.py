# SPDX-License-Identifier: Apache-2.0
"""A call of a function that JAX calls with the traced leaves of the arguments."""

from collections.abc import Callable, Sequence
from typing import Any

from pydag.jaxinterop.content.content import Content, take_apart
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.paths import CALL
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.notices.source import Source, named
from pydag.jaxinterop.packed.packed import Origins, refs_among, unpack
from pydag.jaxinterop.treatments.arguments import Args, Chosen, Kwargs
from pydag.jaxinterop.treatments.treatments import Question, treatments
from pydag.typing import Leaf

from .run import run


class Call:
    """The arguments of a call, taken apart.

    Args:
        args, kwargs: The arguments.
        passes_refs: Whether JAX is given the refs, too. Otherwise the function closes over them.

    Attributes:
        content: The arguments without their traced leaves.
        leaves: What JAX is given.
    """

    def __init__(
        self, args: Args, kwargs: Kwargs, options: Options, *, passes_refs: bool = True
    ) -> None:
        self._options, self._tree = options, (args, kwargs)
        self._all, self.content = take_apart(self._tree, options, CALL)
        options.check_selects(self._tree)
        outside = (x if jax_private.is_ref(x) and not passes_refs else None for x in self._all)
        self.refs_outside: list[Leaf] = list(outside)  # for each traced leaf; None for all others
        self.leaves = [
            x for x, ref in zip(self._all, self.refs_outside, strict=True) if ref is None
        ]

    def treatments(self, question: Question, prefix: Any) -> tuple[Any, ...]:
        """What a prefix of the arguments answers for each traced leaf."""
        return tuple(treatments(question, prefix, self._tree, self.content, self._options))

    def function(
        self,
        get: Callable[[], Callable[..., Any]],
        source: Source,
        pack: Callable[[Any, Origins], Any],
        updated: Chosen | None = None,
    ) -> Callable[..., Any]:
        """The function of leaves that JAX is given. It doesn't own those of this call.

        Args:
            get: Returns the user's function.
            pack: Makes of its result what JAX gets.
            updated: Which arguments are updated; None for a wrapper that has no such option.
        """
        content, options, outside = self.content, self._options, self.refs_outside

        def flat(*leaves: Leaf) -> Any:
            given = iter(leaves)
            inside = [next(given) if ref is None else ref for ref in outside]
            result, update = run(get(), content.build(inside), options, source, updated=updated)
            packed = pack(result, refs_among(content, inside))
            return update.beside(packed) if updated else packed

        return named(flat, source, lambda: _paths(content, outside))

    def paths(self) -> Sequence[str]:
        """The path of each leaf that JAX is given."""
        return _paths(self.content, self.refs_outside)

    def finish(self, returned: Any) -> Any:
        """The result for the caller; updates the arguments."""
        return unpack(returned, self.content.all_leaves(self._all), self._tree)


def _paths(content: Content, refs_outside: Sequence[Leaf]) -> Sequence[str]:
    pairs = zip(content.paths(CALL), refs_outside, strict=True)
    return [path for path, ref in pairs if ref is None]
