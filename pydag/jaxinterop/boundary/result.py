# SPDX-License-Identifier: Apache-2.0
"""Results of compiled functions, as pytrees that JAX opens and builds without Python code."""

from typing import Any

from jax import tree_util

import pydag._core as _core
from pydag.jaxinterop.refs.results import Given, WithRefs, without_refs
from pydag.jaxinterop.static.untraced import Options
from pydag.typing import Dag as AnyDag
from pydag.typing import Leaf

from .dag import Outcome, rebuilt, to_outcome
from .derivatives import Structures


class OutcomeWithDerivatives(Outcome):
    """A result with derivatives in it, which keep the structure that JAX sees for them."""

    __slots__ = ("structures",)
    structures: Structures

    @property
    def tree(self) -> AnyDag:
        """The DAG."""
        tree = super().tree
        self.structures.note(tree, self._untraced.options)
        return tree


def _with_derivatives(dag: Outcome, structures: Structures) -> Any:
    made = rebuilt(dag._untraced, dag._leaves, OutcomeWithDerivatives)
    made.structures = structures
    return made


def result(tree: AnyDag, options: Options, given: Given) -> Any:
    """The result of a function, for JAX; `refs.results.built` makes a DAG of what comes back.

    Args:
        given: The refs that it was given.
    """
    dag = to_outcome(tree, options)
    structures = Structures.noted_in(tree, options)
    leaves, sources = without_refs(dag._leaves, given)
    if sources is not None and dag._untraced.positions:
        return WithRefs(leaves, dag._untraced, sources)
    if sources is None and structures.parts:
        return _with_derivatives(dag, structures)
    if dag._untraced.positions:
        return dag
    return _core.make_result(dag.spec if sources is None else (dag.spec, sources), leaves)


def _with_keys(result: Any) -> tuple[list[tuple[Any, Leaf]], Any]:
    leaves, structure = _core.open_result(result)
    spec, sources = structure if isinstance(structure, tuple) else (structure, None)
    paths = _core.path_texts(spec, "")
    if sources is not None:
        paths = [path for path, source in zip(paths, sources, strict=True) if source < 0]
    return list(zip(paths, leaves, strict=True)), structure


tree_util.register_pytree_with_keys(_core.Result, _with_keys, _core.make_result, _core.open_result)
tree_util.register_pytree_with_keys(
    OutcomeWithDerivatives,
    lambda dag: (list(dag.with_paths()), (dag._untraced, dag.structures)),
    lambda aux, leaves: _with_derivatives(rebuilt(aux[0], leaves, Outcome), aux[1]),
    lambda dag: (dag._leaves, (dag._untraced, dag.structures)),
)
