# SPDX-License-Identifier: Apache-2.0
"""The rest of optree's functions, for DAGs: pydag has them because optree has them."""
