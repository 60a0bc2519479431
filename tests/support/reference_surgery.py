# SPDX-License-Identifier: Apache-2.0
"""`dag_replace` and `untie` of a whole tree, in obvious Python."""

from typing import Any

from reference import CycleError, SpecNode, distinct, flatten, unflatten, unfold
from reference_kinds import Registry, has_identity


def leads_to(node: SpecNode, obj: Any) -> bool:
    """Whether an object lies below a node."""
    return any(child.obj is obj or leads_to(child, obj) for child in node.children)


def replace(tree: Any, old: Any, new: Any, *, registry: Registry, **options: Any) -> Any:
    """The tree with `new` in the place of `old`.

    What else `new` holds of the tree is kept as it is; all other containers are new.
    """
    options["registry"] = registry
    if not has_identity(old, registry):
        raise ValueError("a value has no place of its own")
    held = [
        node
        for node in distinct(flatten(new, **options)[1].root)
        if node.shape is not None and has_identity(node.obj, registry)
    ]
    around = {id(node.obj) for node in held if leads_to(node, old)}
    kept = {id(old), *(id(node.obj) for node in held)} - around
    leaves, spec = flatten(tree, lambda obj: id(obj) in kept, **options)
    if not any(leaf is old for leaf in leaves):
        raise ValueError("the tree doesn't hold it")
    for node in distinct(spec.root):
        if id(node.obj) in around:
            raise CycleError(node.path, node.path)
    return unflatten(spec, [new if leaf is old else leaf for leaf in leaves])


def untie(tree: Any, **options: Any) -> Any:
    """The tree in which every place has its own object; the leaves are those of `tree`."""
    leaves, spec = flatten(tree, **options)
    return unfold(spec, lambda index: leaves[index])
