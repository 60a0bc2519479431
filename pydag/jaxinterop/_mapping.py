# SPDX-License-Identifier: Apache-2.0
"""`jax.vmap` and `jax.shard_map` for functions of DAGs."""

import functools
import inspect
from collections.abc import Callable, Hashable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, cast

import jax
from jax.sharding import PartitionSpec

from pydag.typing import Identity

from ._call import Call, flat
from ._dag import rebuilt
from ._form import Options
from ._kept import name_of
from ._outputs import Outputs
from ._treatment import Question, distinct, treatments

# JAX gives no other name to the default: specs as the arguments are sharded.
_INFER: Any = inspect.signature(jax.shard_map).parameters["in_specs"].default


def _describe_axis(axis: Any) -> str:
    return "not mapped" if axis is None else f"mapped over axis {axis}"


_AXES = "Give both places one axis, or one of them a copy."
_IN_AXES = Question("vmap in_axes", _describe_axis, _AXES)
_OUT_AXES = Question("vmap out_axes", _describe_axis, _AXES)
_EVERYWHERE: Any = cast(Any, PartitionSpec)()
_SPECS = "Give both places one spec, or one of them a copy."
_IN_SPECS = Question("shard_map in_specs", lambda spec: f"given {spec}", _SPECS)
_OUT_SPECS = Question("shard_map out_specs", lambda spec: f"given {spec}", _SPECS)


def per_leaf(call: Call, prefixes: dict[str, Any], question: Question, options: Options) -> Call:
    """What the prefixes say about each leaf of a call."""
    args, kwargs = call.tree
    named = {"args": args, "kwargs": kwargs} if kwargs else {"args": args}
    given = treatments(named, {root: prefixes[root] for root in named}, question, options)
    return rebuilt(call._form, [given[i] for i in call._form.traced_positions()], Call)


def _check_axes(name: str, axes: Any, options: Options) -> None:
    wrong = [axis for axis in distinct(axes, options) if not isinstance(axis, int | None)]
    if wrong:
        raise TypeError(
            f"vmap {name} must be an integer, None, or a tree of these, but there is {wrong[0]!r}"
        )


def vmap(
    fun: Callable[..., Any],
    in_axes: int | Sequence[Any] | None = 0,
    out_axes: Any = 0,
    axis_name: Hashable | None = None,
    axis_size: int | None = None,
    spmd_axis_name: Hashable | tuple[Hashable, ...] | None = None,
    sum_match: bool = False,
    *,
    namespace: str = "",
    identity: Identity = "all",
) -> Callable[..., Any]:
    """Map a function of DAGs over axes of their arrays; as `jax.vmap`.

    A shared array is mapped once, and is one array inside and in the result. Leaves that JAX can't
    trace are in the result where the function put them, without an axis.

    Args:
        in_axes: A tree prefix of the tuple of positional arguments; keyword arguments are mapped
            over axis 0.
        out_axes: A tree prefix of the result.

    Raises:
        SharingError: When called: two places of one array are given two axes.

    >>> w = jnp.arange(3.0)
    >>> out = vmap(lambda p: {"c": p["a"] * p["b"], "d": p["a"]})({"a": w, "b": w})
    >>> out["c"].tolist()
    [0.0, 1.0, 4.0]
    """
    options = Options(namespace, identity)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    outputs = Outputs(out_axes, None, _OUT_AXES, options)
    jax_options: dict[str, Any] = {
        "axis_name": axis_name,
        "axis_size": axis_size,
        "spmd_axis_name": spmd_axis_name,
        "sum_match": sum_match,
    }
    jax.vmap(fun, **jax_options)  # checks what can be checked without arguments
    _check_axes("in_axes", in_axes, options)
    _check_axes("out_axes", out_axes, options)

    @functools.wraps(fun, updated=())
    def mapped(*args: Any, **kwargs: Any) -> Any:
        call = Call.of(args, kwargs, options)
        axes = per_leaf(call, {"args": in_axes, "kwargs": 0}, _IN_AXES, options)
        function = flat(lambda: fun, name_of(fun), outputs.pack)
        return jax.vmap(function, (axes,), outputs.prefix, **jax_options)(call).tree

    return mapped


def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = _INFER,
    mesh: Any = None,
    axis_names: AbstractSet[Hashable] = frozenset(),
    check_vma: bool = True,
    namespace: str = "",
    identity: Identity = "all",
) -> Any:
    """Map a function of DAGs over the shards of their arrays; as `jax.shard_map`.

    Args:
        f: Left out, `shard_map` returns a decorator.
        in_specs: A tree prefix of the tuple of arguments.
        out_specs: A tree prefix of the result.

    Raises:
        SharingError: When called: two places of one array are given two specs.

    >>> mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    >>> spec = jax.sharding.PartitionSpec("x")
    >>> double = lambda p: pydag.dag_map(lambda x: 2 * x, p)
    >>> w = jnp.arange(3.0)
    >>> out = shard_map(double, mesh=mesh, in_specs=spec, out_specs=spec)({"a": w, "b": w})
    >>> out["a"] is out["b"], out["a"].tolist()
    (True, [0.0, 2.0, 4.0])
    """
    options = Options(namespace, identity)
    jax_options = {"mesh": mesh, "axis_names": axis_names, "check_vma": check_vma}
    if f is None:
        return functools.partial(
            shard_map,
            out_specs=out_specs,
            in_specs=in_specs,
            **jax_options,
            **options._asdict(),
        )
    fun = f
    outputs = Outputs(out_specs, _EVERYWHERE, _OUT_SPECS, options)

    @functools.wraps(fun, updated=())
    def mapped(*args: Any) -> Any:
        call = Call.of(args, {}, options)
        specs = in_specs
        if specs is not _INFER:
            given = tuple(specs) if isinstance(specs, list) else specs
            specs = (per_leaf(call, {"args": given, "kwargs": None}, _IN_SPECS, options),)
        function, more = flat(lambda: fun, name_of(fun), outputs.pack), dict(jax_options)
        more.update(in_specs=specs, out_specs=outputs.prefix)
        return jax.shard_map(function, **more)(call).tree

    return mapped
