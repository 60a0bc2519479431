# SPDX-License-Identifier: Apache-2.0
"""Warnings, and how messages speak of the user's code."""
