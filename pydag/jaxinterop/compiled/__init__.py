# SPDX-License-Identifier: Apache-2.0
"""What `jit` is made of."""
