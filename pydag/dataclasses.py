# SPDX-License-Identifier: Apache-2.0
"""Dataclasses that are nodes: optree's functions, under which they are nodes of pydag, too.

(Or `pydag.register_fields(cls)`: the core then opens and builds them itself, and calls no Python.)

>>> from pydag.dataclasses import dataclass, field
>>> @dataclass(namespace="models")
... class Layer:
...     w: object
...     units: int = field(pytree_node=False)
>>> pydag.dag_leaves(Layer([1.5], 3), namespace="models")
[1.5]
"""

from dataclasses import KW_ONLY as KW_ONLY
from dataclasses import MISSING as MISSING
from dataclasses import Field as Field
from dataclasses import FrozenInstanceError as FrozenInstanceError
from dataclasses import InitVar as InitVar
from dataclasses import asdict as asdict
from dataclasses import astuple as astuple
from dataclasses import fields as fields
from dataclasses import is_dataclass as is_dataclass
from dataclasses import replace as replace

from optree.dataclasses import DataclassEntry as DataclassEntry
from optree.dataclasses import __all__ as __all__
from optree.dataclasses import dataclass as dataclass
from optree.dataclasses import field as field
from optree.dataclasses import make_dataclass as make_dataclass
from optree.dataclasses import register_node as register_node
