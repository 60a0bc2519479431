# SPDX-License-Identifier: Apache-2.0
"""Which classes are nodes: registered here, with optree, or by their fields."""
