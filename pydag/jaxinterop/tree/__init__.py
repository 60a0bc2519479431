# SPDX-License-Identifier: Apache-2.0
"""`jax.tree`, for DAGs: its functions under its names, and what is shared stays shared.

The leaves are the data, as the wrappers of `pydag.jaxinterop` see it: arrays, refs, and the numbers
of dicts and records, each once however many paths lead to it. The numbers and flags of modules,
text, functions and other objects belong to the structure: no function is called for them, and
`structure` compares them. So a cast, an average, or a count needs no guard. `copy` is pydag's own.

>>> w = jnp.ones(2)
>>> doubled = map(lambda x: 2 * x, {"encoder": w, "decoder": w, "name": "net"})
>>> doubled["encoder"] is doubled["decoder"], doubled["name"]
(True, 'net')
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .functions import all as all
from .functions import broadcast as broadcast
from .functions import copy as copy
from .functions import flatten as flatten
from .functions import leaves as leaves
from .functions import map as map
from .functions import reduce as reduce
from .functions import reduce_associative as reduce_associative
from .treedef import Structure as Structure
from .treedef import structure as structure
from .treedef import transpose as transpose
from .treedef import unflatten as unflatten
from .with_path import flatten_with_path as flatten_with_path
from .with_path import leaves_with_path as leaves_with_path
from .with_path import map_with_path as map_with_path

# A type checker knows `dataclasses.field`, by which JAX declares it.
if _TYPE_CHECKING:  # pragma: no cover: for type checkers
    from jax.tree import static as static
else:
    from .functions import static as static

_modules = {"functions", "treedef", "with_path"}
__all__ = sorted(name for name in {*globals()} - _modules if not name.startswith("_"))
