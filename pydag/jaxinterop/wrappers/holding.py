# SPDX-License-Identifier: Apache-2.0
"""Loops and branches of functions that hold something, such as a method of a model.

JAX remembers what it traced of a body by the function. So a body that holds something is a new
function at each call. Outside of a trace JAX would then compile each call anew; there the whole
loop is compiled, and what its functions hold is an argument.
"""

import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

from pydag.jaxinterop.boundary.call import Call
from pydag.jaxinterop.boundary.held import Held, held_by
from pydag.jaxinterop.compiled.jit import jit
from pydag.jaxinterop.function_cache import cached_for_function
from pydag.jaxinterop.messages.naming import Source, named
from pydag.jaxinterop.messages.roots import HELD
from pydag.jaxinterop.refs.access import is_top_level
from pydag.jaxinterop.static.untraced import Options

Run = Callable[[Any, Any], Any]
"""Calls a wrapper with functions and operands. It owns neither."""


class Holding(NamedTuple):
    """The functions of a loop, of which some hold something."""

    funs: Sequence[Callable[..., Any]]
    held: Sequence[Held | None]
    options: Options

    @classmethod
    def of(cls, funs: Sequence[Any], options: Options) -> "Holding | None":
        """These functions; None if none of them holds anything."""
        held = [held_by(fun, options.namespace) for fun in funs]
        return None if all(each is None for each in held) else cls(funs, held, options)

    def run(self, run: Run, operands: tuple[Any, ...], *key: Hashable) -> Any:
        """What a wrapper gives for these functions and operands.

        Args:
            key: The name of the wrapper, and its options.
        """
        compiled = self._compiled(run, key) if is_top_level() and self._can_be_argument() else None
        if compiled is None:
            return run(self._fresh(), operands)
        return compiled(*operands, **{HELD: self._contents()})

    def _fresh(self) -> list[Callable[..., Any]]:
        pairs = zip(self.funs, self.held, strict=True)
        return [fun if held is None else held.fresh(self.options) for fun, held in pairs]

    def _contents(self) -> tuple[Any, ...]:
        return tuple(held.content for held in self.held if held is not None)

    def _can_be_argument(self) -> bool:
        try:
            Call.keyed(self._contents(), {}, self.options)
        except (TypeError, ValueError):
            return False
        return True

    def _compiled(self, run: Run, key: tuple[Hashable, ...]) -> Any:
        """The compiled loop; None where nothing can be kept with one of the functions."""
        pairs = list(zip(self.funs, self.held, strict=True))
        anchors = [fun if held is None else held.anchor for fun, held in pairs]
        makers = [None if held is None else held._replace(content=None) for held in self.held]
        kinds = tuple(None if held is None else held.kind for held in self.held)
        source, options = Source(self.funs[-1]), self.options._replace(static=None)

        def make(references: list[Any]) -> Any:
            def loop(*operands: Any, **kwargs: Any) -> Any:
                given: Iterator[Any] = iter(kwargs[HELD])
                functions = [reference() for reference in references]
                built = [
                    function
                    if maker is None
                    else maker._replace(anchor=function, content=next(given))
                    for function, maker in zip(functions, makers, strict=True)
                ]
                fresh = [one.fresh(options) if isinstance(one, Held) else one for one in built]
                return run(fresh, operands)

            return jit(named(loop, source), **options._asdict())

        try:
            references = [weakref.ref(anchor) for anchor in anchors]
            table: Any = cached_for_function(
                anchors[0], ("loop", key, kinds), lambda _: weakref.WeakKeyDictionary()
            )[1]
            for anchor in anchors[:-1]:
                table = table.setdefault(anchor, weakref.WeakKeyDictionary())
            if anchors[-1] not in table:
                table[anchors[-1]] = make(references)
            return table[anchors[-1]]
        except TypeError:  # a function that can't be hashed, or referred to weakly
            return None
