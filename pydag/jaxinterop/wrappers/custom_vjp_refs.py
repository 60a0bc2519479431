# SPDX-License-Identifier: Apache-2.0
"""The rules of a `custom_vjp` for arguments with refs: given their contents, or the refs.

JAX is given the contents, unless the rule backward may write into the refs: it runs when the
function is over, and the caller has to see what it writes.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import tree_util

from pydag.jaxinterop.messages.naming import ARGUMENTS, Source, named
from pydag.jaxinterop.packed.dag import Dag, rebuilt
from pydag.jaxinterop.packed.packed import Packed
from pydag.jaxinterop.refs.ref_calls import OutOfReachError, asking, is_asking
from pydag.jaxinterop.refs.rules import RuleCall, without_marks
from pydag.jaxinterop.refs.table import RefTable
from pydag.jaxinterop.static.differentiable import is_differentiable, shape_of

Cotangents = tuple[list[Dag | None], list[Any]]
"""For each differentiable argument, and for the content of each ref; None for zero."""

Forward = Callable[[Sequence[Any], RefTable], tuple[Dag, tuple[Dag, Packed]]]
Backward = Callable[[Sequence[Any], Dag, Packed, Dag, RefTable], Cotangents]


class RefRules:
    """The rules of a function.

    Args:
        forward: Gets the arguments and the refs in them.
        backward: Gets the arguments that aren't differentiated, what `forward` saved, a cotangent
            and the refs.
        fwd, bwd: The user's rules.
        jax_options: Of `defvjp`.
    """

    def __init__(
        self,
        forward: Forward,
        backward: Backward,
        fwd: Source,
        bwd: Source,
        jax_options: dict[str, Any],
    ) -> None:
        self._forward, self._backward, self._jax_options = forward, backward, jax_options
        self._sources = fwd, bwd
        self._known: dict[Any, bool] = {}

    def give(self, function: Any, call: RuleCall, error: OutOfReachError | None = None) -> None:
        """Sets the rules of a function that gets contents, in a list, before its arguments.

        Args:
            error: Raised when the function is differentiated.
        """

        def forward(contents: list[Any], *args: Any) -> Any:
            if error is not None:
                raise error
            found, after = call.run(contents, lambda refs: self._forward(args, RefTable(refs)))
            dag, kept = found
            return (dag, after), (*kept, after)

        def backward(*args: Any) -> tuple[Any, ...]:
            *others, (saved, shell, contents), (cotangent, _) = args
            (found, of_refs), _ = RuleCall().run(
                contents,
                lambda refs: self._backward(others, saved, shell, cotangent, RefTable(refs)),
            )
            return of_refs, *found

        self._set(function, forward, backward)

    def give_to_refs(self, function: Any) -> None:
        """Sets the rules of a function that gets refs, in a list, before its arguments."""

        def forward(given: list[Any], *args: Any) -> Any:
            refs = without_marks(given)
            dag, kept = self._forward(args, RefTable(refs))
            return dag, (*kept, refs)

        def backward(*args: Any) -> tuple[Any, ...]:
            *others, (saved, shell, refs), cotangent = args
            found, of_refs = self._backward(others, saved, shell, cotangent, RefTable(refs))
            return of_refs, *found

        self._set(function, forward, backward)

    def _set(self, function: Any, forward: Any, backward: Any) -> None:
        fwd, bwd = self._sources
        rules = named(forward, fwd, ARGUMENTS), named(backward, bwd, ARGUMENTS)
        function.defvjp(*rules, **self._jax_options)

    def write_backward(
        self, refs: Sequence[Any], given: Sequence[Any], skipped: Sequence[int]
    ) -> bool:
        """Whether the rule backward writes into refs of a call; asked once for the same types.

        Args:
            given: The arguments. Those whose numbers are `skipped` aren't differentiated.
        """
        if is_asking():
            return False
        types = [jax.typeof(x) for x in (*refs, *tree_util.tree_leaves(_dags(given, skipped)))]
        others = tuple(given[i] for i in skipped)
        key = others, tree_util.tree_structure(_dags(given, skipped)), tuple(types)
        with contextlib.suppress(TypeError):  # it can't be hashed
            if key not in self._known:
                self._known[key] = self._write(refs, given, skipped)
            return self._known[key]
        return self._write(refs, given, skipped)

    def _write(self, refs: Sequence[Any], given: Sequence[Any], skipped: Sequence[int]) -> bool:
        others, back = [given[i] for i in skipped], RuleCall()

        def both(contents: list[Any], dags: list[Any]) -> None:
            rest = iter(map(self._marked, dags))
            args = [given[i] if i in skipped else next(rest) for i in range(len(given))]
            (dag, kept), after = RuleCall().run(
                contents, lambda refs: self._forward(args, RefTable(refs))
            )
            zeros = rebuilt(dag._untraced, map(_zeros, dag._leaves), type(dag))
            saved, shell = kept
            back.run(
                after, lambda refs: self._backward(others, saved, shell, zeros, RefTable(refs))
            )

        # What the rules raise, they raise when they run.
        with contextlib.suppress(Exception), asking():
            jax.eval_shape(both, list(map(shape_of, refs)), _dags(given, skipped))
        return bool(back.written)

    def _marked(self, dag: Dag) -> Dag:
        """An argument as the rule forward gets it."""
        if not self._jax_options["symbolic_zeros"]:
            return dag
        mark: Any = jax.custom_derivatives.CustomVJPPrimal
        return rebuilt(dag._untraced, (mark(x, True) for x in dag._leaves), type(dag))


def _dags(given: Sequence[Any], skipped: Sequence[int]) -> list[Any]:
    return [x for i, x in enumerate(given) if i not in skipped]


def _zeros(leaf: Any) -> Any:
    if is_differentiable(leaf):
        return jnp.zeros_like(leaf)
    return np.zeros(jnp.shape(leaf), jax.dtypes.float0)
