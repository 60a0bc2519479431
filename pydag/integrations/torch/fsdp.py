# SPDX-License-Identifier: Apache-2.0
"""Which modules FSDP2 must wrap together, since they share a parameter."""

from collections.abc import Iterable
from typing import Any

from .given import ties_of
from .tree import check_module

Wrapping = tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]


def fsdp_groups(module: Any, wrapped: Iterable[Any]) -> Wrapping:
    """Which of the modules that are to be wrapped by `fully_shard` must be wrapped by one call.

    `fully_shard` gives each of its calls the parameters below, without those of earlier calls. Of a
    parameter that two calls would have, one gets a copy, and the tie is cut. So modules that share
    one go into one call: `fully_shard([model.get_submodule(name) for name in names])`.

    Args:
        module: The model.
        wrapped: The modules that are to be wrapped, or their names.

    Returns:
        Groups of module names, in the module's order, each with the names of the parameters that
        tie them. The name `""` is the model itself: it is in a group where one end of a tie is in
        no wrapped module, and that call is the last. Other modules are wrapped one by one.

    Raises:
        ValueError: One of `wrapped` isn't a module of the model.

    >>> embed, head = torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False)
    >>> head.weight = embed.weight
    >>> model = torch.nn.ModuleDict({"embed": embed, "block": torch.nn.Linear(3, 3), "head": head})
    >>> fsdp_groups(model, [model["block"], model["embed"], model["head"]])
    ((('embed', 'head'), ('embed.weight', 'head.weight')),)
    """
    check_module(module, "fsdp_groups(module, wrapped)")
    modules: dict[str, Any] = dict(module.named_modules(remove_duplicate=False))
    first_names = {id(inner): name for name, inner in reversed(modules.items())}
    chosen = set()
    for item in wrapped:
        found = modules.get(item) if isinstance(item, str) else item
        if id(found) not in first_names:
            what = repr(item) if isinstance(item, str) else f"this {type(item).__qualname__}"
            raise ValueError(f"{what} isn't a module of the model: see `model.named_modules()`")
        chosen.add(first_names[id(found)])

    def owner(name: str) -> str:
        """The innermost wrapped module that has a parameter, or the model itself."""
        while name:
            name = name.rpartition(".")[0]
            if (first := first_names[id(modules[name])]) in chosen:
                return first
        return ""

    merged: list[tuple[set[str], list[str]]] = []
    for group in ties_of(dict(module.named_parameters(remove_duplicate=False))):
        owners, tied = set(map(owner, group)), list(group)
        if len(owners) > 1:
            for other in (touching := [other for other in merged if other[0] & owners]):
                owners, tied = owners | other[0], other[1] + tied
            merged = [other for other in merged if other not in touching] + [(owners, tied)]
    place = {name: i for i, name in enumerate(modules)}
    groups = [(tuple(sorted(names, key=place.__getitem__)), tuple(tied)) for names, tied in merged]
    return tuple(sorted(groups, key=lambda group: [place[name] for name in group[0]]))
