# SPDX-License-Identifier: Apache-2.0
"""Structures: specs made of specs, listed, explained, as JSON and as text."""
