# SPDX-License-Identifier: Apache-2.0
"""What needs another library: `attrs`, `jax`, `numpy`, `torch`, each imported by its own name."""
