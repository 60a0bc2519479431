# SPDX-License-Identifier: Apache-2.0
"""`shard_map`."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.sharding import PartitionSpec

from pydag.jaxinterop.calls.run import run
from pydag.jaxinterop.content.content import take_apart
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.paths import CALL
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.notices.source import Source, named, wraps
from pydag.jaxinterop.options import with_wrapper_options
from pydag.jaxinterop.packed.packed import refs_among, unpack
from pydag.jaxinterop.treatments.outputs import Outputs
from pydag.jaxinterop.treatments.treatments import Question, treatments
from pydag.structure.listing import shorten
from pydag.structure.text import short_repr
from pydag.typing import Identity

_INFER: Any = inspect.signature(jax.shard_map).parameters["in_specs"].default


_NOTHING: Any = PartitionSpec()  # type: ignore[no-untyped-call]  # JAX's class has no types


def _is_spec(x: Any) -> bool:
    return x is None or isinstance(x, PartitionSpec)


def _described(spec: Any) -> str:
    return f"given {spec}"


_IN = Question("shard_map in_specs", _described, _is_spec)
_OUT = Question("shard_map out_specs", _described, _is_spec)


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
    namespace: str = "",
    identity: Identity = "all",
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
    jax_options: dict[str, Any] = {
        "mesh": mesh,
        "axis_names": axis_names,
        "check_vma": check_vma,
    }
    if f is None:
        own: dict[str, Any] = {"namespace": namespace, "identity": identity}
        return functools.partial(
            shard_map, out_specs=out_specs, in_specs=in_specs, **jax_options, **own
        )
    if not callable(f):
        raise TypeError(f"shard_map expects a function, got {short_repr(f)}")
    options, source = Options(namespace, identity), Source(f)
    outputs = Outputs(_OUT, out_specs, _NOTHING, options)

    @wraps(f)
    @jax_private.shortens_tracebacks
    def mapped(*args: Any) -> Any:
        call: Any = args, {}
        leaves, content = take_apart(call, options, CALL)
        specs = in_specs
        if specs is not _INFER:
            given = tuple(specs) if isinstance(specs, list) else specs
            prefix = given if _is_spec(given) else (given, None)
            specs = tuple(treatments(_IN, prefix, call, content, options))

        def flat(*leaves: Any) -> Any:
            result, _ = run(f, content.build(leaves), options, source)
            return outputs.pack(result, refs_among(content, leaves))

        def paths() -> Sequence[str]:
            return content.paths(CALL)

        function: Callable[..., Any] = named(flat, source, paths)
        staged = jax.shard_map(function, in_specs=specs, out_specs=outputs.prefix, **jax_options)
        try:
            found = staged(*leaves)
        except ValueError as error:
            if "in_specs" in str(error):
                named_leaves = ", ".join(f"{i}: {path}" for i, path in enumerate(paths()))
                error.add_note(f"JAX counts the arrays one by one: {shorten(named_leaves)}")
            raise
        return unpack(found, content.all_leaves(leaves))

    return mapped
