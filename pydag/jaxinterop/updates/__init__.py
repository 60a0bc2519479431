# SPDX-License-Identifier: Apache-2.0
"""Arguments that a function may change: what it changed is written into the caller's objects."""
