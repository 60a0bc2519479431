# SPDX-License-Identifier: Apache-2.0
"""The steps of what JAX has traced, and how one is run, by itself or as one of contents."""

from typing import Any

from pydag.jaxinterop.foreign import jax_private


def discharged(jaxpr: Any, equation: Any, given: list[Any], wanted: list[Any]) -> Any:
    """One step of what was traced, as a function of contents for refs.

    Behind its results it gives the contents afterwards, one for each ref.

    Args:
        jaxpr: What was traced.
        given, wanted: The variables that are the inputs and the outputs of the step.
    """
    fields = {
        "constvars": [],
        "invars": given,
        "outvars": wanted,
        "eqns": [equation],
        "effects": equation.effects,
        "debug_info": jaxpr.debug_info.with_unknown_names(),
    }
    if jax_private.closed_jaxpr is None:
        return jax_private.discharge_state(jaxpr.replace(consts=[], **fields))
    return jax_private.discharge_state(jax_private.closed_jaxpr(jaxpr.replace(**fields), [])).jaxpr


def has_rules(equation: Any) -> bool:
    """Whether there is a function with a derivative of its own in a step."""
    waiting: list[Any] = [equation]
    seen: set[int] = set()
    while waiting:
        found = waiting.pop()
        if hasattr(found, "primitive"):
            if found.primitive.name.startswith("custom_"):
                return True
            for value in found.params.values():
                waiting += value if isinstance(value, tuple | list) else [value]
        else:
            found = getattr(found, "jaxpr", found)
            if id(found) not in seen and hasattr(found, "eqns"):
                seen.add(id(found))
                waiting += found.eqns
    return False


def run_equation(equation: Any, values: list[Any]) -> list[Any]:
    """What one step of what was traced gives for these inputs."""
    primitive, source = equation.primitive, equation.source_info
    names = jax_private.name_stack() + source.name_stack
    parameters = primitive.get_bind_params(equation.params)
    with jax_private.user_context(source.traceback, name_stack=names), equation.ctx.manager:
        found = primitive.bind(*values, **parameters)
    return list(found) if primitive.multiple_results else [found]


def can_purify() -> bool:
    """Whether a function of refs can be run as one of contents."""
    needed = (
        jax_private.discharge_state,
        jax_private.eval_jaxpr,
        jax_private.user_context,
        jax_private.name_stack,
        jax_private.get_referent,
    )
    return all(found is not None for found in needed)
