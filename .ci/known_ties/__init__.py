# SPDX-License-Identifier: Apache-2.0
"""Makes the table of what is tied in the models of transformers: see `__main__.py`."""
