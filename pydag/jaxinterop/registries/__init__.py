# SPDX-License-Identifier: Apache-2.0
"""Classes of JAX's registry as nodes of pydag, and classes of pydag as nodes of JAX."""
