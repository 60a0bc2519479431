# SPDX-License-Identifier: Apache-2.0
"""`shard_map`: one spec for each object."""

import functools
import inspect
from typing import Any, Unpack

import jax
from jax.sharding import PartitionSpec

from pydag.jaxinterop.calls import Arguments
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.help import with_wrapper_options
from pydag.jaxinterop.naming import Source, wraps
from pydag.jaxinterop.treatments.outputs import Outputs
from pydag.jaxinterop.treatments.treatments import Question
from pydag.jaxinterop.typed import SharingOptions
from pydag.structure.listing import shorten
from pydag.structure.text import short_repr

_INFER: Any = inspect.signature(jax.shard_map).parameters["in_specs"].default
_NOTHING: Any = PartitionSpec()  # type: ignore[no-untyped-call]  # JAX's class has no types


def _is_spec(x: Any) -> bool:
    return x is None or isinstance(x, PartitionSpec)


_IN = Question("shard_map in_specs", "given {}".format, _is_spec)
_OUT = _IN._replace(name="shard_map out_specs")


@with_wrapper_options
def shard_map(
    f: Any = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = _INFER,
    mesh: Any = None,
    axis_names: Any = frozenset(),
    check_vma: bool = True,
    **options: Unpack[SharingOptions],
) -> Any:
    """Map a function of DAGs over parts of their arrays; as `jax.shard_map`.

    A shared array is divided once, and is one array inside and in the result.

    Args:
        f: The function, of positional arguments. Left out, `shard_map` returns a decorator.
        out_specs: A tree prefix of the result.
        in_specs: A tree prefix of the tuple of arguments.
        mesh, axis_names, check_vma: As in JAX.

    Raises:
        SharingError: When called: two places of one object are given two specs.

    >>> mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    >>> spec = jax.sharding.PartitionSpec("x")
    >>> double = lambda p: pydag.dag_map(lambda x: 2 * x, p)
    >>> w = jnp.arange(3.0)
    >>> out = shard_map(double, mesh=mesh, in_specs=spec, out_specs=spec)({"a": w, "b": w})
    >>> out["a"] is out["b"], out["a"].tolist()
    (True, [0.0, 2.0, 4.0])
    """
    jax_options = {"mesh": mesh, "axis_names": axis_names, "check_vma": check_vma}
    if f is None:
        return functools.partial(
            shard_map, out_specs=out_specs, in_specs=in_specs, **jax_options, **options
        )
    if not callable(f):
        raise TypeError(f"shard_map expects a function, got {short_repr(f)}")
    own, source = Options.of(options), Source(f)
    outputs = Outputs(_OUT, out_specs, _NOTHING, own)

    @wraps(f)
    @jax_private.shortens_tracebacks
    def mapped(*args: Any) -> Any:
        call, specs = Arguments(args, {}, own), in_specs
        if specs is not _INFER:
            given = tuple(specs) if isinstance(specs, list) else specs
            specs = call.treatments(_IN, given if _is_spec(given) else (given, None))
        flat = call.function(lambda: f, source, outputs.pack)
        staged = jax.shard_map(flat, in_specs=specs, out_specs=outputs.prefix, **jax_options)
        try:
            found = staged(*call.leaves)
        except ValueError as error:
            if "in_specs" in str(error):
                named_leaves = ", ".join(f"{i}: {path}" for i, path in enumerate(call.paths()))
                error.add_note(f"JAX counts the arrays one by one: {shorten(named_leaves)}")
            raise
        return call.finish(found)

    return mapped
