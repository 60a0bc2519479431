# SPDX-License-Identifier: Apache-2.0
"""JAX's refs: mutable arrays, which have identity."""
