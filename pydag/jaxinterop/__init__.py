# SPDX-License-Identifier: Apache-2.0
"""JAX with DAGs: transformations under JAX's own names that keep sharing, and `Dag`.

Three ways to take a DAG across the boundary:

* the wrappers here, where the call is yours to write: `jit`, `grad`, `value_and_grad`;
* `Dag(tree)`, where somebody else's code calls plain JAX (optax, a training loop);
* `pydag.deref` and `pydag.reref` around plain JAX, where the leaves' places should stay visible.

Importing this package makes the classes in JAX's registry nodes of pydag's too.
"""

try:
    import jax as _jax  # noqa: F401  (only to say early, and well, that it is missing)
except ImportError as error:
    raise ImportError(
        'pydag.jaxinterop needs JAX, which is not installed: pip install "pydag-tree[jax]"'
    ) from error

from . import _registry as _registry
from ._dag import Dag as Dag
from ._dag import register as register
from ._grad import grad as grad
from ._grad import value_and_grad as value_and_grad
from ._jit import jit as jit
