# SPDX-License-Identifier: Apache-2.0
"""What is shared: written out, listed, explained, changed; `pydag` shows the names."""
