# SPDX-License-Identifier: Apache-2.0
"""Which leaves JAX doesn't trace, and how a DAG is taken apart into them and the others."""
