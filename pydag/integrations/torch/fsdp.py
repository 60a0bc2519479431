# SPDX-License-Identifier: Apache-2.0
"""Which modules FSDP2 must wrap together, since they share a parameter."""

from collections.abc import Iterable
from typing import Any

from .given import groups_of

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
    modules = dict(module.named_modules(remove_duplicate=False))
    first_names: dict[int, str] = {}
    for name, inner in modules.items():
        first_names.setdefault(id(inner), name)
    chosen = {first_names[id(_resolved(modules, first_names, item))] for item in wrapped}

    def owner(parameter: str) -> str:
        """The innermost wrapped module that has a parameter, or the model itself."""
        name = parameter
        while name:
            name = name.rpartition(".")[0]
            if (first := first_names[id(modules[name])]) in chosen:
                return first
        return ""

    merged: list[tuple[set[str], list[str]]] = []
    for group in groups_of(dict(module.named_parameters(remove_duplicate=False))):
        owners, tied = set(map(owner, group)), list(group)
        if len(owners) > 1:
            for other in (touching := [other for other in merged if other[0] & owners]):
                owners, tied = owners | other[0], other[1] + tied
            merged = [other for other in merged if other not in touching] + [(owners, tied)]
    place = {name: i for i, name in enumerate(modules)}
    found = [(tuple(sorted(owners, key=place.__getitem__)), tuple(tied)) for owners, tied in merged]
    return tuple(sorted(found, key=lambda group: [place[name] for name in group[0]]))


def _resolved(modules: dict[str, Any], first_names: dict[int, str], item: Any) -> Any:
    """The module that was named or given."""
    found = modules.get(item) if isinstance(item, str) else item
    if found is None or id(found) not in first_names:
        what = repr(item) if isinstance(item, str) else f"this {type(item).__qualname__}"
        raise ValueError(f"{what} isn't a module of the model: see `model.named_modules()`")
    return found
