# SPDX-License-Identifier: Apache-2.0
"""JAX with DAGs: transformations under JAX's own names that keep sharing, and `Dag`.

Three ways to take a DAG across the boundary:

* the wrappers here, where the call is yours to write; `keep_sharing` makes one of what has none;
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
from ._branches import cond as cond
from ._branches import switch as switch
from ._callback import pure_callback as pure_callback
from ._checkpoint import checkpoint as checkpoint
from ._checkpoint import remat as remat
from ._custom_jvp import custom_jvp as custom_jvp
from ._custom_vjp import custom_vjp as custom_vjp
from ._dag import Dag as Dag
from ._grad import grad as grad
from ._grad import value_and_grad as value_and_grad
from ._jacobian import hessian as hessian
from ._jacobian import jacfwd as jacfwd
from ._jacobian import jacrev as jacrev
from ._jit import jit as jit
from ._keep_sharing import keep_sharing as keep_sharing
from ._linear import jvp as jvp
from ._linear import linearize as linearize
from ._linear import vjp as vjp
from ._loops import fori_loop as fori_loop
from ._loops import scan as scan
from ._loops import while_loop as while_loop
from ._register import register as register
from ._scans import associative_scan as associative_scan
from ._scans import map as map
from ._shard_map import shard_map as shard_map
from ._trace import eval_shape as eval_shape
from ._trace import make_jaxpr as make_jaxpr
from ._vmap import vmap as vmap
