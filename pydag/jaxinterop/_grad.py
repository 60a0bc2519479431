# SPDX-License-Identifier: Apache-2.0
"""`jax.grad` and `jax.value_and_grad` for functions of DAGs."""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pydag.typing import Identity, Leaf

from ._arguments import (
    Args,
    Kwargs,
    argument_text,
    as_numbers,
    check_one_treatment,
    joined,
    owners,
)
from ._dag import Dag
from ._form import Form, Options, take_apart


def _wanted(numbers: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Argument numbers counted from the front."""
    for number in numbers:
        if not -count <= number < count:
            raise TypeError(
                f"can't differentiate by the positional argument {number}: the function was "
                f"called with {count} positional arguments"
            )
    return tuple(number % count for number in numbers)


def _differentiated(
    args: Args, kwargs: Kwargs, wanted: frozenset[int], form: Form, options: Options
) -> list[int]:
    """The positions, among the traced leaves, of those that are differentiated by."""
    if len(wanted) == len(args) and not kwargs:
        return list(range(form.spec.num_leaves - len(form.positions)))
    check_one_treatment(
        args,
        kwargs,
        lambda spot: "differentiated" if spot in wanted else "not differentiated",
        "Differentiate by both arguments, or give one of them a copy.",
        options,
    )
    skipped = frozenset(form.positions)
    spots = [x for i, x in enumerate(owners(args, kwargs, options)) if i not in skipped]
    return [i for i, spot in enumerate(spots) if spot in wanted]


def _pair(result: Any) -> tuple[Any, Any]:
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(
            "with has_aux=True the function must return a pair (value, aux), a tuple of two, "
            f"but it returned an object of type {type(result).__name__}"
        )
    return result


def _say_where(
    error: TypeError, args: Args, kwargs: Kwargs, positions: Sequence[int], options: Options
) -> None:
    """Adds the place of the first leaf that has no gradient, if that may be what JAX refused."""
    leaves, spec = options.flatten((args, kwargs))
    for position in positions:
        dtype = getattr(leaves[position], "dtype", type(leaves[position]))
        if not jnp.issubdtype(dtype, np.inexact):
            where = argument_text(args, kwargs, spec.paths()[position], options)
            error.add_note(f"The leaf {where} is of type {dtype}.")
            return


def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Iterable[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
    *,
    namespace: str = "",
    identity: Identity = "all",
) -> Callable[..., tuple[Any, Any]]:
    """A function that returns the value of `fun` and its gradient; as `jax.value_and_grad`.

    The gradient of a shared array is the sum over all its uses, and stands, shared, wherever the
    array stood, in one argument or in several. Leaves that JAX can't trace stand in the gradient
    where they stood, so that `pydag.dag_map(update, model, gradient)` fits.

    Args:
        argnums: The positional arguments to differentiate by: an int, or several.
        has_aux: Whether `fun` returns a pair of a value and something else, which is passed on;
            the two may share.

    Raises:
        SharingError: When called: an array is in an argument that is differentiated and in one
            that isn't.

    >>> w = jnp.float32(3.0)
    >>> value, gradient = value_and_grad(lambda p: p["a"] * p["b"])({"a": w, "b": w})
    >>> float(gradient["a"]), gradient["a"] is gradient["b"]
    (6.0, True)
    """
    numbers = as_numbers(argnums)
    options = Options(namespace, identity)
    jax_options: dict[str, Any] = {"holomorphic": holomorphic, "allow_int": allow_int}
    if reduce_axes:
        jax_options["reduce_axes"] = reduce_axes

    @functools.wraps(fun, updated=())
    def value_and_gradient(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        wanted = _wanted(numbers, len(args))
        form, leaves = take_apart((args, kwargs), options)
        picked = _differentiated(args, kwargs, frozenset(wanted), form, options)
        in_order = sorted(set(wanted))
        gradient_form, _ = take_apart(tuple(args[i] for i in in_order), options)

        def flat(by: Sequence[Leaf], others: Sequence[Leaf]) -> tuple[Any, Dag]:
            args, kwargs = form.build(joined(picked, by, others))
            result = fun(*args, **kwargs)
            value = _pair(result)[0] if has_aux else result
            return value, Dag(result, namespace=namespace, identity=identity)

        chosen = frozenset(picked)
        by = [leaves[i] for i in picked]
        others = [leaf for i, leaf in enumerate(leaves) if i not in chosen]
        flat.__name__ = flat.__qualname__ = getattr(fun, "__name__", type(fun).__name__)
        differentiate = jax.value_and_grad(flat, 0, has_aux=True, **jax_options)
        try:
            (_, result), gradients = differentiate(by, others)
        except TypeError as error:
            if not allow_int:
                _say_where(error, args, kwargs, form.all_positions(picked), options)
            raise
        trees = dict(zip(in_order, gradient_form.build(gradients), strict=True))
        gradient = tuple(trees[i] for i in wanted)
        return result.tree, gradient if isinstance(argnums, Iterable) else gradient[0]

    return value_and_gradient


def grad(
    fun: Callable[..., Any],
    argnums: int | Iterable[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
    *,
    namespace: str = "",
    identity: Identity = "all",
) -> Callable[..., Any]:
    """A function that returns the gradient of `fun`; as `jax.grad`, and as `value_and_grad` here.

    Returns:
        With `has_aux`, a function that returns the gradient and what `fun` passed on.

    >>> w = jnp.float32(3.0)
    >>> gradient = grad(lambda p: p["a"] * p["b"])({"a": w, "b": w})
    >>> float(gradient["a"]), gradient["a"] is gradient["b"]
    (6.0, True)
    """
    both = value_and_grad(
        fun,
        argnums,
        has_aux,
        holomorphic,
        allow_int,
        reduce_axes,
        namespace=namespace,
        identity=identity,
    )

    @functools.wraps(fun, updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return gradient
