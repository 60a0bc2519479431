# SPDX-License-Identifier: Apache-2.0
"""attrs classes that are nodes: optree's functions, under which they are nodes of pydag, too.

(Or `pydag.register_fields(cls)`: the core then opens and builds them itself.)
"""

from optree.integrations.attrs import *  # noqa: F403  # all names that optree lists
from optree.integrations.attrs import __all__ as __all__
