# SPDX-License-Identifier: Apache-2.0
"""A module as a DAG: nested dicts of its parameters and buffers."""

import itertools
from collections.abc import Iterator
from typing import Any

from pydag.errors import CycleError

from .identity import Identities


def module_tree(module: Any) -> dict[str, Any]:
    """The parameters and buffers of a module as nested dicts, one for each module.

    The tree has the sharing of the module: a parameter under several names, a module at several
    places, and two tensors of one memory are one object. So `dag_map` keeps ties, `dag_leaves` has
    each parameter once, and `view`, `shared_objects` and `explain` show ties. The leaves are the
    module's own tensors. Modules that hold nothing have no dict.

    Args:
        module: The module; it may be on `meta`.

    Raises:
        CycleError: A module contains itself.

    >>> embed, head = torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False)
    >>> head.weight = embed.weight
    >>> tree = module_tree(torch.nn.ModuleDict({"embed": embed, "head": head}))
    >>> half = pydag.dag_map(lambda x: x.detach().half(), tree)
    >>> half["head"]["weight"] is half["embed"]["weight"]
    True
    """
    identities = Identities()
    tensors: dict[Any, Any] = {}  # parameters first: of one memory, the parameter is shown
    for tensor in itertools.chain(module.parameters(), module.buffers()):
        tensors.setdefault(identities.of(tensor), tensor)

    def own(module: Any) -> dict[str, Any]:
        return {name: tensors[identities.of(tensor)] for name, tensor in own_tensors(module)}

    trees = {id(module): own(module)}
    unfinished = {id(module): ""}  # with the path to each
    pending = [(module, children(module))]
    while pending:
        module, names = pending[-1]
        path, tree = unfinished[id(module)], trees[id(module)]
        for name, inner in names:
            if id(inner) in unfinished:
                raise CycleError(
                    f"{path}.{name}".removeprefix(".")
                    + " is the module that contains it: "
                    + (unfinished[id(inner)] or "the module itself")
                )
            if id(inner) not in trees:
                trees[id(inner)] = own(inner)
                unfinished[id(inner)] = f"{path}.{name}".removeprefix(".")
                pending.append((inner, children(inner)))
                break
        else:
            pending.pop()
            del unfinished[id(module)]
            for name, inner in children(module):
                if trees[id(inner)]:
                    tree[name] = trees[id(inner)]
    return trees[id(module)]


def own_tensors(module: Any) -> Iterator[tuple[str, Any]]:
    """The parameters and buffers that a module itself holds, by name."""
    yield from module.named_parameters(recurse=False, remove_duplicate=False)
    yield from module.named_buffers(recurse=False, remove_duplicate=False)


def children(module: Any) -> Iterator[tuple[str, Any]]:
    """The modules that a module itself holds, by name; a module with two names appears twice."""
    # `named_children` gives each module once.
    return ((name, inner) for name, inner in module._modules.items() if inner is not None)
