# SPDX-License-Identifier: Apache-2.0
"""JAX with DAGs."""

from .compiled.jit import jit as jit
from .packed.dag import Dag as Dag
