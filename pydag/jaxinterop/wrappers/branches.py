# SPDX-License-Identifier: Apache-2.0
"""`cond` and `switch`: the results of all branches have one structure, and share what all share."""

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any, Unpack, cast

import jax

from pydag._core import PyDagSpec
from pydag.jaxinterop.calls import Arguments
from pydag.jaxinterop.compiled.kept import kept_function
from pydag.jaxinterop.content.content import Content
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.packed import Origins, pack, parts_of
from pydag.jaxinterop.help import with_wrapper_options
from pydag.jaxinterop.naming import Source
from pydag.jaxinterop.notices.difference import difference
from pydag.jaxinterop.treatments.arguments import check_function
from pydag.jaxinterop.typed import R, StaticOptions
from pydag.public.compiled import MISSING
from pydag.structure.listing import Listing
from pydag.structure.reshared import matched
from pydag.typing import Dag

_Form = tuple[Content, Sequence[int] | None]
"""The content of the result of a branch, and the origin of each traced leaf."""

_Branch = tuple[Callable[..., Any], list[_Form]]
"""What JAX is given for a branch, and the form of its result, once it is traced."""


@with_wrapper_options
def cond(
    pred: Any,
    true_fun: Callable[..., R],
    false_fun: Callable[..., R],
    *operands: Dag,
    operand: Dag = MISSING,
    **options: Unpack[StaticOptions],
) -> R:
    """Apply one of two functions to DAGs; as `jax.lax.cond`.

    One identity table spans the operands. The results of both branches must have the same
    structure; what is one object in both of them is one object in the result. Each branch is traced
    once, or twice if the results share differently.

    Args:
        pred: True selects the first function.
        true_fun, false_fun: Functions of the operands.

    Raises:
        TypeError: The results have different structures or types.

    >>> w = jnp.float32(2.0)
    >>> double = lambda p: pydag.dag_map(lambda x: 2 * x, p)
    >>> out = cond(w > 1, double, lambda p: p, {"a": w, "b": w})
    >>> out["a"] is out["b"], float(out["a"])
    (True, 4.0)
    """
    return cast(R, _branched("cond", pred, [true_fun, false_fun], operands, operand, options))


@with_wrapper_options
def switch(
    index: Any,
    branches: Sequence[Callable[..., R]],
    *operands: Dag,
    operand: Dag = MISSING,
    **options: Unpack[StaticOptions],
) -> R:
    """Apply one of several functions to DAGs; as `jax.lax.switch`, see `cond`.

    Args:
        index: Selects the function.
        branches: Functions of the operands, whose results have the same structure.

    >>> w = jnp.float32(2.0)
    >>> triple = lambda p: pydag.dag_map(lambda x: 3 * x, p)
    >>> out = switch(1, [lambda p: p, triple], {"a": w, "b": w})
    >>> out["a"] is out["b"], float(out["a"])
    (True, 6.0)
    """
    if callable(branches):
        raise TypeError(
            "switch takes a sequence of functions after the index, got one function\n"
            "  Write: switch(index, [f, g, ...], *operands)"
        )
    return cast(R, _branched("switch", index, list(branches), operands, operand, options))


def _branched(
    what: str,
    which: Any,
    functions: Sequence[Callable[..., Any]],
    operands: tuple[Dag, ...],
    operand: Dag,
    given: StaticOptions,
) -> Dag:
    if operand is not MISSING:
        if operands:
            raise TypeError(
                "operand= is given, and there are others by position: pass all by position"
            )
        operands = (operand,)
    for fun in functions:
        check_function(fun)
    options = Options.of(given)
    call = Arguments(operands, {}, options, passes_refs=False)
    avals = tuple(map(jax.typeof, call.leaves))

    def kept(sharings: tuple[PyDagSpec, ...]) -> list[_Branch]:
        def make(get: Callable[[], Any]) -> _Branch:
            forms: list[_Form] = []

            def packed(result: Dag, origins: Origins) -> Any:
                found = pack(result, options, origins, by_tuples=True, others=sharings)
                forms[:] = [parts_of(found)[1:]]
                return found

            source: Any = Source(get())
            if sharings:  # it is traced again, and has warned before
                source.warn = lambda *_: None
            return call.function(get, source, packed), forms

        key = what, call.content, avals, sharings
        return [kept_function(fun, key, call.refs, options, make) for fun in functions]

    sharings = _sharings(kept(()))  # known where an earlier call has traced the branches
    while True:
        branches = kept(sharings)
        flats = [flat for flat, _ in branches]
        try:
            if what == "cond":
                return call.finish(jax.lax.cond(which, *flats, *call.leaves))
            return call.finish(jax.lax.switch(which, flats, *call.leaves))
        except TypeError as error:
            if "must have" not in str(error):  # JAX compares the results of branches
                raise
            sharings = _sharings(branches)
            if not sharings:
                _explain(what, functions, [form for _, forms in branches for form in forms], error)
                raise


def _sharings(branches: Sequence[_Branch]) -> tuple[PyDagSpec, ...]:
    """The structures of the results of branches, if they differ in sharing alone."""
    specs = [content.spec for _, forms in branches for content, _ in forms]
    if len(specs) < len(branches) or all(spec == specs[0] for spec in specs):
        return ()
    listings = list(map(Listing.of, specs))
    unfold_alike = all(matched(listings[0], other) is not None for other in listings)
    return tuple(specs) if unfold_alike else ()


def _explain(
    what: str, functions: Sequence[Callable[..., Any]], forms: Sequence[_Form], error: TypeError
) -> None:
    """Raises an error with the place, if any, where results differ in more than arrays."""
    names = [f"branches[{i}]" for i in range(len(functions))]
    if what == "cond":
        names = ["true_fun", "false_fun"]
    names = [f"{name}, {Source(f).text}" for name, f in zip(names, functions, strict=True)]
    for number, other in enumerate(forms[1:], 1):
        shown = difference(forms[0][0], other[0], "result") or _other_refs(forms[0], other)
        if shown:
            raise TypeError(
                f"the results of the branches of {what} must be structured alike\n"
                f"  (first: {names[0]}; second: {names[number]})\n{shown}\n"
                "  Return the same structure from all branches."
            ) from error


def _other_refs(first: _Form, other: _Form) -> str:
    """Where two results with the same content hold different refs of the operands."""
    pairs = zip_longest(first[1] or (), other[1] or (), fillvalue=-1)  # where there is no ref
    paths = [path for path, (a, b) in zip(first[0].paths("result"), pairs, strict=False) if a != b]
    return "".join(f"{path}\n  first and second: not the same ref" for path in paths[:1])
