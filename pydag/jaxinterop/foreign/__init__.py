# SPDX-License-Identifier: Apache-2.0
"""What JAX, equinox and flax don't promise to keep, a file each."""
