# SPDX-License-Identifier: Apache-2.0
"""`jax.custom_jvp` for functions of DAGs."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from pydag.jaxinterop.boundary.match import matched
from pydag.jaxinterop.messages.naming import ARGUMENTS, Source, name_of, named
from pydag.jaxinterop.notices.lost_update import tell_lost
from pydag.jaxinterop.packed.dag import Dag, Outcome, rebuilt
from pydag.jaxinterop.packed.derivatives import derivative, tangents_for
from pydag.jaxinterop.refs.rules import RuleCall
from pydag.jaxinterop.refs.table import NO_REFS, RefTable
from pydag.jaxinterop.static.differentiable import is_differentiable

from .custom import Custom, P, R, given_tree, opened_derivative, two

Rule = TypeVar("Rule", bound=Callable[..., Any])


class custom_jvp(Custom[P, R]):  # noqa: N801 (JAX's name)
    """A function of DAGs with its own derivative, forward; as `jax.custom_jvp`.

    Identity spans each argument: an object in two arguments is two inputs, whose tangents JAX adds
    up. Inside of one argument, what is one object is one in the rule, and has one tangent; None
    stands in the tangents at what has no derivative. The tangent of a ref is that of its content,
    an array.

    Args:
        fun: The function, of positional arguments; others keep their defaults.
        nondiff_argnums, nondiff_argnames: Arguments that are handed on as they are.
        namespace: Not JAX's. Classes registered in this namespace are nodes, too.
        identity: Not JAX's. "nodes": only containers and modules have identity, arrays don't.

    >>> @custom_jvp
    ... def f(p):
    ...     return p["a"] * p["b"]
    >>> @f.defjvp
    ... def f_jvp(primals, tangents):
    ...     (p,), (t,) = primals, tangents
    ...     return f(p), t["a"] * p["b"] + p["a"] * t["b"]
    >>> float(jax.grad(lambda w: f({"a": w, "b": w}))(jnp.float32(3.0)))
    6.0
    """

    _transformation = jax.custom_jvp
    jvp: Callable[..., Any] | None = None
    """The rule."""

    def defjvp(self, jvp: Rule, symbolic_zeros: bool = False) -> Rule:
        """Set the rule: `jvp(*nondiff_args, primals, tangents)` to `(result, tangent)`.

        Also a decorator. The tangent is structured as the result is.

        Args:
            jvp: The rule.
            symbolic_zeros: As in JAX.
        """
        arguments = self._arguments

        def called(
            others: Any, primals: Any, tangents: Any, table: RefTable, of_refs: Sequence[Any] = ()
        ) -> tuple[Dag, Dag]:
            point = [given_tree(x, f"primals[{i}]", table) for i, x in enumerate(primals)]
            along = tuple(opened_derivative(x, of_refs) for x in tangents)
            found = jvp(*others, tuple(x.tree for x in point), along)
            tell_lost(point, found, jvp)
            result, tangent = two(found, jvp, "(result, tangent)", "its tangent")
            dag = arguments.outcome(result, table)
            what = f"the tangent that {name_of(jvp)} returned"
            leaves = matched(dag._untraced, tangent, what, "tangent")
            return dag, rebuilt(dag._untraced, tangents_for(dag._leaves, leaves), Outcome)

        self.jvp = jvp

        def flat_jvp(*args: Any) -> tuple[Dag, Dag]:
            *others, primals, tangents = args
            return called(others, primals, tangents, NO_REFS)

        self._jax.defjvp(named(flat_jvp, Source(jvp), ARGUMENTS), symbolic_zeros=symbolic_zeros)

        def give_rules(function: Any, call: RuleCall) -> None:
            def lent_jvp(*args: Any) -> tuple[Any, Any]:
                *others, (contents, *primals), (of_refs, *tangents) = args
                (dag, tangent), after = call.run(
                    contents,
                    lambda refs: called(others, primals, tangents, RefTable(refs), of_refs),
                )
                zeros = [jnp.zeros_like(x) if is_differentiable(x) else None for x in after]
                return (dag, after), (tangent, tangents_for(after, zeros))

            function.defjvp(named(lent_jvp, Source(jvp), ARGUMENTS), symbolic_zeros=symbolic_zeros)

        self._give_rules = give_rules
        self._defined = "defjvp", (jvp,), {"symbolic_zeros": symbolic_zeros}
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set a rule for each argument: `jvp(tangent, result, *primals)` to a part of the tangent.

        The parts are added up.

        Args:
            jvps: The rules; None stands for zero.
        """
        if self.nondiff_argnums:
            raise TypeError("defjvps and nondiff_argnums don't go together; use defjvp")

        def rule(primals: Any, tangents: Any) -> tuple[Any, Any]:
            function: Callable[..., R] = self
            result = function(*primals)
            dag = self._arguments.outcome(result)
            sums = [jnp.zeros_like(x) if is_differentiable(x) else None for x in dag._leaves]
            for jvp, tangent in zip(jvps, tangents, strict=True):
                if jvp is not None:
                    found = jvp(tangent, result, *primals)
                    what = f"what {name_of(jvp)} returned"
                    parts = matched(dag._untraced, found, what, "tangent")
                    pairs = zip(sums, parts, strict=True)
                    sums = [None if total is None else total + part for total, part in pairs]
            return result, derivative(dag._untraced, sums)

        self.defjvp(rule)
        self._defined = "defjvps", jvps, {}
