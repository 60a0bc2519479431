# SPDX-License-Identifier: Apache-2.0
"""Functions that write out, list or change what is shared; `pydag` shows the names."""
