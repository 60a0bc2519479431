# SPDX-License-Identifier: Apache-2.0
"""Reads and checks the JSON of a structure. Nothing in it is taken on trust.

Whatever is wrong is a `ValueError` that names the field. Memory stays in proportion to the text: a
number of children is only a number until the children have been read.
"""

import json
import struct
from collections.abc import Iterable
from typing import Any, NamedTuple

from pydag import _core
from pydag._core import PyDagSpec
from pydag.registry.names import ClassNames, UnaskedError, class_name
from pydag.structure.kinds import NODE_KINDS, NodeKind
from pydag.structure.listing import Listing, shorten

from .values import decode

VERSION = 1
_MOST = 2**32 - 2  # nodes, children


class Kind(NamedTuple):
    """A kind of node in JSON."""

    name: str
    roles: tuple[str, ...]  # of its references: under which name they are written
    known: NodeKind

    def place(self, *roles: str) -> int | None:
        """The index of the reference that has one of these roles in the core."""
        return next((i for i, role in enumerate(self.known.roles) if role in roles), None)


# Where JSON has a name of its own. All other roles are "value".
_NAMES = {"custom type": "custom", "leaf": "*", "struct sequence": "structseq"}
_ROLES = {
    "registration": "node",
    "class": "class",
    "default_factory": "factory",
    "keys": "keys",
    "names": "keys",
}
KINDS = {  # by their codes in pickles
    known.code: Kind(
        _NAMES.get(known.name, known.name),
        tuple(_ROLES.get(role, "value") for role in known.roles),
        known,
    )
    for known in NODE_KINDS
}
_BY_NAME = {kind.name: code for code, kind in KINDS.items()}


class MalformedError(ValueError):
    """Names the field that is wrong, and says why."""

    def __init__(self, field: str, why: object) -> None:
        super().__init__(f"malformed structure: {field}: {why}")


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; ValueError where a name stands in it twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise ValueError(f"the name {twice[:200]!r} stands twice")
    return found


def parse(text: str) -> Any:
    """The JSON of a text."""
    try:
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=distinct)
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


def check_version(found: Any, field: str = "pydag") -> None:
    """Refuses what another version has written."""
    if type(found) is not int or found != VERSION:
        raise MalformedError(
            field, f"expected version {VERSION}, got {str(found)[:40]}: another pydag wrote it"
        )


class Node(NamedTuple):
    """A node as it was read."""

    kind: int
    is_anchor: bool
    size: int  # the number of children; for an alias the number of its anchor
    refs: tuple[int, ...]


class Document:
    """A structure that was read, and is whole: as a spec, or as a listing without its classes."""

    def __init__(self) -> None:
        self.none_is_leaf = False
        self.namespace = ""
        self.nodes: list[Node] = []
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
        if unknown := document.keys() - {"pydag", "none_is_leaf", "namespace", "nodes", "refs"}:
            raise MalformedError(min(unknown)[:40], "unknown field")
        self.refs = [_checked_ref(i, ref) for i, ref in enumerate(refs)]
        self.nodes = [self._checked_node(i, node) for i, node in enumerate(nodes)]
        self._check_nesting()
        return self

    @property
    def num_leaves(self) -> int:
        """The number of distinct leaves."""
        return sum(KINDS[node.kind].name == "*" for node in self.nodes)

    def _checked_node(self, position: int, node: Any) -> Node:
        field = f"nodes[{position}]"
        if node is None:
            if self.none_is_leaf:
                raise MalformedError(field, "null stands where None is a leaf")
            return Node(_BY_NAME["None"], False, 0, ())
        if type(node) is int:
            return Node(_BY_NAME["alias"], False, _checked_count(field, node), ())
        if type(node) is str:
            if node not in ("*", "&*"):
                raise MalformedError(field, f"expected a node, got {node[:40]!r}")
            return Node(_BY_NAME["*"], node == "&*", 0, ())
        if type(node) is not list or len(node) < 2 or type(node[0]) is not str:
            raise MalformedError(field, "expected a node")
        name = node[0].removeprefix("&")
        number = _BY_NAME.get(name)
        if number is None or name in ("*", "None", "alias") or len(node[0]) > len(name) + 1:
            raise MalformedError(field, f"unknown kind {node[0][:40]!r}")
        if name != node[0] and not KINDS[number].known.has_identity:
            raise MalformedError(field, f"a {name} can't be shared")
        count = _checked_count(field, node[1])
        return Node(number, name != node[0], count, self._checked_refs(field, number, node[2:]))

    def _checked_refs(self, field: str, number: int, given: list[Any]) -> tuple[int, ...]:
        roles = KINDS[number].roles
        if len(given) != len(roles):
            raise MalformedError(field, f"expected {len(roles)} references, got {len(given)}")
        for role, place in zip(roles, given, strict=True):
            if type(place) is not int or not 0 <= place < len(self.refs):
                raise MalformedError(field, "a reference must be an index of refs")
            if role not in self.refs[place]:
                raise MalformedError(field, f"refs[{place}] must have {role!r}")
        return tuple(given)

    def _check_nesting(self) -> None:
        """One root, whole subtrees, one child for each key, aliases behind finished anchors."""
        pending: list[tuple[int, int]] = []  # of each open node: children to come, its number
        finished: list[int] = []  # of each anchor: 0 open, 1 whole, 2 has an alias
        for position, node in enumerate(self.nodes):
            field, name = f"nodes[{position}]", KINDS[node.kind].name
            if position > 0 and not pending:
                raise MalformedError(field, "it stands behind the end of the tree")
            self._check_keys(field, node)
            if name == "alias":
                if node.size >= len(finished) or not finished[node.size]:
                    raise MalformedError(field, f"alias {node.size} must stand behind its anchor")
                finished[node.size] = 2
            number = -1
            if node.is_anchor:
                number = len(finished)
                finished.append(0)
            pending.append((0 if name == "alias" else node.size, number))
            while pending and pending[-1][0] == 0:
                if (number := pending.pop()[1]) >= 0:
                    finished[number] = 1
                if pending:
                    pending[-1] = (pending[-1][0] - 1, pending[-1][1])
        if pending or not self.nodes:
            raise MalformedError("nodes", "nodes are missing")
        if 1 in finished:
            raise MalformedError("nodes", f"anchor {finished.index(1)} has no alias")
        used = {place for node in self.nodes for place in node.refs}
        if len(used) < len(self.refs):
            unused = next(i for i in range(len(self.refs)) if i not in used)
            raise MalformedError(f"refs[{unused}]", "no node uses it")

    def _check_keys(self, field: str, node: Node) -> None:
        for role, place in zip(KINDS[node.kind].roles, node.refs, strict=True):
            if role == "keys" and len(self.refs[place]["keys"]) != node.size:
                raise MalformedError(field, "it must have one child for each key")

    def spec(self, namespace: str | None = None, asked: Iterable[type] | None = None) -> PyDagSpec:
        """The structure itself. Raises ValueError where a class isn't registered here.

        Args:
            namespace: In which classes are looked up; None: that of the document.
            asked: Which classes the reader named (see `ClassNames`).
        """
        space = self.namespace if namespace is None else namespace
        _core.check_namespace(space)
        names = {name: ClassNames(name, asked) for name in {"", space}}
        refs: list[Any] = []
        unasked: dict[str, type] = {}
        first = 0
        for i, ref in enumerate(self.refs):
            try:
                refs.append(_decoded(f"refs[{i}]", ref, lambda ref: _state_ref(ref, names, space)))
            except UnaskedError as error:
                first = first if unasked else i
                unasked |= {class_name(cls): cls for cls in error.classes}
        if unasked:
            position = next(place for place, node in enumerate(self.nodes) if first in node.refs)
            where = shorten(self.listing().path_text(position, "tree"))
            raise UnaskedError(list(unasked.values()), f"at {where}: ")
        nodes = b"".join(
            struct.pack("<BBHI", node.kind, node.is_anchor, 0, node.size) for node in self.nodes
        )
        width = 1 if len(refs) <= 0x100 else 2 if len(refs) <= 0x10000 else 4
        places = b"".join(
            place.to_bytes(width, "little") for node in self.nodes for place in node.refs
        )
        spec = PyDagSpec.__new__(PyDagSpec)
        try:
            spec.__setstate__((2, self.none_is_leaf, space, nodes, places, tuple(refs)))
        except (TypeError, ValueError, RuntimeError, OverflowError) as error:
            raise MalformedError("refs", error) from None
        return spec

    def listing(self) -> Listing:
        """The records of the structure, with names in the place of classes."""
        refs = [_decoded(f"refs[{i}]", ref, _plain_ref) for i, ref in enumerate(self.refs)]
        return Listing(_Records(self.nodes, refs).make())


def _checked_count(field: str, count: Any) -> int:
    if type(count) is not int or not 0 <= count <= _MOST:
        raise MalformedError(field, "a number of children or of an anchor is out of range")
    return count


def _checked_ref(position: int, ref: Any) -> dict[str, Any]:
    field = f"refs[{position}]"
    if type(ref) is not dict:
        raise MalformedError(field, "expected an object")
    shapes: dict[frozenset[str], dict[str, type | tuple[type, ...]]] = {
        frozenset({"keys"}): {"keys": list},
        frozenset({"keys", "order"}): {"keys": list, "order": list},
        frozenset({"node", "namespace"}): {"node": str},
        frozenset({"class"}): {"class": str},
        frozenset({"factory"}): {"factory": (str, type(None))},
        frozenset({"value"}): {},
    }
    shape = shapes.get(frozenset(ref))
    if shape is None:
        raise MalformedError(field, f"unknown fields {sorted(ref)[:4]!r}"[:200])
    for name, cls in shape.items():
        if not isinstance(ref[name], cls):
            raise MalformedError(f"{field}.{name}", f"unexpected {type(ref[name]).__name__}")
    if "order" in ref and any(type(place) is not int for place in ref["order"]):
        raise MalformedError(f"{field}.order", "expected numbers")
    return ref


def _decoded(field: str, x: Any, read: Any = lambda x: decode(x, None)) -> Any:
    try:
        return read(x)
    except (MalformedError, UnaskedError):
        raise
    except (ValueError, TypeError) as error:
        raise MalformedError(field, error) from None


def _tuple_class(name: str, names: ClassNames) -> type:
    try:
        return names.find(name, "class")
    except UnaskedError:
        raise
    except ValueError as error:
        raise ValueError(
            f"{error}. A namedtuple is written by name: register it, or load it with classes= or "
            "like="
        ) from None


def _state_ref(ref: dict[str, Any], names: dict[str, ClassNames], space: str) -> Any:
    """A reference as the pickle format has it."""
    if "keys" in ref:
        keys = tuple(decode(key, names[space]) for key in ref["keys"])
        return keys, tuple(ref["order"]) if "order" in ref else None
    if "node" in ref:
        is_global = decode(ref["namespace"], None) == "" and names[""].has(ref["node"])
        seen = names["" if is_global else space]
        return seen.find(ref["node"], "node"), seen.namespace
    if "class" in ref:
        return _tuple_class(ref["class"], names[space])
    if "factory" in ref:
        factory = ref["factory"]
        return None if factory is None else names[space].find(factory, "factory")
    return decode(ref["value"], names[space])


def _plain_ref(ref: dict[str, Any]) -> Any:
    """A reference with names in the place of classes."""
    if "keys" in ref:
        keys = [decode(key, None) for key in ref["keys"]]
        order = ref.get("order", range(len(keys)))
        if sorted(order) != list(range(len(keys))):
            raise ValueError("the order must be a permutation of the keys")
        return [key for _, key in sorted(zip(order, keys, strict=True), key=lambda pair: pair[0])]
    if "value" in ref:
        return decode(ref["value"], None)
    return ref.get("node", ref.get("class", ref.get("factory")))


class _Records:
    """The records of a structure whose references are `refs`."""

    def __init__(self, nodes: list[Node], refs: list[Any]) -> None:
        self._nodes, self._refs = nodes, refs

    def make(self) -> list[tuple[Any, ...]]:
        """A record for each node, as the core's listing has them."""
        records: list[tuple[Any, ...]] = []
        open_nodes: list[tuple[Node, int]] = []  # with the number of the next child
        number = 0
        for node in self._nodes:
            entry, attribute = None, None
            if open_nodes:
                parent, child = open_nodes[-1]
                entry, attribute = self._entry(parent, child)
                open_nodes[-1] = (parent, child + 1)
            name = KINDS[node.kind].name
            own = node.size if name == "alias" else number if node.is_anchor else -1
            number += node.is_anchor
            count = 0 if name == "alias" else node.size
            kind = KINDS[node.kind].known.name
            records.append(
                (kind, own, count, entry, attribute, self._type(node), self._detail(node))
            )
            if count:
                open_nodes.append((node, 0))
            while open_nodes and open_nodes[-1][1] == open_nodes[-1][0].size:
                open_nodes.pop()
        return records

    def _entry(self, parent: Node, child: int) -> tuple[Any, str | None]:
        kind = KINDS[parent.kind]
        if (names := kind.place("names")) is not None:
            field = self._refs[parent.refs[names]][child]
            return field, field if isinstance(field, str) else None
        if (keys := kind.place("keys")) is not None:
            return self._refs[parent.refs[keys]][child], None
        if (place := kind.place("entries")) is not None:
            entries = self._refs[parent.refs[place]]
            if isinstance(entries, tuple) and child < len(entries):
                return entries[child], None
        return child, None

    def _type(self, node: Node) -> str | None:
        name = KINDS[node.kind].name
        if name in ("*", "alias"):
            return None
        if KINDS[node.kind].roles[:1] in (("node",), ("class",)):
            return str(self._refs[node.refs[0]]).rpartition(".")[2]
        return "NoneType" if name == "None" else name

    def _detail(self, node: Node) -> Any:
        kind = KINDS[node.kind]
        if (meta := kind.place("meta")) is not None:
            values = self._refs[node.refs[meta]]
            return tuple(("", value) for value in values) if isinstance(values, tuple) else ()
        place = kind.place("aux_data", "default_factory", "maxlen")
        return None if place is None else self._refs[node.refs[place]]
