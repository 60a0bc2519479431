# SPDX-License-Identifier: Apache-2.0
"""What JAX traced of a function of refs, run as a function of contents.

JAX can do that itself. But then it opens functions that have a derivative of their own, and forgets
their rules. Here such a function is called as it is.
"""

from collections.abc import Sequence
from typing import Any

from pydag.jaxinterop.foreign import jax_private

from .steps import discharged, has_rules, run_equation


class UnknownStepError(Exception):
    """A step of which it isn't known what it does to a ref."""


def _is_ref(atom: Any) -> bool:
    return hasattr(atom.aval, "inner_aval")


class _Run:
    """The values of variables, and the contents of refs, by the ids of variables."""

    def __init__(self, jaxpr: Any) -> None:
        self.jaxpr = jaxpr
        self.values: dict[int, Any] = {}

    def read(self, atom: Any) -> Any:
        if id(atom) in self.values:
            return self.values[id(atom)]
        return atom.val  # a constant

    def write(self, variables: Sequence[Any], values: Sequence[Any]) -> None:
        for variable, value in zip(variables, values, strict=True):
            self.values[id(variable)] = value

    def step(self, equation: Any) -> None:
        name = equation.primitive.name
        if not any(map(_is_ref, (*equation.invars, *equation.outvars))):
            found = run_equation(equation, list(map(self.read, equation.invars)))
            self.write(equation.outvars, found)
        elif name in ("new_ref", "freeze"):  # a content is what it is made of
            self.write(equation.outvars, [self.read(equation.invars[0])])
        elif any(map(_is_ref, equation.outvars)):
            raise UnknownStepError(name)
        elif name == "jit":
            self._inner(equation)
        else:
            self._discharged(equation)

    def _inner(self, equation: Any) -> None:
        """A compiled function that is given refs."""
        inner = equation.params["jaxpr"]
        found, contents = run_pure(inner, (), list(map(self.read, equation.invars)))
        self.write(equation.outvars, found)
        refs = [variable for variable in equation.invars if _is_ref(variable)]
        self.write(refs, contents)

    def _discharged(self, equation: Any) -> None:
        """Any other step that is given refs."""
        if has_rules(equation):
            raise UnknownStepError(equation.primitive.name)
        given = list({id(x): x for x in equation.invars if id(x) in self.values}.values())
        wanted = [x for x in equation.outvars if type(x).__name__ != "DropVar"]
        pure = discharged(self.jaxpr, equation, given, wanted)
        found = jax_private.eval_jaxpr(pure, (), *map(self.read, given))
        refs = [variable for variable in given if _is_ref(variable)]
        self.write([*wanted, *refs], found)


def run_pure(jaxpr: Any, consts: Sequence[Any], args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The results, and the contents of the refs among the inputs afterwards, constants first.

    Args:
        consts, args: The inputs, with contents for refs.

    Raises:
        UnknownStepError: A step may do something to a ref that isn't known.
    """
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    own = tuple(getattr(jaxpr, "consts", ())) if not consts else tuple(consts)
    variables = [*inner.constvars, *inner.invars]
    run = _Run(inner)
    run.write(variables, [*own, *args])
    for equation in inner.eqns:
        run.step(equation)
    refs = [variable for variable in variables if _is_ref(variable)]
    return list(map(run.read, inner.outvars)), list(map(run.read, refs))
