# SPDX-License-Identifier: Apache-2.0
"""A structure as JSON, and back. Reading it imports nothing and runs no code of a class.

    {"pydag": 1, "none_is_leaf": false, "namespace": "", "nodes": [...], "refs": [...]}

`nodes` has the nodes in pre-order: a leaf is "*", None is null, an alias the number of its anchor,
and any other node [kind, number of children, references ...]. An anchor is marked by "&": "&*",
"&list". Anchors are numbered in their order. A reference is an index of `refs`, whose items are

    {"keys": [...], "order": [...]}   keys as they were inserted, and their order of traversal
    {"node": "module.Name", "namespace": ""}     a registered class
    {"class": "module.Name"}                     a namedtuple or struct sequence
    {"factory": "builtins.list"}                 of a defaultdict
    {"value": ...}                               maxlen, aux_data, entries, values of meta fields

The order is left out if it is the order of insertion. values.py explains how values are written.
"""

import json
from typing import Any

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.registry.names import ClassNames, class_name
from pydag.structure.listing import Listing, shorten

from .calls import is_call_class
from .document import KINDS, Document, parse
from .values import UnwritableError, encode, encode_keys

compact = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def compact_list(items: list[Any]) -> str:
    """A list as JSON. For text alone the encoder needs no setup."""
    is_text = set(map(type, items)) == {str}
    return f"[{','.join(map(compact, items))}]" if is_text else compact(items)


def _factory(x: Any, names: ClassNames) -> str | None:
    """How a default factory is written: None, a builtin type, or a registered class."""
    if x is None:
        return None
    is_builtin = isinstance(x, type) and x.__module__ == "builtins"
    if is_builtin or (isinstance(x, type) and names.knows(x)):
        return class_name(x)
    raise UnwritableError(f"the default factory {x!r}, which is no builtin or registered class")


class _JsonWriter:
    """Writes the nodes and references of a spec."""

    def __init__(self, spec: PyDagSpec) -> None:
        self._spec, self._names = spec, ClassNames(spec.namespace)
        self._rows, self._refs = _core.nodes_of(spec)
        self._written: dict[tuple[str, int], int] = {}
        self._table: list[str] = []
        self._row: Any = None  # that is being written

    @property
    def position(self) -> int:
        """The first node that has the row that is being written."""
        return self._rows.index(self._row)

    def text(self) -> str:
        """The whole document."""
        known: dict[Any, str] = {}
        for row in dict.fromkeys(self._rows):  # most nodes are like one before
            self._row = row
            known[row] = self._node(*row)
        nodes, refs = ",".join(map(known.__getitem__, self._rows)), ",".join(self._table)
        flag = str(self._spec.none_is_leaf).lower()
        (space,) = map(compact, encode_keys([self._spec.namespace], self._names))
        return (
            f'{{"pydag":1,"none_is_leaf":{flag},"namespace":{space},"nodes":[{nodes}],'
            f'"refs":[{refs}]}}'
        )

    def _node(self, name: str, is_anchor: bool, count: int, *indices: int) -> str:
        kind, mark = KINDS[name], "&" * is_anchor
        if name == "leaf":
            return f'"{mark}{kind.name}"'
        if name in ("None", "alias"):
            return str(count) if name == "alias" else "null"
        has_functions = name == "fields" and is_call_class(self._refs[indices[0]][0])
        refs = [
            f",{self._ref(role, index, has_functions)}"
            for role, index in zip(kind.roles, indices, strict=True)
        ]
        return f'["{mark}{kind.name}",{count}{"".join(refs)}]'

    def _ref(self, role: str, index: int, functions: bool) -> int:
        known = self._written.get((role, index))
        if known is None:
            self._table.append(self._encode(role, self._refs[index], functions))
            known = self._written[role, index] = len(self._table) - 1
        return known

    def _encode(self, role: str, ref: Any, functions: bool) -> str:
        if role == "keys":
            inserted, ranks = ref
            order = "" if ranks is None else f',"order":{compact(list(ranks))}'
            return f'{{"keys":{compact_list(encode_keys(inserted, self._names))}{order}}}'
        if role == "node":
            return compact({"node": class_name(ref[0]), "namespace": encode(ref[1], None)})
        if role == "class":
            return compact({"class": class_name(ref)})
        if role == "factory":
            return compact({"factory": _factory(ref, self._names)})
        return compact({"value": encode(ref, self._names, functions)})


def to_json(spec: PyDagSpec) -> str:
    """The structure as JSON, which `from_json` reads back, in any process.

    Keys, aux_data and the values of meta fields may be None, bool, int, float, str, bytes, tuples
    of them, and registered classes, which are written by name.

    Args:
        spec: The structure.

    Raises:
        TypeError: One of them has another type; the error names the path.
        ValueError: Two registered classes have one name.

    >>> w = [1.0]
    >>> pydag.dag_structure((w, w)).to_json()
    '{"pydag":1,"none_is_leaf":false,"namespace":"","nodes":[["tuple",2],["&list",1],"*",0],"refs":[]}'
    """
    writer = _JsonWriter(spec)
    try:
        return writer.text()
    except (UnwritableError, ValueError) as error:
        where = shorten(Listing.of(spec).path_text(writer.position, "tree"))
        kind = TypeError if isinstance(error, UnwritableError) else ValueError
        raise kind(
            f"the structure can't be written as JSON\n  at {where}: {error}\n"
            "  Keys, aux_data and meta fields may be None, bool, int, float, str, bytes, tuples of "
            "them, and registered classes. save(..., structure=False) writes arrays alone, for "
            "load(..., like=)."
        ) from None


def from_json(text: str, namespace: str | None = None) -> PyDagSpec:
    """The structure that was written by `to_json`. Nothing is imported for it.

    No code of a class runs, either: the text names registered classes, and the result is a
    structure of them. Building a tree from it, `unflatten`, calls the functions of these classes
    with data from the text. `pydag.files.load` refuses classes that its caller didn't name.

    Args:
        text: The result of `to_json`. It may come from an untrusted source.
        namespace: Where registered classes are looked up; None: the namespace in the text.

    Raises:
        ValueError: The text is malformed, or a class in it isn't registered here. The error names
            the field.

    >>> spec = pydag.dag_structure({"a": [1, 2]})
    >>> pydag.PyDagSpec.from_json(spec.to_json()) == spec
    True
    """
    if not isinstance(text, str):
        raise TypeError(f"expected text, got {type(text)!r}")
    return Document.read(parse(text)).spec(namespace)
