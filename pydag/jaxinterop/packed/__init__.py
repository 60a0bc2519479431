# SPDX-License-Identifier: Apache-2.0
"""The pytrees that JAX gets from pydag: leaves, and a content as auxiliary data."""
