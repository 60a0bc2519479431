# SPDX-License-Identifier: Apache-2.0
"""Functions between tracing and calling: JAX's stages, with the signature of the function."""

import functools
import re
from typing import Any

from pydag import _core, explain
from pydag._repr import short_repr

from ._form import Form
from ._machine import Machine
from ._static import Static
from ._treatment import shortened


class _Stage:
    """A stage of JAX's; what isn't overridden is asked of it."""

    def __init__(self, stage: Any, machine: Machine, key: Any) -> None:
        self._stage, self._machine, self._key = stage, machine, key

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stage, name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._stage!r})"

    @functools.cached_property
    def out_info(self) -> Any:
        """Shapes and types of the result, in the result's own form."""
        return _core.finish(self._stage.out_info)


class Traced(_Stage):
    """What `jit(f).trace(...)` returns: the function as JAX's own language has it."""

    def lower(self, **options: Any) -> "Lowered":
        return Lowered(self._stage.lower(**options), self._machine, self._key)


class Lowered(_Stage):
    """What `jit(f).lower(...)` returns: the function as the compiler gets it."""

    def compile(self, *options: Any, **more: Any) -> "Compiled":
        return Compiled(self._stage.compile(*options, **more), self._machine, self._key)


class Compiled(_Stage):
    """A compiled function, for arguments of one structure."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Calls it. Static arguments are given as well, and must be those it was compiled for.

        Raises:
            TypeError: The arguments are structured, or shared, in another way.
        """
        key, *leaves = self._machine.take_apart(args, kwargs)
        if key != self._key and self._machine.forget_wrong_plan(args, kwargs):
            key, *leaves = self._machine.take_apart(args, kwargs)
        if key != self._key:
            raise TypeError(
                "the function was compiled for arguments of another structure, sharing or static "
                "content\n  (first: compiled for, second: called with)\n"
                f"{why(self._key.form, key.form)}"
            )
        return _core.finish(self._stage(*leaves))


def why(first: Form, second: Form) -> str:
    """Where the arguments of two calls differ, in words."""
    text = explain(first.spec, second.spec)
    if not text:
        paths = first.spec.accessors()
        one, other = (dict(zip(f.positions, f.statics, strict=True)) for f in (first, second))
        text = "\n".join(
            f"{paths[i].codify('tree')}\n  first:  {_shown(one, i)}\n  second: {_shown(other, i)}"
            for i in sorted(one.keys() | other.keys())
            if one.get(i) != other.get(i)
        )
    return shortened(
        re.sub(r"\btree\[([01])\]", lambda m: ("args", "kwargs")[int(m[1])], text), 1600
    )


def _shown(statics: dict[int, Any], position: int) -> str:
    static = statics.get(position)
    while isinstance(static, Static):
        static = static.value
    return "an array" if position not in statics else short_repr(static)
