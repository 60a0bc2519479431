# SPDX-License-Identifier: Apache-2.0
"""JAX with DAGs: transformations under JAX's own names that keep sharing, and `Dag`.

Three ways to take a DAG across the boundary:

* the wrappers here, where the call is yours to write; `keep_sharing` makes a wrapper for a
  function of JAX's that has none here;
* `Dag(tree)`, where somebody else's code calls plain JAX (optax, a training loop);
* `pydag.deref` and `pydag.reref` around plain JAX, where the leaves' places should stay visible.

Importing this package makes the classes in JAX's registry nodes of pydag's too.
"""

from typing import TYPE_CHECKING

try:
    import jax as _jax  # noqa: F401  (only to say early, and well, that it is missing)
except ImportError as error:
    raise ImportError(
        'pydag.jaxinterop needs JAX, which is not installed: pip install "pydag-tree[jax]"'
    ) from error

from pydag.errors import LostTieWarning as LostTieWarning

from . import naming as _naming  # noqa: F401  (hides frames of ours from JAX)
from .content.dag import Dag as Dag
from .derived.derived import Derived as Derived
from .foreign import jax_private as _jax_private  # noqa: F401  (says what JAX lacks)
from .registries import jax_registry as _jax_registry  # noqa: F401  (registers itself)
from .registries.modules import Module as Module
from .registries.modules import register as register
from .updates import update as _update  # noqa: F401  (lets `pydag.dag_update` write Dags)

if TYPE_CHECKING:
    from . import tree as tree
    from .compiled.jit import jit as jit
    from .content.selection import SharedSelectionWarning as SharedSelectionWarning
    from .derived.derived import derive_from as derive_from
    from .derived.resolve import resolve_arguments as resolve_arguments
    from .derived.resolve import resolved as resolved
    from .files.load import from_checkpoint as from_checkpoint
    from .files.load import load as load
    from .files.save import save as save
    from .notices.lost_update import LostUpdateWarning as LostUpdateWarning
    from .optimizers.apply_updates import apply_updates as apply_updates
    from .optimizers.nested import mask as mask
    from .optimizers.optimizer import optimizer as optimizer
    from .tree.everywhere import assert_same_everywhere as assert_same_everywhere
    from .tree.view import view as view
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
    from .wrappers.jacobian import jacobian as jacobian
    from .wrappers.jacobian import jacrev as jacrev
    from .wrappers.keep_sharing import keep_sharing as keep_sharing
    from .wrappers.linear import jvp as jvp
    from .wrappers.linear import linearize as linearize
    from .wrappers.linear import vjp as vjp
    from .wrappers.loops import associative_scan as associative_scan
    from .wrappers.loops import fori_loop as fori_loop
    from .wrappers.loops import map as map
    from .wrappers.loops import scan as scan
    from .wrappers.loops import while_loop as while_loop
    from .wrappers.shard_map import shard_map as shard_map
    from .wrappers.trace import eval_shape as eval_shape
    from .wrappers.trace import make_jaxpr as make_jaxpr
    from .wrappers.vmap import vmap as vmap
else:  # to a type checker it would mean that the package has every name
    from pydag.public.compiled import at_first_use as _at_first_use

    _names_of = {
        "compiled.jit": "jit",
        "derived.derived": "derive_from",
        "derived.resolve": "resolve_arguments resolved",
        "files.load": "from_checkpoint load",
        "files.save": "save",
        "notices.lost_update": "LostUpdateWarning",
        "content.selection": "SharedSelectionWarning",
        "optimizers.apply_updates": "apply_updates",
        "optimizers.nested": "mask",
        "optimizers.optimizer": "optimizer",
        "tree.everywhere": "assert_same_everywhere",
        "tree.view": "view",
        "wrappers.branches": "cond switch",
        "wrappers.checkpoint": "checkpoint remat",
        "wrappers.custom": "custom_jvp",
        "wrappers.custom_vjp": "custom_vjp",
        "wrappers.grad": "grad value_and_grad",
        "wrappers.jacobian": "hessian jacfwd jacobian jacrev",
        "wrappers.keep_sharing": "keep_sharing",
        "wrappers.linear": "jvp linearize vjp",
        "wrappers.loops": "associative_scan fori_loop map scan while_loop",
        "wrappers.shard_map": "shard_map",
        "wrappers.trace": "eval_shape make_jaxpr",
        "wrappers.vmap": "vmap",
        "tree": "tree",
    }
    _later = {name: module for module, names in _names_of.items() for name in names.split()}
    __getattr__, __dir__ = _at_first_use("pydag.jaxinterop", _later)
    __all__ = sorted(["Dag", "Derived", "LostTieWarning", "Module", "register", *_later])
