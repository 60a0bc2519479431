# SPDX-License-Identifier: Apache-2.0
"""What pydag tells without being asked: warnings about calls, and notes on errors of JAX's."""
