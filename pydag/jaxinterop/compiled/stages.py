# SPDX-License-Identifier: Apache-2.0
"""Functions between tracing and calling: JAX's stages, with the signature of the function."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import jax
from jax import stages

from pydag.jaxinterop.boundary.described import described_call
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.messages.roots import HELD
from pydag.jaxinterop.notices.difference import why
from pydag.jaxinterop.prefixes.arguments import Args, Kwargs
from pydag.jaxinterop.static.untraced import Untraced
from pydag.typing import Leaf

from .call_shape import CallShape, InputTrees, result_tree
from .compiled_function import CompiledFunction
from .extra_results import TracedCall
from .several_processes import traces_allowed


class _Stage:
    """Wraps a stage of JAX's, and passes on what isn't overridden.

    `isinstance` takes it for an instance of JAX's class. It isn't one, since JAX's own methods
    would speak of the flat function.
    """

    _class_of_jax: ClassVar[type]
    _left_out: ClassVar[Mapping[str, str]] = {}  # names that are missing, and what to do instead

    def __init__(
        self, stage: Any, compiled: CompiledFunction, call: CallShape, inputs: InputTrees
    ) -> None:
        self._stage, self._compiled, self._call, self._inputs = stage, compiled, call, inputs
        self._held: Kwargs = {}  # what the function holds, which is passed at each call

    @property  # type: ignore[misc]  # of objects nobody sets it
    def __class__(self) -> type:  # what isinstance asks, too
        return self._class_of_jax

    def __getattr__(self, name: str) -> Any:
        if name in self._left_out:
            raise AttributeError(
                f"jax.stages.{type(self).__name__} has {name}, which would speak of the flat "
                f"function that JAX compiles. {self._left_out[name]}"
            )
        if name == "_stage":  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self._stage, name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._stage!r})"

    @property
    def args_info(self) -> Any:
        """What is known of each argument: its type, and whether it is donated."""
        return self._inputs.of(self._stage.args_info)

    @property
    def in_avals(self) -> Any:
        """The types of the arguments."""
        return self._inputs.of(self._stage.in_avals)

    @property
    def in_tree(self) -> jax.tree_util.PyTreeDef:
        """The structure of `(args, kwargs)`, as JAX sees it."""
        return jax.tree.structure(self.args_info)

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """Which leaves are donated, counted as JAX sees them."""
        leaves = jax.tree.leaves(self.args_info)
        return tuple(i for i, leaf in enumerate(leaves) if leaf.donated)

    @functools.cached_property
    def _outlines(self) -> Any:
        return self._stage.out_info

    @functools.cached_property
    def out_info(self) -> Any:
        """Shapes and types of the result, in the result's own form."""
        return self._call.described(self._outlines)

    @property
    def out_tree(self) -> jax.tree_util.PyTreeDef:
        """The structure of the result, as JAX sees it."""
        return jax.tree.structure(self.out_info)

    def _of_result(self, found: Any) -> Any:
        return result_tree(self.out_info, self._outlines, found, self._compiled.options)

    def _take(self, args: Args, kwargs: Kwargs, made: str) -> TracedCall:
        """A call, taken apart.

        Raises:
            TypeError: The arguments are structured, or shared, in another way.
        """
        kwargs = kwargs | self._held
        compiled, call = self._compiled, self._call
        try:
            traced_call = compiled.take_apart(args, kwargs)
        except ReferenceError:  # refs that it wasn't made for: the function itself, which is gone
            leaves, untraced = compiled.untraced_call(args, kwargs)
            raise self._made_for_another(made, untraced, leaves) from None
        if not call.is_for(traced_call):
            raise self._made_for_another(made, traced_call.key.untraced, traced_call.leaves)
        return traced_call

    def _made_for_another(self, made: str, untraced: Untraced, leaves: Sequence[Leaf]) -> TypeError:
        text = why(self._call.key.untraced, untraced) or self._call.ref_difference(leaves)
        return TypeError(
            f"the function was {made} for arguments of another structure, sharing or static "
            f"content\n  (first: {made} for, second: called with)\n{text}"
        )


class Traced(_Stage):
    """What `jit(f).trace(...)` returns: the function in JAX's own language."""

    _class_of_jax = stages.Traced
    _left_out: ClassVar = {
        "with_consts_as_arg": "Take closure_convert(), and trace the function that it gives.",
        "physicalize": "Take jaxpr, which is about that function, too.",
    }

    @classmethod
    def of(cls, compiled: CompiledFunction, args: Args, kwargs: Kwargs) -> "Traced":
        """Traces a function."""
        args, kwargs = described_call(args, kwargs, compiled.options, compiled.static.chosen)

        def traced_as(traced_call: TracedCall) -> "Traced":
            inputs = InputTrees(
                traced_call, args, compiled.keywords.of(kwargs), compiled.static.chosen
            )
            return cls(traced_call.trace(), compiled, CallShape(traced_call), inputs)

        with traces_allowed():
            return compiled.with_traced_call(traced_as, args, kwargs)

    def of_held(self, content: Any) -> "Traced":
        """This, of a function that holds something, which isn't given when it is called."""
        self._held = {HELD: content}
        return self

    @property
    def out_avals(self) -> Any:
        """The types of the result."""
        return self._of_result(self._stage.out_avals)

    def lower(self, **options: Any) -> Any:
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
        lowered = Lowered(self._stage.lower(**options), self._compiled, self._call, self._inputs)
        lowered._held = self._held
        return lowered

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Evaluates what was traced; with newer JAX.

        Raises:
            TypeError: The arguments are structured, or shared, in another way.
        """
        traced_call = self._take(args, kwargs, "traced")
        return traced_call.finish(self._stage(*traced_call.arguments[1:]))

    @functools.cached_property
    def _converted(self) -> tuple[Any, Callable[..., Any]]:
        consts, flat = self._stage.closure_convert()

        def converted(consts: Any, /, *args: Any, **kwargs: Any) -> Any:
            traced_call = self._take(args, kwargs, "traced")
            return traced_call.finish(flat(consts, *traced_call.arguments[1:]))

        return consts, converted

    def closure_convert(self) -> tuple[Any, Callable[..., Any]]:
        """The arrays that the function closed over, and a function of them and its arguments."""
        return self._converted


class Lowered(_Stage):
    """What `jit(f).lower(...)` returns: the function as the compiler gets it."""

    _class_of_jax = stages.Lowered

    def compile(self, *options: Any, **more: Any) -> "Compiled":
        stage = self._stage.compile(*options, **more)
        compiled = Compiled(stage, self._compiled, self._call, self._inputs)
        compiled._held = self._held
        return compiled


class Compiled(_Stage):
    """A compiled function, for arguments of one structure."""

    _class_of_jax = stages.Compiled
    _left_out: ClassVar = {
        "call": "Call the compiled function itself.",
        "_executable": "For jax.experimental.serialize_executable, take "
        "jax.jit(lambda dag: f(dag.tree)).lower(pydag.jaxinterop.Dag(argument)).compile().",
    }

    @property
    def input_shardings(self) -> Any:
        """The sharding of each argument, in the form of `(args, kwargs)`; None for unused ones."""
        return self._inputs.of(self._stage.input_shardings)

    @property
    def input_formats(self) -> Any:
        """Layout and sharding of each argument, in the form of `(args, kwargs)`."""
        return self._inputs.of(self._stage.input_formats)

    @property
    def output_shardings(self) -> Any:
        """The sharding of each array of the result, in its form."""
        return self._of_result(self._stage.output_shardings)

    @property
    def output_formats(self) -> Any:
        """Layout and sharding of each array of the result, in its form."""
        return self._of_result(self._stage.output_formats)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Calls it. Static arguments are given as well, and must be those it was compiled for.

        Raises:
            TypeError: The arguments are structured, or shared, in another way.
        """
        traced_call = self._take(args, kwargs, "compiled")
        return traced_call.finish(self._stage(*traced_call.arguments[1:]))
