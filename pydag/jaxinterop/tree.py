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

from .trees.copied import copy as copy
from .trees.functions import all as all
from .trees.functions import broadcast as broadcast
from .trees.functions import flatten as flatten
from .trees.functions import leaves as leaves
from .trees.functions import map as map
from .trees.functions import reduce as reduce
from .trees.functions import reduce_associative as reduce_associative
from .trees.structure import Structure as Structure
from .trees.structure import structure as structure
from .trees.structure import transpose as transpose
from .trees.structure import unflatten as unflatten
from .trees.with_path import flatten_with_path as flatten_with_path
from .trees.with_path import leaves_with_path as leaves_with_path
from .trees.with_path import map_with_path as map_with_path

if _TYPE_CHECKING:  # a type checker knows `dataclasses.field`, by which JAX declares it
    from jax.tree import static as static
else:
    from .trees.functions import static as static

__all__ = sorted(name for name in globals() if not name.startswith("_"))
