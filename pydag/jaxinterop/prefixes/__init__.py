# SPDX-License-Identifier: Apache-2.0
"""What is done with each argument and leaf of a call: one answer per object."""
