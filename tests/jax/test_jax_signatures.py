"""The wrappers of `jaxinterop` have JAX's names, parameters and defaults."""

from __future__ import annotations

import inspect
from typing import Any

import jax
import pytest

from pydag import jaxinterop

TRANSFORMATIONS = (
    "grad", "value_and_grad", "vjp", "jvp", "linearize", "jacfwd", "jacrev", "hessian", "vmap",
    "shard_map", "checkpoint", "remat", "eval_shape", "make_jaxpr", "custom_jvp", "custom_vjp",
    "jit",
)  # fmt: skip
LOOPS = (
    "scan",
    "while_loop",
    "fori_loop",
    "cond",
    "switch",
    "associative_scan",
    "map",
)
OURS = ("namespace", "identity")
OF_LEAVES = ("saveable_args", "in_nzs")  # flags for each leaf: JAX's `vjp` of a function of a Dag


def theirs(name: str) -> Any:
    """JAX's function of this name."""
    return getattr(jax if name in TRANSFORMATIONS else jax.lax, name)


def is_object(default: Any) -> bool:
    """Whether a default is a mark that only its own library can tell."""
    return type(default) is object or type(default).__module__.startswith("jax.")


@pytest.mark.parametrize("name", [*TRANSFORMATIONS, *LOOPS])
def test_the_signature_is_that_of_jax(name: str) -> None:
    """All parameters of the installed JAX, in order, with their defaults; ours have keywords."""
    wrapper = getattr(jaxinterop, name)
    if name == "jit":  # its overloads are for the type checker; the signature is the last one
        assert inspect.signature(wrapper).parameters.keys() >= {"in_shardings", "donate_argnums"}
        return
    mine = dict(inspect.signature(wrapper).parameters)
    given = dict(inspect.signature(theirs(name)).parameters)
    passed_on = any(p.kind is p.VAR_KEYWORD for p in mine.values())
    for parameter in given.values():
        # Deprecated by JAX, and without effect; and private.
        if parameter.name in ("concrete", *OF_LEAVES) or parameter.name.startswith("_use"):
            continue
        if parameter.name not in mine:
            assert passed_on, f"{parameter.name} is missing"
            continue
        ours = mine[parameter.name]
        assert ours.kind is parameter.kind or parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        if not is_object(parameter.default):
            assert ours.default == parameter.default
    positional = [
        n for n, p in given.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    assert [n for n in mine if n in positional] == [n for n in positional if n in mine]
    assert all(mine[n].kind is inspect.Parameter.KEYWORD_ONLY for n in OURS if n in mine)


def test_remat_is_checkpoint() -> None:
    """Two names of one function, as in JAX's documentation."""
    assert jaxinterop.remat is jaxinterop.checkpoint
