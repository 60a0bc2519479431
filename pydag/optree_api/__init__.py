# SPDX-License-Identifier: Apache-2.0
"""The rest of optree's functions, for DAGs: what pydag has because optree has it."""
