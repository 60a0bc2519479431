# SPDX-License-Identifier: Apache-2.0
"""JAX's registry, asked and told."""
