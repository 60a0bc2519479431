# SPDX-License-Identifier: Apache-2.0
"""Results of compiled functions, as pytrees of JAX that come and go without Python code."""

from typing import Any

from jax import tree_util

from pydag import _core
from pydag.typing import Dag as AnyDag
from pydag.typing import Leaf

from ._dag import keys_of, packed
from ._form import Form, Options


def result(tree: AnyDag, options: Options) -> Any:
    """The result of a function, for JAX. Of what JAX makes of it, `_core.finish` makes the DAG."""
    dag = packed(tree, options)
    if dag._form.positions:
        return dag
    return _core.hold(dag.spec, tuple(dag._leaves))


def _with_keys(result: Any) -> tuple[list[tuple[Any, Leaf]], Any]:
    leaves, spec = _core.release(result)
    return list(zip(keys_of(Form(spec, (), ()), "tree"), leaves, strict=True)), spec


tree_util.register_pytree_with_keys(_core.Result, _with_keys, _core.hold, _core.release)
