# SPDX-License-Identifier: Apache-2.0
"""Files and checkpoints with JAX's arrays."""
