# SPDX-License-Identifier: Apache-2.0
"""The names of a module that are one parameter or buffer."""

from typing import Any

from .given import Groups, read


def ties(module: Any) -> Groups:
    """The groups of names that are one parameter, buffer or memory; empty where nothing is tied.

    Names are those of `named_parameters(remove_duplicate=False)`, then those of `named_buffers`, in
    this order. A module that stands at two places gives a group for each of its parameters. Two
    tensors are one if they are one object, or the same view of the same memory: so a state dict is
    tied as its module is, although `state_dict()` makes new tensors at each call. On `meta` it is
    the same.

    Args:
        module: A module or a state dict. What `ties` itself returned passes unchanged.

    Raises:
        TypeError: It is neither.

    >>> embed, head = torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False)
    >>> head.weight = embed.weight
    >>> ties(torch.nn.ModuleDict({"embed": embed, "head": head}))
    (('embed.weight', 'head.weight'),)
    """
    return read(module).groups
