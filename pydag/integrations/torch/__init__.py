# SPDX-License-Identifier: Apache-2.0
"""PyTorch: finds and keeps the ties of a module's parameters, and turns modules into DAGs.

* To see: `ties`, `tie_changes`.
* To keep: `keeping_ties`, `tie_again`, `fsdp_groups`, `tied_weights_keys`,
  `check_tied_weights_keys`.
* To compute: `module_tree`, `load_module_tree`, `module_average`, `dag_ravel`.
"""

try:
    import torch as torch
except ImportError as error:
    raise ImportError(
        f"pydag.integrations.torch needs PyTorch: pip install torch ({error})"
    ) from error

from pydag.errors import LostTieWarning as LostTieWarning

from .average import module_average as module_average
from .changes import tie_changes as tie_changes
from .declared import check_tied_weights_keys as check_tied_weights_keys
from .declared import tied_weights_keys as tied_weights_keys
from .fsdp import fsdp_groups as fsdp_groups
from .given import ties as ties
from .keep import keeping_ties as keeping_ties
from .keep import tie_again as tie_again
from .load_tree import load_module_tree as load_module_tree
from .ravel import TensorTree as TensorTree
from .ravel import dag_ravel as dag_ravel
from .tree import module_tree as module_tree

__all__ = [
    "LostTieWarning",
    "TensorTree",
    "check_tied_weights_keys",
    "dag_ravel",
    "fsdp_groups",
    "keeping_ties",
    "load_module_tree",
    "module_average",
    "module_tree",
    "tie_again",
    "tie_changes",
    "tied_weights_keys",
    "ties",
]
