# SPDX-License-Identifier: Apache-2.0
"""Warnings: of lost ties, of lost updates, of numbers that change."""
