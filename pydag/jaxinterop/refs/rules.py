# SPDX-License-Identifier: Apache-2.0
"""Functions with rules of their own that are given refs: JAX sees the contents.

So JAX differentiates, maps and stages them as functions of arrays.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax

from pydag.jaxinterop.foreign.jax_private import identity

from .access import new_ref
from .contents import OfContents, read
from .ref_calls import with_ref_contents


class RuleCall:
    """A call of a function with rules: the function, or a rule, is run for it.

    Attributes:
        written: The numbers of the refs into which what was run has written.
    """

    def __init__(self) -> None:
        self.written: set[int] = set()

    def run(self, contents: Sequence[Any], function: Callable[[list[Any]], Any]) -> Any:
        """What a function of refs with these contents returns, and the contents afterwards."""
        own = without_marks(contents)

        def attempt(lent: list[Any] | None) -> Any:
            if lent is None:
                refs = list(map(new_ref, own))
                self.written.update(range(len(refs)))
                return function(refs), read(refs)
            staged = OfContents(function)
            found, after = staged.lent(lent, [*own, *read(lent)])
            self.written |= staged.written
            for ref, content in zip(lent, after[len(own) :], strict=True):
                if identity(ref) in staged.written_around:
                    ref[...] = content
            return found, after[: len(own)]

        return with_ref_contents(attempt)


def without_marks(contents: Sequence[Any]) -> list[Any]:
    """Contents, or refs, without what JAX says of each where a rule asks for symbolic zeros."""
    marks: Any = jax.custom_derivatives.CustomVJPPrimal
    return [x.value if isinstance(x, marks) else x for x in contents]
