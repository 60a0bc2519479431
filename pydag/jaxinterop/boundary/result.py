# SPDX-License-Identifier: Apache-2.0
"""Results of compiled functions, as pytrees of JAX that come and go without Python code."""

from typing import Any

from jax import tree_util

from pydag import _core
from pydag.jaxinterop.refs.results import Given, WithRefs, without_refs
from pydag.jaxinterop.static.untraced import Options
from pydag.typing import Dag as AnyDag
from pydag.typing import Leaf

from .dag import to_outcome


def result(tree: AnyDag, options: Options, given: Given) -> Any:
    """The result of a function, for JAX; `refs.results.built` makes a DAG of what comes back.

    Args:
        given: The refs that it was given.
    """
    dag = to_outcome(tree, options)
    leaves, sources = without_refs(dag._leaves, given)
    if sources is not None and dag._untraced.positions:
        return WithRefs(leaves, dag._untraced, sources)
    if dag._untraced.positions:
        return dag
    return _core.make_result(dag.spec if sources is None else (dag.spec, sources), leaves)


def _with_keys(result: Any) -> tuple[list[tuple[Any, Leaf]], Any]:
    leaves, structure = _core.open_result(result)
    spec, sources = structure if isinstance(structure, tuple) else (structure, None)
    paths = [accessor.codify("") for accessor in spec.accessors()]
    if sources is not None:
        paths = [path for path, source in zip(paths, sources, strict=True) if source < 0]
    return list(zip(paths, leaves, strict=True)), structure


tree_util.register_pytree_with_keys(_core.Result, _with_keys, _core.make_result, _core.open_result)
