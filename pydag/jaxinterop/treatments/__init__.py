# SPDX-License-Identifier: Apache-2.0
"""One treatment for each object: an axis, a sharding, a flag."""
