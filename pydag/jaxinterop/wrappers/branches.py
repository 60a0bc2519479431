# SPDX-License-Identifier: Apache-2.0
"""`jax.lax.cond` and `jax.lax.switch`, of DAGs: branches whose results are alike."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, Unpack

import jax

from pydag.errors import SharingError
from pydag.jaxinterop.boundary.call import Call, kept_staged
from pydag.jaxinterop.boundary.common_sharing import common_sharing
from pydag.jaxinterop.boundary.held import anew
from pydag.jaxinterop.boundary.match import Side, check_alike
from pydag.jaxinterop.messages.naming import Source
from pydag.jaxinterop.messages.roots import CALL
from pydag.jaxinterop.notices.lost_tie import loses_a_tie
from pydag.jaxinterop.options import TreeOptions, with_wrapper_options
from pydag.jaxinterop.packed.dag import Outcome, rebuilt
from pydag.jaxinterop.refs.contents import RefCall
from pydag.jaxinterop.refs.ref_calls import may_lend, with_ref_contents
from pydag.jaxinterop.refs.table import RefTable
from pydag.jaxinterop.static.untraced import Options, Untraced

from .checks import check_callable
from .coming_apart import warn_of_modules

R = TypeVar("R")

_NONE: Any = object()
_WHAT = "the results of the branches"
_ADVICE = "Let each branch return one object at these places, or each two."


def _choose(
    choose: Callable[..., Any],
    which: Any,
    branches: Sequence[Callable[..., Any]],
    names: Sequence[str],
    operands: tuple[Any, ...],
    options: Options,
) -> Any:
    """Calls JAX; refs among the operands are lent to the branches.

    Args:
        choose: Gets `which`, a list of branches, and arguments.
    """
    branches = [anew(branch, options.namespace) for branch in branches]
    made = [kept_staged(branch, options) for branch in branches]
    call, table = Call.keyed(operands, {}, options), RefTable()
    bare = table.hide(call, adds=True)

    def choose_one(functions: Sequence[Any], *args: Any) -> Any:
        return choose(which, functions, *args)

    def run(lent: list[Any] | None) -> Any:
        if lent is None or not may_lend([*table.refs, *lent]):
            functions = [_Branch(staged.plain, table) for _, staged in made]
            return _chosen(choose_one, functions, branches, names, (call,)).tree
        lenders = [staged.of_contents for _, staged in made]
        functions = [_Branch(lender.for_jax(lent), table, True) for lender in lenders]
        texts = [Source(branch).text for branch in branches]
        pairs = list(zip(texts, lenders, strict=True))
        outcome = RefCall(pairs, table, bare._untraced, CALL, lent).run(
            lambda contents: _chosen(choose_one, functions, branches, names, (contents, bare))
        )
        return table.show(outcome).tree

    return with_ref_contents(run)


class _Branch(NamedTuple):
    """A branch, for JAX.

    Args:
        table: The refs whose numbers stand in its result.
        is_lent: Whether it returns contents, too.
    """

    function: Callable[..., Any]
    table: RefTable
    is_lent: bool = False

    def outcome(self, found: Any) -> Outcome:
        """What the branch itself returns, with refs."""
        found_outcome: Outcome = found[0] if self.is_lent else found
        return self.table.show(found_outcome)


def _chosen(
    choose: Callable[..., Any],
    made: Sequence[_Branch],
    branches: Sequence[Callable[..., Any]],
    names: Sequence[str],
    args: tuple[Any, ...],
) -> Any:
    """Calls JAX. If that fails since the results of branches differ, raises an error that says how.

    If they differ in sharing alone, each branch is given the sharing that all results have in
    common, and JAX is called again.
    """
    try:
        return choose([branch.function for branch in made], *args)
    except TypeError as error:
        try:
            traced = [jax.jit(branch.function) for branch in made]  # so that it is traced once
            results = [
                branch.outcome(jax.eval_shape(function, *args))
                for branch, function in zip(made, traced, strict=True)
            ]
        except Exception:
            raise error from None  # it was about something else
        sides = [Side(f"returned by {name}", dag) for name, dag in zip(names, results, strict=True)]
        is_shared_alike = True
        try:
            for side in sides[1:]:
                try:
                    check_alike(_WHAT, "result", sides[0], side, _ADVICE, made[0].table)
                except SharingError as difference:
                    is_shared_alike, told = False, difference
        except TypeError as difference:
            for name, branch in zip(names, branches, strict=True):
                difference.add_note(f"{name} is {Source(branch).text}.")
            raise
        if is_shared_alike:
            raise
    common, is_tie_lost = results[0]._untraced, False
    for other in results[1:]:
        found = common_sharing(common, other._untraced)
        for one, two in itertools.permutations((common, other._untraced)):
            is_tie_lost |= common_sharing(one, two).has_modules and loses_a_tie(one.spec, two.spec)
        common = found.untraced
    if is_tie_lost:
        warn_of_modules(told)
    pairs = zip(made, traced, strict=True)
    return choose([_restricted(branch, function, common) for branch, function in pairs], *args)


def _restricted(branch: _Branch, function: Any, common: Untraced) -> Callable[..., Any]:
    """A branch whose result shares what all results share."""

    def restricted(*args: Any) -> Any:
        found = function(*args)
        leaves = common.match(branch.outcome(found).tree, "the result", "result")
        outcome = branch.table.hide(rebuilt(common, leaves, Outcome))
        return (outcome, found[1]) if branch.is_lent else outcome

    return restricted


@with_wrapper_options
def cond(
    pred: Any,
    true_fun: Callable[..., R],
    false_fun: Callable[..., R],
    *operands: Any,
    operand: Any = _NONE,
    **options: Unpack[TreeOptions],
) -> R:
    """Apply one of two functions of DAGs; as `jax.lax.cond`.

    Args:
        pred: Which one; a boolean, or an array of one.
        true_fun, false_fun: They get the operands, and return DAGs of one structure. What is one
            object in each result is one.
        operands: DAGs.
        operand: A single operand, by keyword.

    >>> w = jnp.float32(3.0)
    >>> double = lambda p: pydag.dag_map(lambda x: 2 * x, p)
    >>> out = cond(w > 2, double, lambda p: p, {"a": w, "b": w})
    >>> out["a"] is out["b"], float(out["a"])
    (True, 6.0)
    """
    text = "lax.cond: true_fun and false_fun arguments should be callable"
    check_callable(text, true_fun, false_fun)
    chosen: R = _choose(
        lambda pred, branches, *args: jax.lax.cond(pred, *branches, *args),
        pred,
        (true_fun, false_fun),
        ("true_fun", "false_fun"),
        operands if operand is _NONE else (operand,),
        Options.given(options, TreeOptions),
    )
    return chosen


@with_wrapper_options
def switch(
    index: Any,
    branches: Sequence[Callable[..., R]],
    *operands: Any,
    operand: Any = _NONE,
    **options: Unpack[TreeOptions],
) -> R:
    """Apply one of several functions of DAGs; as `jax.lax.switch`.

    Args:
        index: Which one; brought into range, as JAX does.
        branches: They get the operands, and return DAGs of one structure. What is one
            object in each result is one.
        operands: DAGs.
        operand: A single operand, by keyword.

    >>> w = jnp.float32(3.0)
    >>> out = switch(1, [lambda p: p, lambda p: pydag.dag_map(jnp.negative, p)], {"a": w, "b": w})
    >>> out["a"] is out["b"], float(out["a"])
    (True, -3.0)
    """
    if callable(branches):
        raise TypeError(
            "switch takes a sequence of functions after the index, got one function\n"
            "  Write: switch(index, [f, g, ...], *operands)."
        )
    check_callable("lax.switch: branches argument should be a sequence of callables", *branches)
    chosen: R = _choose(
        jax.lax.switch,
        index,
        branches,
        [f"branch {i}" for i in range(len(branches))],
        operands if operand is _NONE else (operand,),
        Options.given(options, TreeOptions),
    )
    return chosen
