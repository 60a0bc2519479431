# SPDX-License-Identifier: Apache-2.0
"""JAX with DAGs."""

from .compiled.jit import jit as jit
from .derived.derived import Derived as Derived
from .derived.derived import NotResolvedError as NotResolvedError
from .derived.derived import derive_from as derive_from
from .derived.resolve import resolve_arguments as resolve_arguments
from .derived.resolve import resolved as resolved
from .notices.lost_tie import LostTieWarning as LostTieWarning
from .notices.lost_update import LostUpdateWarning as LostUpdateWarning
from .packed.dag import Dag as Dag
from .wrappers.branches import cond as cond
from .wrappers.branches import switch as switch
from .wrappers.checkpoint import checkpoint as checkpoint
from .wrappers.checkpoint import remat as remat
from .wrappers.custom import custom_jvp as custom_jvp
from .wrappers.custom_vjp import custom_vjp as custom_vjp
from .wrappers.grad import grad as grad
from .wrappers.grad import value_and_grad as value_and_grad
from .wrappers.jacobian import hessian as hessian
from .wrappers.jacobian import jacfwd as jacfwd
from .wrappers.jacobian import jacrev as jacrev
from .wrappers.keep_sharing import keep_sharing as keep_sharing
from .wrappers.linear import jvp as jvp
from .wrappers.linear import linearize as linearize
from .wrappers.linear import vjp as vjp
from .wrappers.loops import fori_loop as fori_loop
from .wrappers.loops import while_loop as while_loop
from .wrappers.scan import associative_scan as associative_scan
from .wrappers.scan import map as map
from .wrappers.scan import scan as scan
from .wrappers.shard_map import shard_map as shard_map
from .wrappers.trace import eval_shape as eval_shape
from .wrappers.trace import make_jaxpr as make_jaxpr
from .wrappers.vmap import vmap as vmap
