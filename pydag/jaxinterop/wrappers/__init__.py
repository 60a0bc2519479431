# SPDX-License-Identifier: Apache-2.0
"""JAX's transformations for functions of DAGs."""
