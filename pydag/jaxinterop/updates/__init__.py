# SPDX-License-Identifier: Apache-2.0
"""What a function changed in its arguments, and how it is written into the caller's objects."""
