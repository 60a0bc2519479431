# SPDX-License-Identifier: Apache-2.0
"""Leaves that are computed from other leaves, so that those are what is trained and saved."""
