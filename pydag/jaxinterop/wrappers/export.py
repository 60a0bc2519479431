# SPDX-License-Identifier: Apache-2.0
"""`jax.export.export` for functions of DAGs."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.export

from pydag.jaxinterop.compiled.jit import jit


def export(
    fun_jit: Callable[..., Any],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[Any] = (),
    **jax_options: Any,
) -> Callable[..., jax.export.Exported]:
    """Write a compiled function down for other processes; as `jax.export.export`.

    What is exported takes the trees that the function takes; the first place of a shared array
    counts. What it returns keeps its sharing, also after `jax.export.deserialize`.

    Args:
        fun_jit: A function made by `jit`; one that isn't compiled will be.
        platforms: Those to export for, such as `("cpu", "cuda")`; by default the present one.
        disabled_checks: As in JAX.
        jax_options: Others that JAX has.

    Returns:
        A function of the arguments, or of `jax.ShapeDtypeStruct`s for their arrays, that returns a
        `jax.export.Exported`.

    >>> w = jnp.float32(3.0)
    >>> double = jit(lambda p: pydag.dag_map(lambda x: 2 * x, p))
    >>> out = export(double)({"a": w, "b": w}).call({"a": w, "b": w})
    >>> out["a"] is out["b"], float(out["a"])
    (True, 6.0)
    """
    compiled: Any = fun_jit if hasattr(fun_jit, "trace") else jit(fun_jit)
    return jax.export.export(
        compiled, platforms=platforms, disabled_checks=disabled_checks, **jax_options
    )
