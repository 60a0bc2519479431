# SPDX-License-Identifier: Apache-2.0
"""Functions between tracing and calling: JAX's stages, with the signature of the function."""

import functools
from collections.abc import Callable
from typing import Any

from pydag.jaxinterop import jax_private
from pydag.jaxinterop.boundary.described import described_call
from pydag.jaxinterop.prefixes.arguments import Args, Kwargs

from .compiled_function import CompiledFunction
from .difference import why
from .exported import Exported
from .extra_results import Taken


class _Stage:
    """A stage of JAX's; what isn't overridden is asked of it."""

    def __init__(self, stage: Any, compiled: CompiledFunction, taken: Taken) -> None:
        self._stage, self._compiled, self._taken = stage, compiled, taken

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stage, name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._stage!r})"

    @functools.cached_property
    def out_info(self) -> Any:
        """Shapes and types of the result, in the result's own form."""
        return self._taken.described(self._stage.out_info)


class Traced(_Stage):
    """What `jit(f).trace(...)` returns: the function as JAX's own language has it."""

    _exported: Exported

    @classmethod
    def of(
        cls, fun: Callable[..., Any], compiled: CompiledFunction, args: Args, kwargs: Kwargs
    ) -> "Traced":
        """Traces a function, which the compiled function doesn't own."""
        args, kwargs = described_call(args, kwargs, compiled.options, compiled.static.chosen)
        compiled.forget_wrong_groups(args, kwargs)

        def traced_as(taken: Taken) -> "Traced":
            traced = cls(taken.function.trace(*taken.arguments), compiled, taken)
            traced._exported = Exported(fun, compiled, taken.key, taken.traced_leaves())
            return traced

        return compiled.with_taken(traced_as, args, kwargs)

    def lower(self, **options: Any) -> Any:
        """Translates it for the compiler.

        `jax.export` gives an option of its own. It reads the jaxpr from here afterwards: from then
        on this is about the function that is exported.
        """
        if jax_private.PRIVATE_PARAMETERS in options:
            self._taken.check_no_refs("jax.export exports no function of them")
            self._stage = self._exported.trace(self.out_info)
            return self._stage.lower(**options)
        return Lowered(self._stage.lower(**options), self._compiled, self._taken)


class Lowered(_Stage):
    """What `jit(f).lower(...)` returns: the function as the compiler gets it."""

    def compile(self, *options: Any, **more: Any) -> "Compiled":
        return Compiled(self._stage.compile(*options, **more), self._compiled, self._taken)


class Compiled(_Stage):
    """A compiled function, for arguments of one structure."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Calls it. Static arguments are given as well, and must be those it was compiled for.

        Raises:
            TypeError: The arguments are structured, or shared, in another way.
        """
        taken = self._compiled.take_apart(args, kwargs)
        if not taken.is_like(self._taken) and self._compiled.forget_wrong_groups(args, kwargs):
            taken = self._compiled.take_apart(args, kwargs)
        if not taken.is_like(self._taken):
            raise TypeError(
                "the function was compiled for arguments of another structure, sharing or static "
                "content\n  (first: compiled for, second: called with)\n"
                f"{why(self._taken.key.untraced, taken.key.untraced)}"
            )
        return taken.finish(self._stage(*taken.arguments[1:]))
