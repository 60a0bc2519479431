# SPDX-License-Identifier: Apache-2.0
"""What `trace`, `lower` and `compile` of a compiled function return."""

import functools
from collections.abc import Sequence
from typing import Any

from pydag.jaxinterop.boundary.described import described_call
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.notices.difference import why
from pydag.jaxinterop.prefixes.arguments import Args, Kwargs
from pydag.jaxinterop.static.untraced import Untraced
from pydag.typing import Leaf

from .call_shape import CallShape
from .compiled_function import CompiledFunction
from .extra_results import TracedCall


class Stage:
    """A stage of JAX's, for arguments of one structure.

    It can be called with the user's trees, and shows what comes out. The rest is JAX's own, about
    the flat function that JAX compiles.
    """

    def __init__(self, stage: Any, compiled: CompiledFunction, call: CallShape) -> None:
        self._stage, self._compiled, self._call = stage, compiled, call

    @classmethod
    def traced(cls, compiled: CompiledFunction, args: Args, kwargs: Kwargs) -> "Stage":
        """Traces a function."""
        args, kwargs = described_call(args, kwargs, compiled.options, compiled.static.chosen)

        def traced_as(traced_call: TracedCall) -> "Stage":
            return cls(traced_call.trace(), compiled, CallShape(traced_call))

        return compiled.with_traced_call(traced_as, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_stage":  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self._stage, name)

    def __repr__(self) -> str:
        return repr(self._stage)

    def _next(self, stage: Any) -> "Stage":
        return Stage(stage, self._compiled, self._call)

    def lower(self, **options: Any) -> "Stage":
        """Translates it for the compiler.

        Raises:
            TypeError: `jax.export` asks for it.
        """
        if jax_private.PRIVATE_PARAMETERS in options:
            raise TypeError(
                "jax.export can't export what pydag.jaxinterop.jit made\n"
                "  Export jax.jit of a function of the leaves, which pydag.jaxinterop.tree.flatten "
                "gives, and build the trees inside: structure.unflatten(leaves)."
            )
        return self._next(self._stage.lower(**options))

    def compile(self, *options: Any, **more: Any) -> "Stage":
        """Compiles it."""
        return self._next(self._stage.compile(*options, **more))

    @functools.cached_property
    def out_info(self) -> Any:
        """Shapes and types of the result, in the result's own form."""
        return self._call.described(self._stage.out_info)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Runs what was compiled; with newer JAX, also what was traced.

        Static arguments are given as well, and must be those it was compiled for.

        Raises:
            TypeError: The arguments are structured, or shared, in another way.
        """
        traced_call = self._take(args, kwargs)
        return traced_call.finish(self._stage(*traced_call.arguments[1:]))

    def _take(self, args: Args, kwargs: Kwargs) -> TracedCall:
        compiled, call = self._compiled, self._call
        try:
            traced_call = compiled.take_apart(args, kwargs)
        except ReferenceError:  # refs that it wasn't made for: the function itself, which is gone
            leaves, untraced = compiled.untraced_call(args, kwargs)
            raise self._made_for_another(untraced, leaves) from None
        if not call.is_for(traced_call):
            raise self._made_for_another(traced_call.key.untraced, traced_call.leaves)
        return traced_call

    def _made_for_another(self, untraced: Untraced, leaves: Sequence[Leaf]) -> TypeError:
        text = why(self._call.key.untraced, untraced) or self._call.ref_difference(leaves)
        made = type(self._stage).__name__.lower()
        return TypeError(
            f"the function was {made} for arguments of another structure, sharing or static "
            f"content\n  (first: {made} for, second: called with)\n{text}"
        )
