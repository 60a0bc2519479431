# SPDX-License-Identifier: Apache-2.0
"""What JAX says of the leaves of a compiled function, as trees like the arguments and the result.

JAX knows the flat function alone. Whatever it says of each leaf (a type, a sharding, a layout)
stands here where the leaf stands, at all of its places; None stands at what JAX doesn't trace. An
instance of a class that JAX opens has, to JAX, the structure that it has in the arguments: so JAX
takes these trees for prefixes of them.
"""

from typing import Any

import jax

from pydag.jaxinterop.messages.roots import HELD
from pydag.jaxinterop.packed.derivatives import Structures, tree_of_descriptions
from pydag.jaxinterop.prefixes.arguments import Args, Chosen, Kwargs, wrap_static
from pydag.jaxinterop.static.untraced import take_apart
from pydag.typing import Dag

from .extra_results import TracedCall
from .flat_arguments import join


class InputTrees:
    """Trees like `(args, kwargs)`, without the static arguments.

    Args:
        traced_call: The call.
        args, kwargs: The arguments, of which only the structure is kept.
        static: Which of them are static.
    """

    def __init__(self, traced_call: TracedCall, args: Args, kwargs: Kwargs, static: Chosen) -> None:
        self._untraced, self._static = traced_call.key.untraced, static.spots(args, kwargs)
        self._key, self._is_spread = traced_call.arguments[0].value, traced_call.is_spread
        self._structures = Structures.of(wrap_static(static, args, kwargs), self._untraced)

    def of(self, found: Any) -> tuple[Args, Kwargs]:
        """The tree of what JAX says, which is structured as the flat arguments are."""
        donated, kept = ((), found[0]) if self._is_spread else found[0]
        untraced, key = self._untraced, self._key
        leaves = join(key.donated, key.order, donated, kept)
        tree = tree_of_descriptions(untraced, leaves)
        self._structures.note(tree, untraced.options)
        args, kwargs = tree
        return (
            tuple(arg for i, arg in enumerate(args) if i not in self._static),
            {n: arg for n, arg in kwargs.items() if n not in self._static and n != HELD},
        )


def result_tree(info: Dag, outlines: Any, found: Any, options: Any) -> Dag:
    """The tree of what JAX says of the leaves of a result.

    Args:
        info: The result, with a description of each array.
        outlines: The same descriptions, as JAX has them.
        found: What JAX says, structured as those are.
    """
    untraced, leaves = take_apart(info, options, "result", is_returned=True)
    known: dict[int, Any] = {}
    jax.tree.map(lambda outline, what: known.update({id(outline): what}), outlines, found)
    tree = tree_of_descriptions(untraced, [known.get(id(leaf)) for leaf in leaves])
    Structures.of(info, untraced).note(tree, options)
    return tree
