# SPDX-License-Identifier: Apache-2.0
"""Numbers in the place of arrays: in a module, where numbers are configuration, they become arrays.

So a mask, a size or an axis for each array of a model has the structure and the sharing of the
model, and all of it is data.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

import pydag._core as _core
from pydag.typing import Leaf

from .content import Content
from .leaves import is_number


def with_arrays(content: Content, leaves: Sequence[Leaf]) -> Sequence[Leaf]:
    """The traced leaves, with an array of no dimension for each number that a module would hold."""
    if not any(map(is_number, _core.one_of_each_class(leaves).values())):
        return leaves
    owned = frozenset().union(*_core.module_leaves(content.spec))
    if not owned:
        return leaves
    places = zip(content.traced_positions(), leaves, strict=True)
    return [_as_array(x) if i in owned and is_number(x) else x for i, x in places]


def _as_array(number: Any) -> Any:
    """Flags and integers are NumPy's, being read by Python; others are weakly typed, as in JAX."""
    if isinstance(number, float | complex) and not isinstance(number, np.generic):
        return jnp.asarray(number)
    return np.asarray(number)


def number_in(answer: Any) -> Any:
    """The integer or the flag that stands as an array of no dimension; anything else as it is."""
    is_one = type(answer) is np.ndarray and answer.ndim == 0 and answer.dtype.kind in "biu"
    return answer.item() if is_one else answer
