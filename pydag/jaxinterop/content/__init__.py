# SPDX-License-Identifier: Apache-2.0
"""Which leaves of a tree JAX traces, and the rest of the tree."""
