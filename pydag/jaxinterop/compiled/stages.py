# SPDX-License-Identifier: Apache-2.0
"""Functions between tracing and calling: JAX's stages, with the signature of the function."""

import functools
from collections.abc import Callable
from typing import Any

from pydag import _core
from pydag._core import Hashed
from pydag.jaxinterop import jax_private
from pydag.jaxinterop.boundary.described import described_call
from pydag.jaxinterop.boundary.updates import result_of
from pydag.jaxinterop.prefixes.arguments import Args, Kwargs

from .compiled_function import CompiledFunction
from .difference import why
from .exported import Exported


class _Stage:
    """A stage of JAX's; what isn't overridden is asked of it."""

    def __init__(self, stage: Any, compiled: CompiledFunction, key: Hashed) -> None:
        self._stage, self._compiled, self._key = stage, compiled, key

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stage, name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._stage!r})"

    @functools.cached_property
    def out_info(self) -> Any:
        """Shapes and types of the result, in the result's own form."""
        return _core.build_result(result_of(self._stage.out_info))


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
        key, donated, kept = compiled.take_apart(args, kwargs)
        traced = cls(compiled.jitted.trace(key, donated, kept), compiled, key)
        traced._exported = Exported(fun, compiled, key.value, key.value.join(donated, kept))
        return traced

    def lower(self, **options: Any) -> Any:
        """Translates it for the compiler.

        `jax.export` gives an option of its own. It reads the jaxpr from here afterwards: from then
        on this is about the function that is exported.
        """
        if jax_private.PRIVATE_PARAMETERS in options:
            self._stage = self._exported.trace(self.out_info)
            return self._stage.lower(**options)
        return Lowered(self._stage.lower(**options), self._compiled, self._key)


class Lowered(_Stage):
    """What `jit(f).lower(...)` returns: the function as the compiler gets it."""

    def compile(self, *options: Any, **more: Any) -> "Compiled":
        return Compiled(self._stage.compile(*options, **more), self._compiled, self._key)


class Compiled(_Stage):
    """A compiled function, for arguments of one structure."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Calls it. Static arguments are given as well, and must be those it was compiled for.

        Raises:
            TypeError: The arguments are structured, or shared, in another way.
        """
        key, *leaves = self._compiled.take_apart(args, kwargs)
        if key != self._key and self._compiled.forget_wrong_groups(args, kwargs):
            key, *leaves = self._compiled.take_apart(args, kwargs)
        if key != self._key:
            raise TypeError(
                "the function was compiled for arguments of another structure, sharing or static "
                "content\n  (first: compiled for, second: called with)\n"
                f"{why(self._key.value.untraced, key.value.untraced)}"
            )
        return self._compiled.finish(self._stage(*leaves), args, kwargs)
