# SPDX-License-Identifier: Apache-2.0
"""A module as a DAG: nested dicts of its parameters and buffers."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from pydag.errors import CycleError

from .identity import same_memory

_LONGEST = 20_000  # characters of a prefix: PyTorch goes no deeper than Python's recursion


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
    check_module(module, "module_tree(module)")
    trees: dict[int, dict[str, Any]] = {}  # by the id of the module
    outer: list[tuple[Any, str]] = []  # the path: modules, and the name in each
    every: list[Any] = []

    def tree_of(module: Any) -> dict[str, Any]:
        tree = own_tensors(module)
        every.extend(tree.values())
        for name, inner in module._modules.items():
            if inner is None:
                continue
            outer.append((module, name))
            if (below := trees.get(id(inner))) is None:
                _check_no_cycle(outer, inner)
                below = trees[id(inner)] = tree_of(inner)
            outer.pop()
            if below:
                tree[name] = below
        return tree

    whole = trees[id(module)] = tree_of(module)
    if same_memory(every):  # of one memory, the parameter is shown
        shown = same_memory(sorted(every, key=lambda tensor: not isinstance(tensor, nn.Parameter)))
        for tree in trees.values():
            tree.update({name: shown[id(x)] for name, x in tree.items() if id(x) in shown})
    return whole


def _check_no_cycle(outer: list[tuple[Any, str]], inner: Any) -> None:
    """Raises CycleError where a module is one of those that contain it."""
    for depth, (module, _) in enumerate(outer):
        if module is inner:
            names = [name for _, name in outer]
            where = ".".join(names[:depth]) or "the module itself"
            raise CycleError(f"{'.'.join(names)} is the module that contains it: {where}")


def check_module(module: Any, call: str) -> None:
    """Raises TypeError for anything but a module, such as a state dict."""
    if not isinstance(module, nn.Module):
        cure = "\n  Give the module itself, and not its state dict." * isinstance(module, Mapping)
        first = " first" * ("," in call)
        kind = f"an object of {type(module)!r}"
        raise TypeError(f"{call} takes a torch.nn.Module{first}, and not {kind}{cure}")


def walk(module: Any) -> list[tuple[str, Any]]:
    """A module and the modules in it, as `named_modules`, with prefixes of names.

    Raises:
        CycleError: A module contains itself.
    """
    found, pending = [], [("", module)]
    while pending:
        prefix, inner = pending.pop()
        found.append((prefix, inner))
        if len(prefix) > _LONGEST:
            module_tree(module)  # raises CycleError, most likely
        if inner._modules:
            pending += [
                (f"{prefix}{name}.", child)
                for name, child in reversed(inner._modules.items())
                if child is not None
            ]
    return found


def own_tensors(module: Any) -> dict[str, Any]:
    """The parameters and then the buffers that a module itself holds, by name."""
    found = {name: x for name, x in module._parameters.items() if x is not None}
    if module._buffers:
        found.update((name, x) for name, x in module._buffers.items() if x is not None)
    return found


def at(module: Any, name: str) -> Any:
    """The parameter, buffer or module at a name with dots; None if there is none."""
    *path, last = name.split(".")
    for part in path:
        if (module := module._modules.get(part)) is None:
            return None
    for own in (module._parameters, module._buffers, module._modules):
        if (found := own.get(last)) is not None:
            return found
    return None
