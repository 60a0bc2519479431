# SPDX-License-Identifier: Apache-2.0
"""The functions of `jax.tree`, for DAGs: what `pydag.jaxinterop.tree` is made of."""
