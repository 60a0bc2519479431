# SPDX-License-Identifier: Apache-2.0
"""`jax.custom_vjp` for functions of DAGs."""

from collections.abc import Callable
from typing import Any

import jax

from pydag.jaxinterop.boundary.dag import Dag, InnerDag, rebuilt
from pydag.jaxinterop.boundary.outputs import Shell
from pydag.jaxinterop.messages.naming import ARGUMENTS, Source, name_of, named
from pydag.jaxinterop.prefixes.treatments import shortened
from pydag.jaxinterop.static.untraced import Untraced

from .custom import Custom, P, R, opened, two


class custom_vjp(Custom[P, R]):  # noqa: N801 (JAX's name)
    """A function of DAGs with its own derivative, backward; as `jax.custom_vjp`.

    Identity spans each argument: an object in two arguments is two inputs, whose cotangents JAX
    adds up. Inside of one argument, and of the result, what is one object is one in the rules, and
    has one cotangent: the whole, at each of its places. So a rule sums over the places of an
    argument itself, and doesn't sum over those of the result again. Parts that differ are refused;
    one object that was meant as two equal parts can't be told from the whole.

    Args:
        fun: The function, of positional arguments.
        nondiff_argnums, nondiff_argnames: Arguments that are handed on as they are.
        namespace: Not JAX's. Classes registered in this namespace are nodes, too.
        identity: Not JAX's. "nodes": only containers and modules have identity, arrays don't.

    >>> @custom_vjp
    ... def f(p):
    ...     return p["a"] * p["b"]
    >>> def forward(p):
    ...     return f(p), p
    >>> def backward(p, cotangent):
    ...     both = cotangent * (p["a"] + p["b"])
    ...     return ({"a": both, "b": both},)
    >>> f.defvjp(forward, backward)
    >>> float(jax.grad(lambda w: f({"a": w, "b": w}))(jnp.float32(3.0)))
    6.0
    """

    _transformation = jax.custom_vjp

    def defvjp(
        self,
        fwd: Callable[..., tuple[R, Any]],
        bwd: Callable[..., tuple[Any, ...]],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
        **jax_options: Any,
    ) -> None:
        """Set the rules.

        Args:
            fwd: `fwd(*args)` returns `(result, saved)`.
            bwd: `bwd(*nondiff_args, saved, cotangent)` returns a tuple with a cotangent for each
                differentiable argument. Each is structured as its argument is, and shares at least
                as much; anything may stand for leaves that JAX can't trace. None stands for zero.
            symbolic_zeros, optimize_remat, jax_options: As in JAX.

        Raises:
            SharingError: When differentiated: a cotangent has two objects where there was one.
        """

        def flat_fwd(*args: Any) -> tuple[Dag, tuple[Dag, Shell]]:
            result, saved = two(
                fwd(*self._trees(args)), fwd, "(result, saved)", "what bwd is given of it"
            )
            untraced_parts = (
                x._untraced for i, x in enumerate(args) if i not in self.nondiff_argnums
            )
            return self._outcome(result), (self._pack(saved, "saved"), Shell(tuple(untraced_parts)))

        def flat_bwd(*args: Any) -> tuple[Dag | None, ...]:
            *others, (saved, untraced_parts), cotangent = args
            found = bwd(*others, opened(saved), opened(cotangent))
            count = len(untraced_parts.content)
            if not isinstance(found, tuple) or len(found) != count:
                raise TypeError(
                    f"{name_of(bwd)} must return a tuple with a cotangent for each of {count} "
                    f"differentiable arguments, but it returned {shortened(repr(found))}"
                )
            return tuple(map(self._cotangent, range(count), untraced_parts.content, found))

        self._jax.defvjp(
            named(flat_fwd, Source(fwd), ARGUMENTS),
            named(flat_bwd, Source(bwd), ARGUMENTS),
            symbolic_zeros=symbolic_zeros,
            optimize_remat=optimize_remat,
            **jax_options,
        )

    def _cotangent(self, i: int, untraced: Untraced, found: Any) -> Dag | None:
        if found is None:
            return None
        what = f"the cotangent for differentiable argument {i} of {name_of(self.fun)}"
        return rebuilt(untraced, untraced.match(found, what, "cotangent"), InnerDag)
