# SPDX-License-Identifier: Apache-2.0
"""Arguments in groups that share nothing: an object in two groups becomes two objects."""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

import pydag._core as _core
from pydag.jaxinterop.foreign import jax_private
from pydag.typing import Dag

from .leaves import is_array
from .options import Options


def separated(
    args: Sequence[Dag],
    groups: Sequence[Any],
    options: Options,
    group_of: Callable[[Any, Any], Any] = lambda group, _: group,
) -> tuple[Dag, ...]:
    """The arguments, with copies of arrays that a group shares with an earlier group.

    Args:
        groups: The group of each argument.
        group_of: For a group and an array in it, a value that is equal in groups that may share it.
    """
    if options.identity != "all" or len(set(groups)) < 2:
        return tuple(args)
    owners: dict[int, Any] = {}
    copies: dict[tuple[Any, int], Any] = {}
    found = []
    for arg, group in zip(args, groups, strict=True):
        leaves = options.flatten(arg)[0]
        clashes = {
            id(x)
            for x in leaves
            if is_array(x)
            and not jax_private.is_ref(x)
            and owners.setdefault(id(x), group_of(group, x)) != group_of(group, x)
        }

        def separate(x: Any, clashes: set[int] = clashes, group: Any = group) -> Any:
            if id(x) not in clashes:
                return x
            if (group, id(x)) not in copies:
                copies[group, id(x)] = copied(x)
            return copies[group, id(x)]

        found.append(_core.map(separate, arg, (), namespace=options.namespace) if clashes else arg)
    return tuple(found)


def copied(array: Any) -> Any:
    """Another object for the same array: of the same type, weak or not."""
    if isinstance(array, np.ndarray):
        return array.view()
    copy = jnp.copy(array)
    if getattr(array, "weak_type", False):
        copy = jax_private.convert_element_type(copy, copy.dtype, weak_type=True)
    return copy
