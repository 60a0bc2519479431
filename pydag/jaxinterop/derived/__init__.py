# SPDX-License-Identifier: Apache-2.0
"""Derived leaves: leaves that are computed from others."""
