# SPDX-License-Identifier: Apache-2.0
"""`cond` and `switch`: the results of all branches have one structure, and one sharing."""

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

import jax

import pydag._core as _core
from pydag.errors import SharingError
from pydag.jaxinterop.calls.call import Call
from pydag.jaxinterop.calls.run import run
from pydag.jaxinterop.content.content import Content
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.notices.difference import difference
from pydag.jaxinterop.notices.lost_tie import unfold_alike
from pydag.jaxinterop.notices.source import Source, named
from pydag.jaxinterop.options import with_wrapper_options
from pydag.jaxinterop.packed.packed import Packed, pack, parts_of
from pydag.jaxinterop.treatments.arguments import check_function
from pydag.jaxinterop.typed import R
from pydag.public.arguments import MISSING
from pydag.typing import Dag, Identity, Leaf, Where

from .carried import kept_body

_ARRAY = -1  # where a result of a branch holds no ref of the operands


@with_wrapper_options
def cond(
    pred: Any,
    true_fun: Callable[..., R],
    false_fun: Callable[..., R],
    *operands: Dag,
    operand: Dag = MISSING,
    namespace: str = "",
    identity: Identity = "all",
    static: Where | None = None,
) -> R:
    """Apply one of two functions to DAGs; as `jax.lax.cond`.

    One identity table spans the operands. The results of both branches share alike. Each is traced
    once.

    Args:
        pred: Which one: True for the first.
        true_fun, false_fun: Functions of the operands, whose results have one structure.
        operands: Their arguments.
        operand: The one argument, by name, as in JAX.

    Raises:
        SharingError: The results share differently.
        TypeError: The results have different structures or types.

    >>> w = jnp.float32(2.0)
    >>> double = lambda p: pydag.dag_map(lambda x: 2 * x, p)
    >>> out = cond(w > 1, double, lambda p: p, {"a": w, "b": w})
    >>> out["a"] is out["b"], float(out["a"])
    (True, 4.0)
    """
    options = Options(namespace, identity, static)
    operands = _operands(operands, operand)
    chosen: R = _branched(
        "cond",
        [true_fun, false_fun],
        operands,
        options,
        lambda flats, arrays: jax.lax.cond(pred, *flats, *arrays),
    )
    return chosen


@with_wrapper_options
def switch(
    index: Any,
    branches: Sequence[Callable[..., R]],
    *operands: Dag,
    operand: Dag = MISSING,
    namespace: str = "",
    identity: Identity = "all",
    static: Where | None = None,
) -> R:
    """Apply one of several functions to DAGs; as `jax.lax.switch`, see `cond`.

    Args:
        index: Which one.
        branches: Functions of the operands, whose results have one structure and share alike.
        operands: Their arguments.
        operand: The one argument, by name, as in JAX.

    Raises:
        SharingError, TypeError: As `cond`.

    >>> w = jnp.float32(2.0)
    >>> triple = lambda p: pydag.dag_map(lambda x: 3 * x, p)
    >>> out = switch(1, [lambda p: p, triple], {"a": w, "b": w})
    >>> out["a"] is out["b"], float(out["a"])
    (True, 6.0)
    """
    options = Options(namespace, identity, static)
    operands = _operands(operands, operand)
    if callable(branches):
        raise TypeError(
            "switch takes a sequence of functions after the index, got one function\n"
            "  Write: switch(index, [f, g, ...], *operands)"
        )
    chosen: R = _branched(
        "switch",
        list(branches),
        operands,
        options,
        lambda flats, arrays: jax.lax.switch(index, flats, *arrays),
    )
    return chosen


def _operands(operands: tuple[Dag, ...], operand: Dag) -> tuple[Dag, ...]:
    if operand is MISSING:
        return operands
    if operands:
        raise TypeError("operand= is one operand, and there are others by position: pass all so")
    return (operand,)


def _branched(
    what: str,
    functions: Sequence[Callable[..., Any]],
    operands: tuple[Dag, ...],
    options: Options,
    run_branches: Callable[[list[Any], Sequence[Leaf]], Any],
) -> Dag:
    for fun in functions:
        check_function(fun)
    call = Call(operands, {}, options)
    options.check_selects(call.tree)
    refs = call.origins
    shape = call.without_arrays()

    def branch(get: Callable[[], Any]) -> Any:
        source = Source(get())

        def flat(*arrays: Leaf) -> Any:
            result, _ = run(get(), shape.build(arrays), options, source)
            return pack(result, options, refs, by_tuples=True)

        return named(flat, source, shape.paths)

    key = what, call.content, options.key()
    flats = [kept_body(fun, key, refs, branch) for fun in functions]
    try:
        found = run_branches(flats, call.arrays)
    except TypeError as error:
        if "must have" in str(error):  # JAX compares the results of branches
            _explain(what, functions, [jax.eval_shape(flat, *call.arrays) for flat in flats], error)
        raise
    return call.finish(found)


def _explain(
    what: str, functions: Sequence[Callable[..., Any]], results: Sequence[Any], error: TypeError
) -> None:
    """Says where the results of branches differ in more than arrays, if they do."""
    names = [f"branches[{i}]" for i in range(len(results))]
    if what == "cond":
        names = ["true_fun", "false_fun"]
    names = [f"{name}, {Source(f).text}" for name, f in zip(names, functions, strict=True)]
    first, *others = map(_content, results)
    for number, other in enumerate(others, 1):
        shown = difference(first[0], other[0], "result") or _other_refs(first, other)
        if not shown:
            continue
        specs = first[0].spec, other[0].spec
        is_sharing = specs[0] != specs[1] and unfold_alike(*specs)
        cure = (
            "Copy what only starts equal: pj.tree.copy(...); or tie it in all branches."
            if is_sharing
            else "Return the same structure from all branches."
        )
        kind: type[Exception] = SharingError if is_sharing else TypeError
        raise kind(
            f"the results of the branches of {what} must be structured alike\n"
            f"  (first: {names[0]}; second: {names[number]})\n{shown}\n  {cure}"
        ) from error


def _content(result: Any) -> tuple[Content, Sequence[int]]:
    """The content of a result, and the origin of each traced leaf."""
    if type(result) is not Packed:
        return Content(_core.structure(result), (), ()), ()
    _, content, sources = parts_of(result)
    return content, sources or ()


def _other_refs(first: tuple[Content, Sequence[int]], other: tuple[Content, Sequence[int]]) -> str:
    """Where two results of one content hold other refs of the operands."""
    pairs = zip_longest(first[1], other[1], fillvalue=_ARRAY)
    paths = [path for path, (a, b) in zip(first[0].paths("result"), pairs, strict=False) if a != b]
    return "".join(f"{path}\n  first and second: not the same ref" for path in paths[:1])
