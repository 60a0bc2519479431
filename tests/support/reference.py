# SPDX-License-Identifier: Apache-2.0
"""The meaning of pydag in obvious Python: what the compiled core is judged by.

A structure is a graph of `SpecNode`: a shared object is simply one `SpecNode` that several
parents hold. So the identity table is a dict from `id`, the memo is another, and an alias is a
node that was met before. Registrations are passed in; nothing here asks pydag for anything.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reference_kinds import (
    Registry,
    Shape,
    are_leaves_values,
    build_node,
    check_nones,
    has_identity,
    kind_of,
    match_node,
    one_answer,
    open_node,
    text_of,
)

Path = tuple[Any, ...]
NOTHING: Mapping[type, Any] = {}


class CycleError(ValueError):
    """The object at `path` is its own ancestor, which stands at `ancestor`."""

    def __init__(self, path: Path, ancestor: Path) -> None:
        super().__init__(f"{path} returns to {ancestor}")
        self.path, self.ancestor = path, ancestor


class SharingError(ValueError):
    """One shared object would get two answers, at two paths."""


@dataclass(eq=False)
class SpecNode:
    """A leaf (no shape) or a node; one for each distinct object, one for each value met."""

    path: Path  # where it was met first
    obj: Any
    shape: Shape | None = None
    children: list["SpecNode"] = field(default_factory=list)
    leaf: int = -1  # its place among the leaves


@dataclass(eq=False)
class Spec:
    """A whole structure."""

    root: SpecNode
    num_leaves: int
    none_is_leaf: bool
    namespace: str
    registry: Registry


def flatten(
    tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
    *,
    none_is_leaf: bool = False,
    namespace: str = "",
    identity: str = "all",
    registry: Registry = NOTHING,
) -> tuple[list[Any], Spec]:
    """The distinct leaves, in first-visit order, and the structure."""
    leaves: list[Any] = []
    seen: dict[int, tuple[Any, SpecNode]] = {}  # holds the objects: no `id` is used twice
    ancestors: list[tuple[Any, Path]] = []

    def refuse_cycle(obj: Any, path: Path) -> None:
        for ancestor, where in ancestors:
            if ancestor is obj:
                raise CycleError(path, where)

    def visit(obj: Any, path: Path, is_value: bool) -> SpecNode:
        tracked = has_identity(obj, registry)
        if is_value and kind_of(obj, registry, none_is_leaf) is None:
            tracked = False
        if tracked:
            refuse_cycle(obj, path)
            if id(obj) in seen:
                return seen[id(obj)][1]
        kept = is_leaf is not None and is_leaf(obj)
        kind = None if kept else kind_of(obj, registry, none_is_leaf)
        node = SpecNode(path, obj)
        if kind is None:
            node.leaf = len(leaves)
            leaves.append(obj)
            tracked = tracked and identity == "all" and not is_value
        else:
            refuse_cycle(obj, path)
            ancestors.append((obj, path))
            node.shape, children = open_node(obj, kind, registry)
            for entry, child in zip(node.shape.entries, children, strict=True):
                values = are_leaves_values(obj, registry, is_value)
                node.children.append(visit(child, (*path, entry), values))
            ancestors.pop()
        if tracked:
            seen[id(obj)] = (obj, node)
        return node

    root = visit(tree, (), False)
    if not any(node.shape and node.shape.registration for node in distinct(root)):
        namespace = ""
    return leaves, Spec(root, len(leaves), none_is_leaf, namespace, registry)


def slots(root: SpecNode) -> dict[SpecNode, list[Path]]:
    """Each distinct node, in traversal order, with the paths of the slots that hold it.

    A slot is reached through first places, so each has one path here.
    """
    held: dict[SpecNode, list[Path]] = {}

    def visit(node: SpecNode, path: Path) -> None:
        held.setdefault(node, []).append(path)
        if len(held[node]) == 1 and node.shape is not None:
            for entry, child in zip(node.shape.entries, node.children, strict=True):
                visit(child, (*path, entry))

    visit(root, ())
    return held


def distinct(root: SpecNode) -> list[SpecNode]:
    """Every node and leaf once, in traversal order."""
    return list(slots(root))


def shared(root: SpecNode) -> dict[SpecNode, int]:
    """The index of each shared object: 0, 1, 2 ... in the order of the anchors."""
    several = [node for node, paths in slots(root).items() if len(paths) > 1]
    return {node: index for index, node in enumerate(several)}


def paths(spec: Spec) -> list[Path]:
    """The anchor's path of each leaf."""
    return [node.path for node in distinct(spec.root) if node.shape is None]


def all_paths(spec: Spec) -> list[list[Path]]:
    """Every path of every leaf."""
    found: list[list[Path]] = [[] for _ in range(spec.num_leaves)]

    def visit(node: SpecNode, path: Path) -> None:
        if node.shape is None:
            found[node.leaf].append(path)
            return
        for entry, child in zip(node.shape.entries, node.children, strict=True):
            visit(child, (*path, entry))

    visit(spec.root, ())
    return found


def unflatten(spec: Spec, leaves: Iterable[Any], *, checks_nones: bool = True) -> Any:
    """The tree with these leaves, each taken when it is needed; each shared node is built once.

    Args:
        checks_nones: Whether a node is opened once more where None is among its leaves. optree
            doesn't do so.
    """
    supply, nothing = iter(leaves), object()
    given: list[Any] = []
    memo: dict[SpecNode, Any] = {}

    def visit(node: SpecNode) -> Any:
        if node.shape is None:
            if node.leaf == len(given):
                given.append(next(supply, nothing))
            if given[-1] is nothing:
                raise ValueError(f"Too few leaves; expected: {spec.num_leaves}")
            return given[node.leaf]
        if node not in memo:
            children = [visit(child) for child in node.children]
            memo[node] = build_node(node.shape, children)
            own = [child.leaf for child in node.children if child.shape is None]
            if checks_nones and any(given[leaf] is None for leaf in own):
                check_nones(node.shape, memo[node], children)
        return memo[node]

    tree = visit(spec.root)
    if next(supply, nothing) is not nothing:
        raise ValueError(f"Too many leaves; expected: {spec.num_leaves}")
    return tree


def unfold(spec: Spec, make_leaf: Callable[[int], Any]) -> Any:
    """The tree without sharing: each node is built, and each leaf made, once for each path."""

    def visit(node: SpecNode) -> Any:
        if node.shape is None:
            return make_leaf(node.leaf)
        return build_node(node.shape, [visit(child) for child in node.children])

    return visit(spec.root)


def flatten_up_to(spec: Spec, tree: Any) -> list[Any]:
    """What another tree holds at each leaf of `spec`: one answer for each leaf."""
    answers: dict[int, tuple[Any, Path]] = {}
    walked: dict[tuple[SpecNode, int], Any] = {}  # holds the objects, see `flatten`

    def visit(node: SpecNode, obj: Any, path: Path) -> None:
        if node.shape is None:
            answer, where = answers.setdefault(node.leaf, (obj, path))
            if not one_answer(answer, obj, spec.registry):
                raise SharingError(f"{where} holds {answer!r}, {path} holds {obj!r}")
        elif (node, id(obj)) not in walked:
            walked[node, id(obj)] = obj
            children = match_node(node.shape, obj, spec.registry)
            for entry, below, child in zip(
                node.shape.entries, node.children, children, strict=True
            ):
                visit(below, child, (*path, entry))

    visit(spec.root, tree, ())
    return [answers[index][0] for index in range(spec.num_leaves)]


def map_(f: Callable[..., Any], tree: Any, *rests: Any, path: bool = False, **options: Any) -> Any:
    """The tree with `f(leaf, *rest leaves)` for each distinct leaf; `path`: it comes first."""
    leaves, spec = flatten(tree, **options)
    columns = [leaves, *(flatten_up_to(spec, rest) for rest in rests)]
    if path:
        columns.insert(0, list(paths(spec)))
    return unflatten(spec, (f(*row) for row in zip(*columns, strict=True)))


def text(spec: Spec) -> str:
    """The `repr` of the structure."""
    index = shared(spec.root)
    printed: set[SpecNode] = set()

    def visit(node: SpecNode) -> str:
        if node in printed and node in index:
            return f"*{index[node]}"
        printed.add(node)
        mark = f"&{index[node]} " if node in index else ""
        below = [visit(child) for child in node.children]
        return mark + (text_of(node.shape, below) if node.shape else "*")

    none = ", NoneIsLeaf" if spec.none_is_leaf else ""
    namespace = f", namespace={spec.namespace!r}" if spec.namespace else ""
    return f"PyDagSpec({visit(spec.root)}{none}{namespace})"
