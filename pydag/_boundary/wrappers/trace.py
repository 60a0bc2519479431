# SPDX-License-Identifier: Apache-2.0
"""`eval_shape` and `make_jaxpr`: functions that are traced and not run."""

from collections.abc import Callable
from typing import Any

from pydag._boundary.compiled.jit import jit
from pydag._boundary.notices.source import wraps
from pydag.structure.text import short_repr
from pydag.typing import Dag, Identity, Where


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Dag:
    """`jax.eval_shape` for functions of DAGs: the result with shapes and types for arrays."""
    if not callable(fun):
        raise TypeError(f"eval_shape expects a function, got {short_repr(fun)}")
    own = wraps(fun)(lambda *args, **kwargs: fun(*args, **kwargs))
    return jit(own).eval_shape(*args, **kwargs)


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: Any = (),
    axis_env: Any = None,
    return_shape: bool = False,
    abstracted_axes: Any = None,
    *,
    namespace: str = "",
    identity: Identity = "all",
    static: Where | None = None,
) -> Callable[..., Any]:
    """`jax.make_jaxpr` for functions of DAGs: the program of the distinct leaves."""
    options: dict[str, Any] = {"namespace": namespace, "identity": identity, "static": static}
    compiled = jit(fun, static_argnums=static_argnums or None, **options)

    @wraps(fun)
    def make(*args: Any, **kwargs: Any) -> Any:
        traced = compiled.trace(*args, **kwargs)
        return (traced.jaxpr, traced.out_info) if return_shape else traced.jaxpr

    return make
