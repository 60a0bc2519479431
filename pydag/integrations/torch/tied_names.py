# SPDX-License-Identifier: Apache-2.0
"""The names of a module that are one parameter or buffer."""

from typing import Any

from .given import Ties, read


def ties(module: Any) -> Ties:
    """The groups of names that are one parameter, buffer or memory; empty if nothing is tied.

    Names are those of `named_parameters(remove_duplicate=False)`, then those of `named_buffers`, in
    this order. A module that stands at two places gives a group for each of its parameters. Two
    tensors are one if they are one object, or the same view of the same memory: so a state dict has
    the ties of its module, although `state_dict()` makes new tensors at each call. This also works
    on `meta`.

    The result is a tuple of tuples, and can be saved as JSON. It also remembers, unless it was
    saved as JSON, which groups are several parameters over one memory: see `tie_changes`.

    Args:
        module: A module, a result of `module_tree` or `dag_map` for a module, or a state dict. A
            result of `ties` is returned unchanged.

    Raises:
        TypeError: It is none of these.

    >>> embed, head = torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False)
    >>> head.weight = embed.weight
    >>> ties(torch.nn.ModuleDict({"embed": embed, "head": head}))
    (('embed.weight', 'head.weight'),)
    """
    return read(module).ties
