# SPDX-License-Identifier: Apache-2.0
"""Reads and checks the JSON of a structure. Nothing in it is trusted.

Each mistake is a `ValueError` that names the field. Memory is proportional to the text: nothing is
allocated for a number of children before the children have been read.
"""

import functools
from collections.abc import Iterable
from typing import Any, NamedTuple

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.registry.function_names import FunctionNames, UnaskedFunctionError
from pydag.registry.names import ClassNames, UnaskedError, UnknownClassError, class_name
from pydag.structure.listing import NODE_KINDS, Listing, NodeKind, shorten

from .document_listing import NodeRow, plain_ref, records_of
from .values import decode

VERSION = 1


class Kind(NamedTuple):
    """A kind of node in JSON."""

    name: str
    roles: tuple[str, ...]  # of its references: the names under which they are written
    known: NodeKind


# Roles with their own name in JSON. All other roles are "value".
_NAMES = {"custom type": "custom", "leaf": "*", "struct sequence": "structseq"}
_ROLES = {
    "registration": "node",
    "class": "class",
    "default_factory": "factory",
    "keys": "keys",
    "names": "keys",
}
KINDS = {  # by their names in the core
    known.name: Kind(
        _NAMES.get(known.name, known.name),
        tuple(_ROLES.get(role, "value") for role in known.roles),
        known,
    )
    for known in NODE_KINDS
}
_BY_NAME = {kind.name: kind for kind in KINDS.values()}


class MalformedError(ValueError):
    """Names the wrong field and the reason; an error of the core has both in its text."""

    def __init__(self, *what: object) -> None:
        super().__init__(": ".join(map(str, ("malformed structure", *what))))


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


@functools.cache
def decoder() -> Any:
    """Reads JSON strictly: no name may stand twice in an object."""
    import json

    return json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_core.json_object)


def parse(text: str) -> Any:
    """The JSON of a text."""
    try:
        return decoder().decode(text)
    except RecursionError:
        raise MalformedError("the text", "it is nested too deeply") from None
    except ValueError as error:
        raise MalformedError("the text", f"it is no JSON: {error}") from None


def _field(document: dict[str, Any], name: str, cls: type) -> Any:
    if name not in document:
        raise MalformedError(name, "it is missing")
    if type(document[name]) is not cls:
        raise MalformedError(name, f"expected {cls.__name__}, got {type(document[name]).__name__}")
    return document[name]


def check_version(found: Any) -> None:
    """Refuses the format of another version."""
    if type(found) is not int or found != VERSION:
        raise MalformedError(
            "pydag", f"expected version {VERSION}, got {str(found)[:40]}: another pydag wrote it"
        )


class Document:
    """A structure that was read and checked: as a spec, or as a listing without its classes."""

    def __init__(self) -> None:
        self.none_is_leaf = False
        self.namespace = ""
        self.rows: tuple[NodeRow, ...] = ()
        self.refs: list[dict[str, Any]] = []

    @classmethod
    def read(cls, document: Any) -> "Document":
        """Checks everything but the classes."""
        if type(document) is not dict:
            raise MalformedError("the text", "expected an object")
        check_version(document.get("pydag"))
        self = cls()
        self.none_is_leaf = _field(document, "none_is_leaf", bool)
        self.namespace = _decoded("namespace", document.get("namespace"))
        if type(self.namespace) is not str:
            raise MalformedError("namespace", "expected text")
        try:
            _core.check_namespace(self.namespace)
        except ValueError as error:
            raise MalformedError("namespace", error) from None
        nodes, refs = _field(document, "nodes", list), _field(document, "refs", list)
        if len(document) > len(_FIELDS):
            raise MalformedError(min(document.keys() - _FIELDS)[:40], "unknown field")
        self.refs = [_checked_ref(i, ref) for i, ref in enumerate(refs)]
        self.rows = self._read_rows(nodes)
        try:
            _core.check_rows(self.none_is_leaf, self.rows, len(refs))
        except ValueError as error:
            raise MalformedError(error) from None
        return self

    @property
    def num_leaves(self) -> int:
        """The number of distinct leaves."""
        return sum(row[0] == "leaf" for row in self.rows)

    def _read_rows(self, nodes: list[Any]) -> tuple[NodeRow, ...]:
        leaf = "leaf", False, 0
        known: dict[tuple[Any, ...], NodeRow] = {}  # most nodes are like an earlier one
        rows: list[NodeRow] = []
        for i, node in enumerate(nodes):
            if node == "*":
                rows.append(leaf)
                continue
            # Only these classes: the lookup would find 1 for True and 1.0.
            is_plain = type(node) is list and set(map(type, node)) <= {str, int}
            row = known.get(tuple(node)) if is_plain else None
            if row is None:
                row = self._row(i, node)
                if is_plain:
                    known[tuple(node)] = row
            rows.append(row)
        return tuple(rows)

    def _row(self, position: int, node: Any) -> NodeRow:
        if node is None:
            return "None", False, 0
        if type(node) is int:
            return "alias", False, node
        if type(node) is str and node in ("*", "&*"):
            return "leaf", node == "&*", 0
        field = f"nodes[{position}]"
        if type(node) is not list or len(node) < 2 or type(node[0]) is not str:
            raise MalformedError(field, f"expected a node, got {type(node).__name__}")
        name = node[0].removeprefix("&")
        kind = _BY_NAME.get(name)
        if kind is None or name in ("*", "None", "alias"):
            raise MalformedError(field, f"unknown kind {node[0][:40]!r}")
        for role, index in zip(kind.roles, node[2:], strict=False):  # the core counts them
            self._check_ref(field, role, index, node[1])
        return kind.known.name, name != node[0], *node[1:]

    def _check_ref(self, field: str, role: str, index: Any, count: Any) -> None:
        if type(index) is not int or not 0 <= index < len(self.refs):
            raise MalformedError(field, "a reference must be an index of refs")
        if role not in self.refs[index]:
            raise MalformedError(field, f"refs[{index}] must have {role!r}")
        if role == "keys" and len(self.refs[index]["keys"]) != count:
            raise MalformedError(field, "it must have one child for each key")

    def spec(
        self,
        namespace: str | None = None,
        asked: Iterable[type] | None = None,
        functions: FunctionNames | None = None,
    ) -> PyDagSpec:
        """The structure itself. Raises ValueError where a class isn't registered here.

        Args:
            namespace: Where classes are looked up; None: the namespace of the document.
            asked: The classes that the reader named (see `ClassNames`).
        """
        space = self.namespace if namespace is None else namespace
        _core.check_namespace(space)
        names = {name: ClassNames(name, asked, functions) for name in {"", space}}
        refs: list[Any] = []
        unasked: dict[str, type] = {}
        first = 0
        for i, ref in enumerate(self.refs):
            try:
                refs.append(_decoded(f"refs[{i}]", ref, lambda ref: _state_ref(ref, names, space)))
            except UnaskedError as error:
                first = first if unasked else i
                unasked |= {class_name(cls): cls for cls in error.classes}
            except UnaskedFunctionError as error:
                raise UnaskedFunctionError(error.name, self._place_of(i)) from None
        if unasked:
            raise UnaskedError(list(unasked.values()), self._place_of(first))
        try:
            return _core.spec_from_nodes(self.none_is_leaf, space, self.rows, tuple(refs))
        except ValueError as error:
            raise MalformedError(error) from None
        except (TypeError, RuntimeError, OverflowError) as error:
            raise MalformedError("refs", error) from None

    def _place_of(self, ref: int) -> str:
        """The place where a reference is first used."""
        position = next(i for i, row in enumerate(self.rows) if ref in row[3:])
        return f"at {shorten(self.listing().path_text(position, 'tree'))}: "

    def listing(self) -> Listing:
        """The records of the structure, with names in the place of classes."""
        refs = [_decoded(f"refs[{i}]", ref, plain_ref) for i, ref in enumerate(self.refs)]
        return Listing(records_of(self.rows, refs))


_FIELDS = frozenset({"pydag", "none_is_leaf", "namespace", "nodes", "refs"})
_SHAPES: dict[frozenset[str], dict[str, type | tuple[type, ...]]] = {  # of references
    frozenset({"keys"}): {"keys": list},
    frozenset({"keys", "order"}): {"keys": list, "order": list},
    frozenset({"node", "namespace"}): {"node": str},
    frozenset({"class"}): {"class": str},
    frozenset({"factory"}): {"factory": (str, type(None))},
    frozenset({"value"}): {},
}


def _checked_ref(position: int, ref: Any) -> dict[str, Any]:
    field = f"refs[{position}]"
    if type(ref) is not dict:
        raise MalformedError(field, "expected an object")
    shape = _SHAPES.get(frozenset(ref))
    if shape is None:
        raise MalformedError(field, f"unknown fields {sorted(ref)[:4]!r}"[:200])
    for name, cls in shape.items():
        if not isinstance(ref[name], cls):
            raise MalformedError(f"{field}.{name}", f"unexpected {type(ref[name]).__name__}")
    if "order" in ref and any(type(rank) is not int for rank in ref["order"]):
        raise MalformedError(f"{field}.order", "expected numbers")
    return ref


def _decoded(field: str, x: Any, read: Any = lambda x: decode(x, None)) -> Any:
    try:
        return read(x)
    except (MalformedError, UnaskedError, UnaskedFunctionError):
        raise
    except UnknownClassError as error:  # another program wrote the text, and it may be in order
        raise UnknownClassError(f"{field}: {error}") from None
    except (ValueError, TypeError) as error:
        raise MalformedError(field, error) from None


def _state_ref(ref: dict[str, Any], names: dict[str, ClassNames], space: str) -> Any:
    """A reference in the form of the pickle format."""
    if "keys" in ref:
        space_names = names[space]
        keys = tuple([k if type(k) is str else decode(k, space_names) for k in ref["keys"]])
        return keys, tuple(ref["order"]) if "order" in ref else None
    if "node" in ref:
        is_global = decode(ref["namespace"], None) == "" and names[""].has(ref["node"])
        class_names = names["" if is_global else space]
        return class_names.find(ref["node"], "node"), class_names.namespace
    if "class" in ref:
        return names[space].find(ref["class"], "class")
    if "factory" in ref:
        factory = ref["factory"]
        return None if factory is None else names[space].find(factory, "factory")
    return decode(ref["value"], names[space])
