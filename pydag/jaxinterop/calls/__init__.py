# SPDX-License-Identifier: Apache-2.0
"""A call of the user's function: its arguments taken apart, and the function run on others."""
