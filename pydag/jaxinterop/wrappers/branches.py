# SPDX-License-Identifier: Apache-2.0
"""`jax.lax.cond` and `jax.lax.switch`, of DAGs: branches whose results are alike."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax

from pydag.errors import SharingError
from pydag.jaxinterop.boundary.call import Call, kept_flat
from pydag.jaxinterop.boundary.dag import Outcome, rebuilt
from pydag.jaxinterop.boundary.match import Side, check_alike
from pydag.jaxinterop.boundary.meet import meet
from pydag.jaxinterop.messages.naming import Source
from pydag.jaxinterop.static.untraced import Options, Untraced
from pydag.typing import Identity

from .coming_apart import warn_of_modules

R = TypeVar("R")

_NONE: Any = object()
_ADVICE = "Let each branch return one object at these places, or each two."


def _choose(
    choose: Callable[..., Any],
    branches: Sequence[Callable[..., Any]],
    names: Sequence[str],
    operands: tuple[Any, ...],
    options: Options,
) -> Any:
    """Calls JAX; where that fails, looks whether it is because the results differ.

    Where they differ by what they share alone, what is one object in each of them is one.
    """
    made = [kept_flat(branch, options) for branch in branches]
    call = Call.keyed(operands, {}, options)
    try:
        return choose([function for _, function in made], call).tree
    except TypeError as error:
        try:
            traced = [jax.jit(function) for _, function in made]  # so that it is traced once
            results = [jax.eval_shape(function, call) for function in traced]
        except Exception:
            raise error from None  # it was about something else
        sides = [Side(f"returned by {name}", dag) for name, dag in zip(names, results, strict=True)]
        is_shared_alike = True
        try:
            for side in sides[1:]:
                try:
                    check_alike("the results of the branches", "result", sides[0], side, _ADVICE)
                except SharingError as difference:
                    is_shared_alike, told = False, difference
        except TypeError as difference:
            for name, branch in zip(names, branches, strict=True):
                difference.add_note(f"{name} is {Source(branch).text}.")
            raise
        if is_shared_alike:
            raise
    common, has_modules = results[0]._untraced, False
    for other in results[1:]:
        found = meet(common, other._untraced)
        common, has_modules = found.untraced, has_modules or found.has_modules
    if has_modules:
        warn_of_modules(told)
    return choose([_restricted(function, common) for function in traced], call).tree


def _restricted(function: Callable[[Call], Outcome], common: Untraced) -> Callable[[Call], Outcome]:
    """A branch whose result shares what all results share."""

    def branch(call: Call) -> Outcome:
        result = function(call).tree
        return rebuilt(common, common.match(result, "the result", "result"), Outcome)

    return branch


def cond(
    pred: Any,
    true_fun: Callable[..., R],
    false_fun: Callable[..., R],
    *operands: Any,
    operand: Any = _NONE,
    namespace: str = "",
    identity: Identity = "all",
) -> R:
    """Apply one of two functions of DAGs; as `jax.lax.cond`.

    Args:
        pred: Which one; a boolean, or an array of one.
        true_fun, false_fun: They get the operands, and return DAGs of one structure. What is one
            object in each result is one.
        operands: DAGs.
        operand: A single operand, by keyword.
        namespace: Not JAX's. Classes registered in this namespace are nodes, too.
        identity: Not JAX's. "nodes": only containers and modules have identity, arrays don't.

    >>> w = jnp.float32(3.0)
    >>> double = lambda p: pydag.dag_map(lambda x: 2 * x, p)
    >>> out = cond(w > 2, double, lambda p: p, {"a": w, "b": w})
    >>> out["a"] is out["b"], float(out["a"])
    (True, 6.0)
    """
    chosen: R = _choose(
        lambda branches, call: jax.lax.cond(pred, *branches, call),
        (true_fun, false_fun),
        ("true_fun", "false_fun"),
        operands if operand is _NONE else (operand,),
        Options(namespace, identity),
    )
    return chosen


def switch(
    index: Any,
    branches: Sequence[Callable[..., R]],
    *operands: Any,
    operand: Any = _NONE,
    namespace: str = "",
    identity: Identity = "all",
) -> R:
    """Apply one of several functions of DAGs; as `jax.lax.switch`.

    Args:
        index: Which one; brought into range, as JAX does.
        branches: They get the operands, and return DAGs of one structure. What is one
            object in each result is one.
        operands: DAGs.
        operand: A single operand, by keyword.
        namespace: Not JAX's. Classes registered in this namespace are nodes, too.
        identity: Not JAX's. "nodes": only containers and modules have identity, arrays don't.

    >>> w = jnp.float32(3.0)
    >>> out = switch(1, [lambda p: p, lambda p: pydag.dag_map(jnp.negative, p)], {"a": w, "b": w})
    >>> out["a"] is out["b"], float(out["a"])
    (True, -3.0)
    """
    chosen: R = _choose(
        lambda branches, call: jax.lax.switch(index, branches, call),
        branches,
        [f"branch {i}" for i in range(len(branches))],
        operands if operand is _NONE else (operand,),
        Options(namespace, identity),
    )
    return chosen
