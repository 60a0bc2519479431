# SPDX-License-Identifier: Apache-2.0
"""`vmap`: one axis for each object, and one identity table for the arguments of an axis."""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Unpack

import jax
import jax.numpy as jnp

import pydag._core as _core
from pydag.errors import SharingError
from pydag.jaxinterop.calls import first_arrays, run
from pydag.jaxinterop.content.content import Content, take_apart
from pydag.jaxinterop.content.leaves import is_array, is_like_array
from pydag.jaxinterop.content.options import Options, Roots
from pydag.jaxinterop.content.packed import unpack
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.help import with_wrapper_options
from pydag.jaxinterop.naming import Source, named, wraps
from pydag.jaxinterop.refs import Refs
from pydag.jaxinterop.treatments.arguments import spot_text
from pydag.jaxinterop.treatments.outputs import Outputs
from pydag.jaxinterop.treatments.treatments import COPIES, Question, answers_in, treatments
from pydag.jaxinterop.typed import P, R, StaticOptions
from pydag.structure.text import short_repr


def _axis(axis: Any) -> str:
    return "not mapped" if axis is None else f"mapped over axis {axis}"


def _counted(axis: Any, num_dims: int) -> Any:
    """An axis counted from the first; anything else as it is."""
    is_axis = isinstance(axis, int) and -num_dims <= axis < num_dims
    return axis % num_dims if is_axis else axis


_ADVICE = f"Give both places one axis, or one of them a copy.\n  {COPIES}"
_IN = Question("vmap in_axes", _axis, None, _ADVICE, lambda axis, x: _counted(axis, jnp.ndim(x)))
_OUT = _IN._replace(  # the function's result lacks the axis
    name="vmap out_axes", normal=lambda axis, x: _counted(axis, jnp.ndim(x) + 1)
)


@with_wrapper_options
def vmap(
    fun: Callable[P, R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
    sum_match: bool = False,
    **options: Unpack[StaticOptions],
) -> Callable[P, R]:
    """Map a function of DAGs over axes of their arrays; as `jax.vmap`.

    A shared array is mapped once, and is one array inside and in the result. Arguments with the
    same axes have one identity table. An object in arguments with different axes becomes two
    objects inside. Leaves that JAX can't trace are in the result where the function put them,
    without an axis.

    Args:
        in_axes: A tree prefix of the tuple of positional arguments; keyword arguments are mapped
            over axis 0.
        out_axes: A tree prefix of the result.
        axis_name, axis_size, spmd_axis_name, sum_match: As in JAX.

    Raises:
        SharingError: When called: two places of one object are given two axes.
        ValueError: When called: a prefix doesn't fit, or an array doesn't have its axis, or the
            sizes of axes differ.

    >>> w = jnp.arange(3.0)
    >>> out = vmap(lambda p: {"c": p["a"] * p["b"], "d": p["a"]})({"a": w, "b": w})
    >>> out["c"].tolist()
    [0.0, 1.0, 4.0]
    """
    own, source = Options.of(options), Source(fun)
    in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    for name, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        found, spec = answers_in(axes, own.namespace)
        owned = _core.module_leaves(spec)[0]  # configuration
        for x in (x for i, x in enumerate(found) if i not in owned):
            if isinstance(x, float | complex) or (is_array(x) and jnp.ndim(x) > 0):
                raise TypeError(
                    f"vmap {name} must have integers and None as leaves, got {short_repr(x)}"
                )
    if not (in_axes is None or isinstance(in_axes, int | tuple)):
        raise TypeError(
            "vmap in_axes must be an int, None, or a tuple of entries for the positional "
            f"arguments, got {short_repr(in_axes)}"
        )
    jax_options: Any = {"axis_name": axis_name, "axis_size": axis_size, "sum_match": sum_match}
    jax_options["spmd_axis_name"] = spmd_axis_name
    jax.vmap(fun, **jax_options)  # JAX checks what it is given
    outputs = Outputs(_OUT, out_axes, None, own)

    @wraps(fun)
    @jax_private.shortens_tracebacks
    def mapped(*args: Any, **kwargs: Any) -> Any:
        axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
        if len(axes) != len(args):
            raise ValueError(
                f"vmap in_axes has {len(axes)} entries for {len(args)} positional arguments: "
                f"{short_repr(in_axes)}"
            )
        axes, items = (*axes, *[0] * len(kwargs)), (*args, *kwargs.values())
        names = [spot_text(spot) for spot in (*range(len(args)), *kwargs)]
        groups = [_group(*both, own) for both in zip(axes, items, strict=True)]
        leaves, by_leaf = list[Any](), list[Any]()
        parts: list[tuple[list[int], Content, int, Roots]] = []
        for group in dict.fromkeys(groups):  # each has an identity table
            mine = [i for i, x in enumerate(groups) if x == group]
            tree, roots = tuple(items[i] for i in mine), tuple(names[i] for i in mine)
            found, content = take_apart(tree, own, roots)
            prefix = tuple(axes[i] for i in mine) if isinstance(group, tuple) else group
            by_leaf += treatments(_IN, prefix, tree, content, own, roots)
            leaves += found
            parts.append((mine, content, len(found), roots))

        def paths() -> list[str]:
            return [path for _, content, _, roots in parts for path in content.paths(roots)]

        own.check_selects((args, kwargs))
        _check_refs(leaves, by_leaf, paths)
        first = first_arrays(leaves, sum(content.spec.num_shared for _, content, *_ in parts))

        def flat(*inside: Any) -> Any:
            waiting, built = iter(inside), dict[int, Any]()
            for mine, content, count, _ in parts:
                trees: Any = content.build(islice(waiting, count))
                built.update(zip(mine, trees, strict=True))
            given = [built[i] for i in range(len(groups))]
            call = tuple(given[: len(args)]), dict(zip(kwargs, given[len(args) :], strict=True))
            result, _ = run(fun, call, own, source, starts=(first, inside))
            return outputs.pack(result, Refs(inside).origins)

        named(flat, source, paths)
        try:
            found = jax.vmap(flat, tuple(by_leaf), outputs.prefix, **jax_options)(*leaves)
        except ValueError:
            _check_sizes(leaves, by_leaf, paths(), source)
            raise
        return unpack(found, Refs(leaves))

    return mapped


def _group(axes: Any, arg: Any, options: Options) -> Any:
    """What is equal for arguments with equal axes; a single axis itself, counted from the first."""
    leaves, spec = answers_in(axes, options.namespace)
    axis, *more = leaves or [None]
    if not spec.is_leaf():
        return spec, axis, *more
    if axis is None or axis >= 0:
        return axis
    dims = {x.ndim for x in options.flatten(arg)[0] if is_array(x)}
    return _counted(axis, dims.pop()) if len(dims) == 1 else axis


def _check_refs(leaves: Sequence[Any], axes: Sequence[Any], paths: Callable[[], Any]) -> None:
    """Checks that a ref that is mapped is in the arguments of one group."""
    first: dict[int, int] = {}
    for i in jax_private.ref_positions(leaves):
        other = first.setdefault(id(leaves[i]), i)
        if other != i and (axes[i], axes[other]) != (None, None):
            raise SharingError(
                f"one ref is in arguments of different in_axes\n  {paths()[other]} is "
                f"{_axis(axes[other])}\n  {paths()[i]}, the same object, is {_axis(axes[i])}\n"
                "  Give both arguments the same in_axes, or pass the ref in one of them."
            )


def _check_sizes(leaves: Any, axes: Any, paths: Sequence[str], source: Source) -> None:
    """Raises an error with paths if a leaf hasn't its axis, or if the axes have several sizes."""
    sizes: dict[int, str] = {}
    for path, leaf, axis in zip(paths, leaves, axes, strict=True):
        if axis is None or not is_like_array(leaf):
            continue
        shape = jnp.shape(leaf)
        if not -len(shape) <= axis < len(shape):
            raise ValueError(
                f"vmap was requested to map {path} over axis {axis}, and its shape is {shape}\n"
                f"  The function is {source.text}."
            ) from None
        sizes.setdefault(shape[axis], f"{path} has size {shape[axis]} along axis {axis}")
    if len(sizes) > 1:
        raise ValueError(
            f"vmap got inconsistent sizes for array axes to be mapped: {'; '.join(sizes.values())}"
            f"\n  The function is {source.text}."
        ) from None
