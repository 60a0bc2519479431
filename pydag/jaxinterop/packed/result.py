# SPDX-License-Identifier: Apache-2.0
"""Results of compiled functions, as pytrees that JAX opens and builds without Python code."""

from typing import Any

import jax
from jax import tree_util

import pydag._core as _core
from pydag.jaxinterop.refs.results import Given, without_refs
from pydag.jaxinterop.static.differentiable import is_ref
from pydag.jaxinterop.static.paths import paths_of
from pydag.jaxinterop.static.untraced import Options, Untraced
from pydag.typing import Dag as AnyDag
from pydag.typing import Leaf

from .dag import Outcome, dag_of
from .packed import Packed, UntracedResult


def is_result_itself(tree: AnyDag) -> bool:
    """Whether JAX may be given a result as it is, and builds just that.

    That is an array, or a list or tuple of arrays none of which comes twice: JAX opens it as pydag
    does, and shows the same paths. Nothing needs to be built from what JAX returns.
    """
    leaves = tree if type(tree) in (tuple, list) else (tree,)
    are_arrays = all(isinstance(leaf, jax.Array) and not is_ref(leaf) for leaf in leaves)
    return are_arrays and len(set(map(id, leaves))) == len(leaves)


def compiled_result(tree: AnyDag, options: Options, given: Given) -> Any:
    """The result of a compiled function, which the core puts together where it can.

    Args:
        given: The refs that it was given.
    """
    dag = dag_of(tree, options, cls=Outcome)
    leaves, sources = without_refs(dag._leaves, given)
    if dag._untraced.seen is not None:
        return dag if sources is None else Packed(leaves, UntracedResult(dag._untraced, sources))
    statics = StaticLeaves(dag._untraced) if dag._untraced.positions else None
    is_plain = sources is None and statics is None
    return _core.make_result(dag.spec if is_plain else (dag.spec, sources, statics), leaves)


class StaticLeaves:
    """The leaves of a result that JAX doesn't trace, for the core, which puts them in their places.

    Equal where the untraced parts of two results are.
    """

    __slots__ = ("positions", "untraced", "values")

    def __init__(self, untraced: Untraced) -> None:
        self.untraced, self.positions = untraced, untraced.positions
        self.values = tuple(static.value for static in untraced.statics)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StaticLeaves) and self.untraced == other.untraced

    def __hash__(self) -> int:
        return hash(self.untraced)

    def __repr__(self) -> str:
        return repr(self.untraced)


def _with_keys(result: Any) -> tuple[list[tuple[Any, Leaf]], Any]:
    leaves, structure = _core.open_result(result)
    spec, sources, statics = structure if isinstance(structure, tuple) else (structure, None, None)
    paths = _core.path_texts(spec, "") if statics is None else paths_of(statics.untraced)
    if sources is not None:
        paths = [path for path, source in zip(paths, sources, strict=True) if source < 0]
    return list(zip(paths, leaves, strict=True)), structure


tree_util.register_pytree_with_keys(_core.Result, _with_keys, _core.make_result, _core.open_result)
