# SPDX-License-Identifier: Apache-2.0
"""DAGs on their way to JAX and back: leaves that it traces, and beside them all the rest."""
