# SPDX-License-Identifier: Apache-2.0
"""Errors and JAX's messages in the words and paths of the user."""
