# SPDX-License-Identifier: Apache-2.0
"""Functions that write out, list or change sharing; `pydag` re-exports the names."""
