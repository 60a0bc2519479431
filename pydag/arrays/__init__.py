# SPDX-License-Identifier: Apache-2.0
"""Arrays of NumPy, PyTorch and JAX: which objects are arrays, their memory and their bytes."""
