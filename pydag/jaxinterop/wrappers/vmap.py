# SPDX-License-Identifier: Apache-2.0
"""`jax.vmap` for functions of DAGs."""

from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, ParamSpec, TypeVar, Unpack

import jax
import optree

import pydag._core as _core
from pydag.errors import SharingError
from pydag.jaxinterop.boundary.call import Call, flat, per_leaf
from pydag.jaxinterop.boundary.held import check_function
from pydag.jaxinterop.boundary.parted import parted_call, per_leaf_of_groups
from pydag.jaxinterop.function_cache import cached_for_function
from pydag.jaxinterop.messages.attributes import wraps
from pydag.jaxinterop.messages.naming import Source
from pydag.jaxinterop.messages.path_texts import LastStructure
from pydag.jaxinterop.messages.roots import shortened
from pydag.jaxinterop.notices.blame import blame_axes
from pydag.jaxinterop.options import StaticOptions, with_wrapper_options
from pydag.jaxinterop.packed.outputs import Outputs, unpacked
from pydag.jaxinterop.prefixes.arguments import argument_text
from pydag.jaxinterop.prefixes.treatments import (
    COPIES,
    Question,
    is_one_axis_in,
    is_one_axis_out,
    one_level,
)
from pydag.jaxinterop.refs.table import RefTable
from pydag.jaxinterop.static.option import is_array
from pydag.jaxinterop.static.untraced import Options, Untraced
from pydag.jaxinterop.updates.choice import NOTHING

from .vmap_leaves import MappedLeaves

P = ParamSpec("P")
R = TypeVar("R")


def _is_axis(axis: Any) -> bool:
    return axis is None or isinstance(axis, int)


def _describe_axis(axis: Any) -> str:
    return "not mapped" if axis is None else f"mapped over axis {axis}"


_AXES = f"Give both places one axis, or one of them a copy.\n  {COPIES}"
_IN_AXES = Question("vmap in_axes", _describe_axis, _AXES, _is_axis, is_one_axis_in)
_OUT_AXES = Question("vmap out_axes", _describe_axis, _AXES, _is_axis, is_one_axis_out)


def _check_axes(name: str, axes: Any, options: Options) -> None:
    """Checks a prefix of axes before there are arguments.

    At the place of a leaf that JAX doesn't trace there may be that leaf: text, a function, a number
    of a module. What can be nothing but a mistake is an array, or a number that isn't whole.

    Raises:
        TypeError: There is one.
    """
    leaves, spec = _core.flatten(
        axes, none_is_leaf=True, namespace=options.namespace, identity="nodes"
    )
    of_modules = frozenset(_core.module_leaves(spec)[0])
    for i, leaf in enumerate(leaves):
        is_wrong = is_array(leaf) or isinstance(leaf, float | complex)
        if is_wrong and i not in of_modules:
            raise TypeError(
                f"vmap {name} must have ints and None as leaves, but there is "
                f"{shortened(repr(leaf))}"
            )


class _Parted(NamedTuple):
    """The axes of each argument, where arguments with other axes have come apart."""

    axes: list[Any]
    groups: list[int]

    @classmethod
    def of(cls, in_axes: Any, args: Any, kwargs: Any) -> "_Parted":
        axes = list(in_axes) if isinstance(in_axes, tuple) else [in_axes] * len(args)
        axes += [0] * len(kwargs)
        return cls(axes, list(map(axes.index, axes)))


class _LastAxes:
    """The function that JAX made for the last call's structure, and the axes of its leaves.

    They hold for each call with that untraced part while nobody changes the tree of axes, unless an
    axis counts from the end: whether two such axes are one depends on the array.

    Args:
        in_axes: As given to `vmap`.
        make: Makes the function, from a call.
        namespace: Whose classes are nodes of the tree of axes, too.
    """

    def __init__(
        self,
        in_axes: Any,
        make: Callable[[Call, _Parted | None], Callable[[Call], Any]],
        namespace: str,
    ) -> None:
        self._in_axes, self._make, self._namespace = in_axes, make, namespace
        self._last: tuple[Untraced, Any, Callable[[Call], Any]] | None = None

    def function(self, call: Call, parted: _Parted | None = None) -> Callable[[Call], Any]:
        axes = _core.flatten(
            self._in_axes, none_is_leaf=True, namespace=self._namespace, identity="nodes"
        )
        last = self._last
        if last is not None and last[0] == call._untraced and last[1] == axes:
            return last[2]
        function = self._make(call, parted)
        is_from_the_end = any(isinstance(axis, int) and axis < 0 for axis in axes[0])
        self._last = None if is_from_the_end else (call._untraced, axes, function)
        return function


@with_wrapper_options
def vmap(
    fun: Callable[P, R],
    in_axes: int | Sequence[Any] | None = 0,
    out_axes: Any = 0,
    axis_name: Hashable | None = None,
    axis_size: int | None = None,
    spmd_axis_name: Hashable | tuple[Hashable, ...] | None = None,
    sum_match: bool = False,
    **options: Unpack[StaticOptions],
) -> Callable[P, R]:
    """Map a function of DAGs over axes of their arrays; as `jax.vmap`.

    A shared array is mapped once, and is one array inside and in the result. Arguments with axes of
    their own are mapped each by its own; what several of them hold is an object for each. Leaves
    that JAX can't trace are in the result where the function put them, without an axis.

    Args:
        fun: The function.
        in_axes: A tree prefix of the tuple of positional arguments; keyword arguments are mapped
            over axis 0.
        out_axes: A tree prefix of the result.
        axis_name, axis_size, spmd_axis_name, sum_match: As in JAX.

    Raises:
        SharingError: When called: two places of one array in one argument are given two axes.

    >>> w = jnp.arange(3.0)
    >>> out = vmap(lambda p: {"c": p["a"] * p["b"], "d": p["a"]})({"a": w, "b": w})
    >>> out["c"].tolist()
    [0.0, 1.0, 4.0]
    """
    check_function(fun)
    how = Options.given(options, StaticOptions)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not (in_axes is None or isinstance(in_axes, int | tuple)):
        raise TypeError(
            "vmap in_axes must be an int, None, or a tuple with an entry for each positional "
            f"argument, but it is {shortened(repr(in_axes))}"
        )
    outputs = Outputs(out_axes, None, _OUT_AXES, how)
    jax_options: dict[str, Any] = {
        "axis_name": axis_name,
        "axis_size": axis_size,
        "spmd_axis_name": spmd_axis_name,
        "sum_match": sum_match,
    }
    jax.vmap(fun, **jax_options)  # checks what can be checked without arguments
    _check_axes("in_axes", in_axes, how)
    _check_axes("out_axes", out_axes, how)
    is_one_in = one_level(in_axes, how)[2].is_leaf()
    source = Source(fun)
    _owner, last = cached_for_function(fun, ("vmap", how), lambda get: LastStructure())

    def axes_of(call: Call, parted: _Parted | None = None) -> Call:
        if parted is not None:
            return per_leaf_of_groups(call, *parted, _IN_AXES, how)
        return per_leaf(call, {"args": in_axes, "kwargs": 0}, _IN_AXES, how)

    function_of_call = flat(lambda: fun, source, outputs.pack, NOTHING)

    def mapping(function: Callable[[Any], Any], axes: Any) -> Callable[[Any], Any]:
        return jax.vmap(function, (axes,), outputs.prefix, **jax_options)

    def mapping_of(call: Call, parted: _Parted | None) -> Callable[[Call], Any]:
        axes = axes_of(call, parted)
        if not MappedLeaves.fits(call):
            return mapping(function_of_call, axes)
        return MappedLeaves(call._untraced, axes, function_of_call, source, mapping)

    def mapped_place(accessor: optree.PyTreeAccessor) -> str | None:
        root, first = accessor[0].entry, accessor[1].entry
        axis = in_axes[first] if isinstance(in_axes, tuple) and root == 0 else in_axes
        return None if axis is None else argument_text(accessor)

    over_one_axis = mapping(function_of_call, in_axes) if is_one_in else None
    last_axes = _LastAxes(in_axes, mapping_of, how.namespace)

    @wraps(fun)
    def mapped(*args: P.args, **kwargs: P.kwargs) -> R:
        has_one_axis = is_one_in and (not kwargs or in_axes == 0)
        call = (Call.of if has_one_axis else Call.with_separate_arrays)(args, kwargs, how)
        call._untraced.check_not_lazy("mapped over", mapped_place)
        last.spec = call._untraced.spec
        function, parted = over_one_axis, None
        if function is None or not has_one_axis:
            function = None
            with suppress(SharingError):
                function = last_axes.function(call)
            if function is None:  # by argument, there may be one axis for each
                parted = _Parted.of(in_axes, args, kwargs)
                call = parted_call(call, parted.groups)
                function = last_axes.function(call, parted)
        try:
            result: R = unpacked(function(call), table=RefTable.of(call._leaves))
        except ValueError as error:
            blame_axes(error, source, call.with_paths(), axes_of(call, parted)._leaves)
            raise
        return result

    return mapped
