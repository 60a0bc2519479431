# SPDX-License-Identifier: Apache-2.0
"""A call of a function that JAX calls with the traced leaves of the arguments."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import pydag._core as _core
from pydag.jaxinterop.content.content import Content, take_apart
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.paths import CALL
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.notices.source import Source, named
from pydag.jaxinterop.packed.packed import Origins, refs_among, unpack
from pydag.jaxinterop.treatments.arguments import Args, Chosen, Kwargs
from pydag.jaxinterop.treatments.treatments import Question, treatments
from pydag.typing import Leaf

from .run import first_arrays, run


class Call:
    """The arguments of a call, taken apart.

    Args:
        args, kwargs: The arguments.
        passes_refs: Whether JAX is given the refs, too. Otherwise the function closes over them.

    Attributes:
        content: The arguments without their traced leaves.
        leaves: What JAX is given.
        refs: The refs that the function closes over, by their positions among the traced leaves.
    """

    def __init__(
        self, args: Args, kwargs: Kwargs, options: Options, *, passes_refs: bool = True
    ) -> None:
        self._options, self._tree = options, (args, kwargs)
        self._all, self.content = take_apart(self._tree, options, CALL)
        options.check_selects(self._tree)
        self.refs: dict[int, Leaf] = {}
        if not passes_refs:
            self.refs = {i: self._all[i] for i in jax_private.ref_positions(self._all)}
        self.leaves = [x for i, x in enumerate(self._all) if i not in self.refs]

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
        content, options, refs, count = self.content, self._options, self.refs, len(self._all)
        arrays = first_arrays(self._all, content.spec.num_shared)

        def flat(*leaves: Leaf) -> Any:
            given = iter(leaves)
            inside = [refs[i] if i in refs else next(given) for i in range(count)]
            tree = content.build(inside)
            starts = arrays, inside
            result, update = run(get(), tree, options, source, updated=updated, starts=starts)
            packed = pack(result, refs_among(content, inside))
            return _core.make_updated(None, (packed, *update)) if updated else packed

        return named(flat, source, lambda: _paths(content, refs))

    def paths(self) -> Sequence[str]:
        """The path of each leaf that JAX is given."""
        return _paths(self.content, self.refs)

    def finish(self, returned: Any) -> Any:
        """The result for the caller; updates the arguments."""
        return unpack(returned, self.content.all_leaves(self._all), self._tree)


def _paths(content: Content, refs: Collection[int]) -> Sequence[str]:
    return [path for i, path in enumerate(content.paths(CALL)) if i not in refs]
