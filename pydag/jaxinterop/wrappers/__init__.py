# SPDX-License-Identifier: Apache-2.0
"""JAX's functions for DAGs, a file each."""
