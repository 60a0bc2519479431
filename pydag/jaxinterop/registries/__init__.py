# SPDX-License-Identifier: Apache-2.0
"""Reading JAX's registry, and registering with it."""
