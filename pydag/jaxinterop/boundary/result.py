# SPDX-License-Identifier: Apache-2.0
"""Results of compiled functions, as pytrees of JAX that come and go without Python code."""

from typing import Any

from jax import tree_util

from pydag import _core
from pydag.jaxinterop.static.untraced import Options
from pydag.typing import Dag as AnyDag
from pydag.typing import Leaf

from .dag import to_outcome


def result(tree: AnyDag, options: Options) -> Any:
    """The result of a function, for JAX; `_core.build_result` makes a DAG of what comes back."""
    dag = to_outcome(tree, options)
    if dag._untraced.positions:
        return dag
    return _core.make_result(dag.spec, tuple(dag._leaves))


def _with_keys(result: Any) -> tuple[list[tuple[Any, Leaf]], Any]:
    leaves, spec = _core.open_result(result)
    paths = [accessor.codify("") for accessor in spec.accessors()]
    return list(zip(paths, leaves, strict=True)), spec


tree_util.register_pytree_with_keys(_core.Result, _with_keys, _core.make_result, _core.open_result)
