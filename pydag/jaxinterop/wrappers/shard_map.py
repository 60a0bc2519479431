# SPDX-License-Identifier: Apache-2.0
"""`jax.shard_map` for functions of DAGs."""

import functools
import inspect
from collections.abc import Callable, Hashable
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar, Unpack, cast, overload

import jax
from jax.sharding import PartitionSpec

from pydag.jaxinterop.boundary.call import Call, per_leaf
from pydag.jaxinterop.boundary.held import anew
from pydag.jaxinterop.messages.attributes import wraps
from pydag.jaxinterop.messages.naming import COUNTED, Source, named
from pydag.jaxinterop.options import TreeOptions, with_wrapper_options
from pydag.jaxinterop.packed.dag import rebuilt
from pydag.jaxinterop.packed.outputs import Outputs, unpacked
from pydag.jaxinterop.packed.packed import Packed
from pydag.jaxinterop.prefixes.treatments import Question, is_one_sharding
from pydag.jaxinterop.refs.table import RefTable
from pydag.jaxinterop.static.untraced import Options, Untraced
from pydag.jaxinterop.structure.groups import grouped

P = ParamSpec("P")
R = TypeVar("R")

# JAX gives no other name to the default: specs as the arguments are sharded.
_INFER: Any = inspect.signature(jax.shard_map).parameters["in_specs"].default


def _is_spec(spec: Any) -> bool:
    return spec is None or isinstance(spec, PartitionSpec)


def _describe(spec: Any) -> str:
    return f"given {spec}"


_EVERYWHERE: Any = cast(Any, PartitionSpec)()
_SPECS = "Give both places one spec, or one of them a copy."
_IN_SPECS = Question("shard_map in_specs", _describe, _SPECS, _is_spec, is_one_sharding)
_OUT_SPECS = Question("shard_map out_specs", _describe, _SPECS, _is_spec, is_one_sharding)


class _Argument(NamedTuple):
    """Gives the names of the leaves that are packed for one of the arguments of a call."""

    untraced: Untraced

    def names(self, number: int) -> list[str]:
        accessors = self.untraced.spec.accessors()
        found = (accessors[i] for i in self.untraced.traced_positions())
        return [way[2:].codify("") for way in found if way[1].entry == number]


def parts_of(call: Call, count: int) -> tuple[Packed, ...]:
    """For each of so many arguments the leaves that no earlier one has: `shard_map` counts them."""
    untraced, paths = call._untraced, call.spec.paths()
    order = [paths[position][1] for position in untraced.traced_positions()]
    parts = grouped(call._leaves, order, count)
    return tuple(Packed(part, _Argument(untraced), i) for i, part in enumerate(parts))


class Decorator(Protocol):
    """`shard_map` with options, before it is given the function."""

    def __call__(self, f: Callable[P, R], /) -> Callable[P, R]: ...


@overload
def shard_map(
    f: Callable[P, R],
    /,
    *,
    out_specs: Any,
    in_specs: Any = _INFER,
    mesh: Any = None,
    axis_names: AbstractSet[Hashable] = frozenset(),
    check_vma: bool = True,
    **options: Unpack[TreeOptions],
) -> Callable[P, R]: ...
@overload
def shard_map(
    f: None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = _INFER,
    mesh: Any = None,
    axis_names: AbstractSet[Hashable] = frozenset(),
    check_vma: bool = True,
    **options: Unpack[TreeOptions],
) -> Decorator: ...
@with_wrapper_options
def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = _INFER,
    mesh: Any = None,
    axis_names: AbstractSet[Hashable] = frozenset(),
    check_vma: bool = True,
    **options: Unpack[TreeOptions],
) -> Any:
    """Map a function of DAGs over the shards of their arrays; as `jax.shard_map`.

    Args:
        f: The function. Left out, `shard_map` returns a decorator.
        out_specs: A tree prefix of the result.
        in_specs: A tree prefix of the tuple of arguments.
        mesh, axis_names, check_vma: As in JAX.

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
    how = Options.given(options, TreeOptions)
    jax_options = {"mesh": mesh, "axis_names": axis_names, "check_vma": check_vma}
    if f is None:
        specs = {"out_specs": out_specs, "in_specs": in_specs}
        return functools.partial(shard_map, **specs, **jax_options, **options)
    if not callable(f):
        raise TypeError(f"shard_map wants a function, but got one of type {type(f).__name__}")
    fun = anew(f, how.namespace)
    outputs, source = Outputs(out_specs, _EVERYWHERE, _OUT_SPECS, how), Source(fun)

    @wraps(f)
    def mapped(*args: Any) -> Any:
        call = Call.of(args, {}, how)
        specs = in_specs
        if specs is not _INFER:
            given = tuple(specs) if isinstance(specs, list) else specs
            treatments = per_leaf(call, {"args": given, "kwargs": None}, _IN_SPECS, how)
            specs = parts_of(treatments, len(args))

        def function(*parts: Packed) -> Any:
            leaves = [leaf for part in parts for leaf in part.leaves]
            result = rebuilt(call._untraced, leaves, Call).run(fun)
            return outputs.pack(result, RefTable.of(leaves))

        more = {**jax_options, "in_specs": specs, "out_specs": outputs.prefix}
        by_part = jax.shard_map(named(function, source, COUNTED), **more)
        given = parts_of(call, len(args))
        table = RefTable.of([leaf for part in given for leaf in part.leaves])
        return unpacked(by_part(*given), table=table)

    return mapped
