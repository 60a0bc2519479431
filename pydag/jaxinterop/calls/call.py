# SPDX-License-Identifier: Apache-2.0
"""The arguments of a call whose function closes over their refs, and JAX does the rest."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pydag.jaxinterop.content.content import take_apart
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.paths import CALL
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.notices.source import Source
from pydag.jaxinterop.packed.packed import pack, refs_among, unpack
from pydag.jaxinterop.treatments.arguments import Chosen
from pydag.typing import Leaf

from .run import run


class Call:
    """The arguments of a call, taken apart.

    Args:
        args, kwargs: The arguments.

    Attributes:
        content: The arguments without their traced leaves.
        leaves: The traced leaves, refs among them.
        arrays: The same without refs: what JAX is given.
    """

    def __init__(self, args: Any, kwargs: Any, options: Options) -> None:
        self.options, self.tree = options, (tuple(args), kwargs)
        self.leaves, self.content = take_apart(self.tree, options, CALL)
        self._are_refs = list(map(jax_private.is_ref, self.leaves))
        self.arrays = self.without_refs(self.leaves)

    def without_refs(self, items: Iterable[Any]) -> list[Any]:
        """Of one thing for each traced leaf, those for arrays."""
        pairs = zip(items, self._are_refs, strict=True)
        return [item for item, is_ref in pairs if not is_ref]

    def with_refs(self, arrays: Iterable[Leaf]) -> list[Leaf]:
        """All traced leaves, given the arrays."""
        given = iter(arrays)
        pairs = zip(self.leaves, self._are_refs, strict=True)
        return [leaf if is_ref else next(given) for leaf, is_ref in pairs]

    def without_arrays(self) -> "Call":
        """This without its arrays: what JAX keeps must not own them."""
        made = object.__new__(Call)
        made.options, made.content, made._are_refs = self.options, self.content, self._are_refs
        made.tree, made.arrays = ((), {}), []
        pairs = zip(self.leaves, self._are_refs, strict=True)
        made.leaves = [leaf if is_ref else None for leaf, is_ref in pairs]
        return made

    def paths(self) -> Sequence[str]:
        """The path of each array."""
        return self.without_refs(self.content.paths(CALL))

    def run(
        self,
        fun: Callable[..., Any],
        arrays: Iterable[Leaf],
        source: Source,
        updated: Chosen | None = None,
        *,
        is_staged: bool = True,
    ) -> tuple[Any, Any]:
        """The result of a function for these arrays, and the same for JAX, with its update."""
        tree = self.build(arrays)
        result, update = run(fun, tree, self.options, source, updated=updated, is_staged=is_staged)
        packed = pack(result, self.options, self.origins)
        return result, update.beside(packed) if updated else packed

    def build(self, arrays: Iterable[Leaf]) -> Any:
        """The arguments with these arrays, and with the caller's refs."""
        return self.content.build(self.with_refs(arrays))

    @property
    def origins(self) -> dict[int, int]:
        """For each ref which of all leaves it is."""
        return refs_among(self.content, self.leaves)

    def finish(self, returned: Any) -> Any:
        """The result for the caller; updates the arguments."""
        return unpack(returned, self.content.all_leaves(self.leaves), self.tree)
