# SPDX-License-Identifier: Apache-2.0
"""What `trace`, `lower` and `compile` of a compiled function return.

A stage can be called with the user's trees, and shows the structure of the result. Its other
attributes are JAX's, and are about the traced leaves one by one.
"""

import copy
import functools
from typing import Any

import numpy as np

import pydag._core as _core
from pydag.jaxinterop.content.options import CALL, Options, Roots
from pydag.jaxinterop.content.packed import unpack
from pydag.jaxinterop.content.static import untraced
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.notices.difference import difference
from pydag.typing import Dag

from .function import CompiledFunction
from .program import Program


class Stage:
    """A stage of JAX's for one content of the arguments."""

    def __init__(
        self, compiled: CompiledFunction, fun: Any, program: Program, stage: Any, shapes: Any
    ) -> None:
        self._compiled, self._fun, self._shapes = compiled, fun, shapes
        self._program = copy.copy(program)  # which may write into more refs later
        self._program.jitted = stage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program.jitted, name)

    def _next(self, stage: Any) -> "Stage":
        return Stage(self._compiled, self._fun, self._program, stage, self._shapes)

    def lower(self, *args: Any, **kwargs: Any) -> "Stage":
        """As JAX's, but not for `jax.export`."""
        if jax_private.PRIVATE_PARAMETERS in kwargs:
            raise TypeError(
                "jax.export can't export what pydag.jaxinterop.jit made\n"
                "  Export jax.jit of a function of the leaves, which pydag.jaxinterop.tree.flatten "
                "gives, and build the trees inside: structure.unflatten(leaves)."
            )
        return self._next(self._program.jitted.lower(*args, **kwargs))

    def compile(self, *args: Any, **kwargs: Any) -> "Stage":
        """As JAX's."""
        return self._next(self._program.jitted.compile(*args, **kwargs))

    @functools.cached_property
    def out_info(self) -> Dag:
        """The result, with shapes and types for arrays."""
        return _shapes_of(self._program, self._program.jitted.out_info, self._shapes)

    def __call__(self, *args: Any, **kwargs: Any) -> Dag:
        """Runs what was compiled, for arguments that differ in no more than values of arrays."""
        call = self._compiled.arranged(args, kwargs)
        leaves, _, program = self._compiled.prepare(call)
        content = self._program.content
        if program.content != content or program.refs != self._program.refs:
            shown = difference(content, program.content) or self._other_refs(program)
            raise TypeError(
                "this was traced for arguments of another structure\n"
                f"{shown}\n  Compile for these arguments, too."
            )
        return self._program.call(leaves, call)

    def _other_refs(self, program: Program) -> str:
        """The first place where only one of two calls has a ref whose content can be passed."""
        first, second = set(self._program.refs), set(program.refs)
        path = program.content.paths(CALL)[min(first ^ second)]
        sides = ["a ref", "an array, or a ref with a kind or a memory space of its own"]
        first_side, second_side = sides if first - second else reversed(sides)
        return f"{path}\n  first:  {first_side}\n  second: {second_side}"


def _shapes_of(program: Program, found: Any, leaves: Any) -> Dag:
    """The result, with shapes and types for arrays; contents of written refs come out, too."""
    return unpack(found[0] if program.written else found, leaves, new_ref=lambda content: content)


def _prepared(compiled: CompiledFunction, args: Any, kwargs: Any) -> tuple[Program, Any]:
    """The program for a call, and its leaves; shapes may stand for arrays."""
    call: Any = described(compiled.arranged(args, kwargs), compiled.options, CALL)
    leaves, _, program = compiled.prepare(call)
    program.prepare(leaves)
    return program, leaves


def trace(compiled: CompiledFunction, fun: Any, /, *args: Any, **kwargs: Any) -> Stage:
    """Traces the function `fun`, as `jax.jit(f).trace`."""
    program, leaves = _prepared(compiled, args, kwargs)
    traced = program.jitted.trace(*program.arguments(leaves))
    # Of the arguments a result holds refs and static leaves alone.
    shapes: list[Any] = [None] * len(leaves)
    for i in jax_private.ref_positions(leaves):
        shapes[i] = jax_private.describe(leaves[i].shape, leaves[i].dtype)
    return Stage(compiled, fun, program, traced, program.content.all_leaves(shapes))


def lower(compiled: CompiledFunction, fun: Any, /, *args: Any, **kwargs: Any) -> Stage:
    """Traces and lowers the function `fun`, as `jax.jit(f).lower`."""
    return trace(compiled, fun, *args, **kwargs).lower()


def eval_shape(compiled: CompiledFunction, _: Any, /, *args: Any, **kwargs: Any) -> Dag:
    """The result with shapes and types for arrays, as `jax.eval_shape`."""
    program, leaves = _prepared(compiled, args, kwargs)
    found = program.jitted.eval_shape(*program.arguments(leaves))
    return _shapes_of(program, found, program.content.all_leaves(leaves))


def described(tree: Dag, options: Options, roots: Roots) -> Dag:
    """The tree with a `jax.ShapeDtypeStruct` for each leaf that describes an array otherwise.

    As in JAX, what has a shape and a dtype stands for an array.
    """
    leaves, spec = options.flatten(tree, roots)
    found = {i: _description(leaves[i]) for i in untraced(leaves)}
    if all(new is leaves[i] for i, new in found.items()):
        return tree
    return _core.unflatten(spec, [found.get(i, leaf) for i, leaf in enumerate(leaves)])


def _description(leaf: Any) -> Any:
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    is_other = isinstance(leaf, type | np.ndarray | np.generic)  # of a dtype that JAX hasn't
    if is_other or shape is None or dtype is None:
        return leaf
    try:
        return jax_private.describe(shape, dtype, weak_type=bool(getattr(leaf, "weak_type", False)))
    except (TypeError, ValueError):
        return leaf  # its shape and dtype aren't those of an array
