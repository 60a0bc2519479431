# SPDX-License-Identifier: Apache-2.0
"""attrs classes that are nodes: optree's functions, under which they are nodes of pydag, too.

(Or `pydag.register_fields(cls)`: the core then opens and builds them itself.)
"""

from optree.integrations.attrs import NOTHING as NOTHING
from optree.integrations.attrs import Attribute as Attribute
from optree.integrations.attrs import AttrsEntry as AttrsEntry
from optree.integrations.attrs import Factory as Factory
from optree.integrations.attrs import asdict as asdict
from optree.integrations.attrs import astuple as astuple
from optree.integrations.attrs import cmp_using as cmp_using
from optree.integrations.attrs import converters as converters
from optree.integrations.attrs import define as define
from optree.integrations.attrs import evolve as evolve
from optree.integrations.attrs import exceptions as exceptions
from optree.integrations.attrs import field as field
from optree.integrations.attrs import fields as fields
from optree.integrations.attrs import fields_dict as fields_dict
from optree.integrations.attrs import filters as filters
from optree.integrations.attrs import frozen as frozen
from optree.integrations.attrs import has as has
from optree.integrations.attrs import make_class as make_class
from optree.integrations.attrs import mutable as mutable
from optree.integrations.attrs import register_node as register_node
from optree.integrations.attrs import resolve_types as resolve_types
from optree.integrations.attrs import setters as setters
from optree.integrations.attrs import validate as validate
from optree.integrations.attrs import validators as validators

__all__ = [
    "NOTHING",
    "Attribute",
    "AttrsEntry",
    "Factory",
    "asdict",
    "astuple",
    "cmp_using",
    "converters",
    "define",
    "evolve",
    "exceptions",
    "field",
    "fields",
    "fields_dict",
    "filters",
    "frozen",
    "has",
    "make_class",
    "mutable",
    "register_node",
    "resolve_types",
    "setters",
    "validate",
    "validators",
]
