# SPDX-License-Identifier: Apache-2.0
"""`jax.vjp`, `jax.jvp` and `jax.linearize` for functions of DAGs."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal, TypeVar, Unpack, cast, overload

import jax

from pydag.errors import SharingError
from pydag.jaxinterop.boundary.held import anew
from pydag.jaxinterop.boundary.match import matched
from pydag.jaxinterop.boundary.parted import parted_arguments
from pydag.jaxinterop.messages.naming import ARGUMENT_TUPLE, Source, named
from pydag.jaxinterop.messages.roots import place_text
from pydag.jaxinterop.notices.blame import blame_tangent
from pydag.jaxinterop.notices.lost_update import tell_lost
from pydag.jaxinterop.options import TreeOptions, with_wrapper_options
from pydag.jaxinterop.packed.dag import Dag, InnerDag, Role, dag_of, rebuilt
from pydag.jaxinterop.packed.derivatives import (
    Structures,
    derivative,
    tangents_for,
    without_float0,
)
from pydag.jaxinterop.packed.given import GivenTree
from pydag.jaxinterop.prefixes.flags import flags
from pydag.jaxinterop.refs.table import RefTable
from pydag.jaxinterop.static.untraced import Options

from .checks import pair
from .linear_map import LinearMap, takes_grad_refs, types_of

R = TypeVar("R")


def _point(primals: Sequence[Any], options: Options) -> InnerDag:
    """The Dag of primals, of which arrays are variables of their own."""
    by = dag_of(tuple(options.separated(primals)), options, "primals", Role.ARGUMENT)
    text = partial(place_text, roots="primals")
    by._untraced.check_not_lazy("differentiated by", text)
    return by


def _with_separate_primals(point: InnerDag, in_nzs: Any) -> InnerDag:
    """The Dag of primals, each with objects of its own where flags differ from one to another."""
    is_one = not isinstance(in_nzs, tuple | list) or all(flag == in_nzs[0] for flag in in_nzs)
    return point if is_one or not point.spec.num_shared else parted_arguments(point)


def _flagged(point: InnerDag, by: InnerDag, options: Options, **given: Any) -> dict[str, Any]:
    """Options of JAX's that are trees of booleans, for the Dag of primals; without defaults.

    Args:
        by: The Dag that JAX gets for the primals.
    """
    found: dict[str, Any] = {}
    for name, prefix in given.items():
        if prefix is not None and prefix is not True:
            each = flags(name, prefix, point.tree, options)
            found[name] = (tuple(each[i] for i in by._untraced.traced_positions()),)
    return found


def _flat(
    fun: Callable[..., Any],
    has_aux: bool,
    options: Options,
    table: RefTable,
    is_given_refs: bool = False,
) -> Callable[[Dag], Any]:
    def flat(primals: Dag) -> Any:
        shown = table.show(primals)
        inside = RefTable.of(primals._leaves) if is_given_refs else table
        given = GivenTree(shown._untraced, shown._leaves, "args")
        result = fun(*given.tree)
        tell_lost((given,), result, fun)
        if not has_aux:
            return inside.hide(dag_of(result, options))
        value, aux = pair(result)
        return inside.hide(dag_of(value, options)), inside.hide(dag_of(aux, options))

    return named(flat, Source(fun), ARGUMENT_TUPLE)


@overload
def vjp(
    fun: Callable[..., R],
    *primals: Any,
    has_aux: Literal[False] = False,
    reduce_axes: Sequence[Any] = (),
    saveable_args: Any = True,
    in_nzs: Any = None,
    **options: Unpack[TreeOptions],
) -> tuple[R, LinearMap]: ...
@overload
def vjp(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool,
    reduce_axes: Sequence[Any] = (),
    saveable_args: Any = True,
    in_nzs: Any = None,
    **options: Unpack[TreeOptions],
) -> tuple[Any, ...]: ...
@with_wrapper_options
def vjp(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool = False,
    reduce_axes: Sequence[Any] = (),
    saveable_args: Any = True,
    in_nzs: Any = None,
    **options: Unpack[TreeOptions],
) -> Any:
    """The value of a function of DAGs, and its pullback; as `jax.vjp`.

    The pullback takes a cotangent, structured and shared as the value is, and gives a tuple of
    cotangents, structured and shared as the primals are: that of a shared array is the sum over its
    uses, and stands at all of its places. The same goes for the one that it takes. None stands for
    integers, text and whatever else has no derivative; in what is given, anything may.

    Args:
        fun: The function.
        primals: Its arguments.
        has_aux: Whether `fun` returns a pair of a value and something else, which is passed on.
        reduce_axes: As in the releases of JAX that have it.
        saveable_args: With newer JAX: a tree of booleans, a prefix of the tuple of primals but for
            the types of containers. What isn't saved has to be put into the pullback's `args_res`.
            An array at several places is saved if that is so for all of them.
        in_nzs: With newer JAX: such a tree, which says what is differentiated by.

    Returns:
        `(value, pullback)`; with `has_aux`, `(value, pullback, aux)`. The pullback is a pytree, so
        a compiled function may return it.

    >>> w = jnp.float32(3.0)
    >>> value, pullback = vjp(lambda p: p["a"] * p["b"], {"a": w, "b": w})
    >>> [cotangent] = pullback(jnp.float32(1.0))
    >>> float(cotangent["a"]), cotangent["a"] is cotangent["b"]
    (6.0, True)
    """
    how = Options.given(options, TreeOptions)
    fun = anew(fun, how.namespace)
    point, table = _with_separate_primals(_point(primals, how), in_nzs), RefTable()
    hidden = table.hide(point, adds=True)
    by = point if takes_grad_refs(table.refs) else hidden
    jax_options = _flagged(point, by, how, saveable_args=saveable_args, in_nzs=in_nzs)
    if reduce_axes:
        jax_options["reduce_axes"] = reduce_axes
    value, pullback, *aux = cast(Any, jax.vjp)(
        _flat(fun, has_aux, how, table, by is not hidden),
        by,
        has_aux=has_aux,
        **jax_options,
    )
    linear = LinearMap.at(pullback, value, "cotangent", by)
    return table.show(value).tree, linear, *(table.show(x).tree for x in aux)


@overload
def jvp(
    fun: Callable[..., R],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[False] = False,
    **options: Unpack[TreeOptions],
) -> tuple[R, R]: ...
@overload
def jvp(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool,
    **options: Unpack[TreeOptions],
) -> tuple[Any, ...]: ...
@with_wrapper_options
def jvp(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
    **options: Unpack[TreeOptions],
) -> Any:
    """The value of a function of DAGs, and its tangent; as `jax.jvp`.

    Args:
        fun: The function.
        primals: A tuple or list of its arguments.
        tangents: Structured as the primals are. They may share more, and must not share less. In
            the places of leaves that have no derivative there may be anything, such as None, which
            stands there in the tangent that comes back.
        has_aux: Whether `fun` returns a pair of a value and something else, which is passed on.

    Raises:
        SharingError: Tangents have different objects where one of the primals has one. (What
            several primals hold comes apart where they have different tangents.)
        TypeError: Tangents are structured in another way than the primals, or of other types.

    >>> w, one = jnp.float32(3.0), jnp.float32(1.0)
    >>> value, tangent = jvp(lambda p: p[0] * p[1], ([w, w],), ([one, one],))
    >>> float(value), float(tangent)
    (9.0, 6.0)
    """
    for name, trees in (("primals", primals), ("tangents", tangents)):
        if not isinstance(trees, tuple | list):
            raise TypeError(
                f"{name} must be a tuple or a list, with a tree for each argument, but it is of "
                f"type {type(trees).__name__}"
            )
    if type(primals) is not type(tangents):
        raise TypeError(
            "primals and tangents must be both tuples or both lists, but they are of types "
            f"{type(primals).__name__} and {type(tangents).__name__}"
        )
    how = Options.given(options, TreeOptions)
    fun = anew(fun, how.namespace)
    point, table = _point(primals, how), RefTable()
    by = table.hide(point, adds=True)
    leaves = None
    with suppress(SharingError):
        leaves = matched(by._untraced, tuple(tangents), "the tuple of the tangents", "tangents")
    if leaves is None:  # by argument, there may be one tangent for each
        by = table.hide(parted_arguments(point), adds=True)
        leaves = matched(by._untraced, tuple(tangents), "the tuple of the tangents", "tangents")
    along = rebuilt(by._untraced, tangents_for(types_of(by), leaves), InnerDag)
    try:
        value, tangent, *aux = jax.jvp(
            _flat(fun, has_aux, how, table), (by,), (along,), has_aux=has_aux
        )
    except (TypeError, ValueError) as error:
        blame_tangent(error, by.with_paths("primals"), along.with_paths("tangents"))
        raise
    value = table.show(value)
    structures = Structures.of(value.tree, value._untraced)
    along_result = derivative(tangent._untraced, without_float0(tangent._leaves), structures)
    return value.tree, along_result, *(table.show(x).tree for x in aux)


@overload
def linearize(
    fun: Callable[..., R],
    *primals: Any,
    has_aux: Literal[False] = False,
    in_nzs: Any = None,
    **options: Unpack[TreeOptions],
) -> tuple[R, LinearMap]: ...
@overload
def linearize(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool,
    in_nzs: Any = None,
    **options: Unpack[TreeOptions],
) -> tuple[Any, ...]: ...
@with_wrapper_options
def linearize(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool = False,
    in_nzs: Any = None,
    **options: Unpack[TreeOptions],
) -> Any:
    """The value of a function of DAGs, and its linear map at the primals; as `jax.linearize`.

    Args:
        fun: The function.
        primals: Its arguments.
        has_aux: Whether `fun` returns a pair of a value and something else, which is passed on.
        in_nzs: As in `vjp`.

    Returns:
        `(value, map)`; with `has_aux`, `(value, map, aux)`. The map takes a tangent for each
        primal, as `jvp` does, and is a pytree. What several primals hold comes apart, since each
        may have its own tangent.

    >>> w, one = jnp.float32(3.0), jnp.float32(1.0)
    >>> value, pushforward = linearize(lambda p: p[0] * p[1], [w, w])
    >>> float(pushforward([one, one]))
    6.0
    """
    how = Options.given(options, TreeOptions)
    fun = anew(fun, how.namespace)
    point, table = _point(primals, how), RefTable()
    if point.spec.num_shared and len(primals) > 1:
        point = parted_arguments(point)
    by = table.hide(point, adds=True)
    jax_options = _flagged(point, by, how, in_nzs=in_nzs)
    value, pushforward, *aux = cast(Any, jax.linearize)(
        _flat(fun, has_aux, how, table), by, has_aux=has_aux, **jax_options
    )
    value = table.show(value)
    linear = LinearMap.at(pushforward, by, "tangents", value)
    return value.tree, linear, *(table.show(x).tree for x in aux)
