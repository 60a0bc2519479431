# SPDX-License-Identifier: Apache-2.0
"""Structures as listings: two of them in step, and what is alike in them."""
