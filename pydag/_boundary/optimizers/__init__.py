# SPDX-License-Identifier: Apache-2.0
"""Optax's optimizers for DAGs."""
