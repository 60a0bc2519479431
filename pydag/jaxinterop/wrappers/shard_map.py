# SPDX-License-Identifier: Apache-2.0
"""`jax.shard_map` for functions of DAGs."""

import functools
import inspect
from collections.abc import Callable, Hashable
from collections.abc import Set as AbstractSet
from typing import Any, cast

import jax
from jax.sharding import PartitionSpec

from pydag.jaxinterop.boundary.call import Call, flat, per_leaf
from pydag.jaxinterop.boundary.function_cache import name_of
from pydag.jaxinterop.boundary.outputs import Outputs
from pydag.jaxinterop.boundary.prefixes import Question
from pydag.jaxinterop.boundary.static_part import Options
from pydag.typing import Identity

# JAX gives no other name to the default: specs as the arguments are sharded.
_INFER: Any = inspect.signature(jax.shard_map).parameters["in_specs"].default


def _is_spec(spec: Any) -> bool:
    return spec is None or isinstance(spec, PartitionSpec)


_EVERYWHERE: Any = cast(Any, PartitionSpec)()
_SPECS = "Give both places one spec, or one of them a copy."
_IN_SPECS = Question("shard_map in_specs", lambda spec: f"given {spec}", _SPECS, _is_spec)
_OUT_SPECS = Question("shard_map out_specs", lambda spec: f"given {spec}", _SPECS, _is_spec)


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
