# SPDX-License-Identifier: Apache-2.0
"""What stages keep of the call that they are for, and trees of what JAX says of its leaves.

Nothing that is kept is as large as the arrays. JAX knows the flat function alone. Whatever it says
of each leaf (a type, a sharding, a layout) stands here where the leaf stands, at all of its places;
None stands at what JAX doesn't trace. An instance of a class that JAX opens has, to JAX, the
structure that it has in the arguments: so JAX takes these trees for prefixes of them.
"""

from collections.abc import Sequence
from typing import Any

import jax

from pydag.jaxinterop.messages.roots import HELD
from pydag.jaxinterop.packed.derivatives import Structures, tree_of_descriptions
from pydag.jaxinterop.packed.outputs import unpacked
from pydag.jaxinterop.prefixes.arguments import Args, Chosen, Kwargs, argument_text, wrap_static
from pydag.jaxinterop.refs.access import ref_kinds
from pydag.jaxinterop.static.differentiable import shape_of
from pydag.jaxinterop.static.untraced import take_apart
from pydag.jaxinterop.updates.update import result_of
from pydag.typing import Dag, Leaf

from .extra_results import TracedCall
from .flat_arguments import join
from .key import Key

_NO_REF = "not a ref"


class CallShape:
    """A call without its arrays.

    Args:
        traced_call: The call.
    """

    def __init__(self, traced_call: TracedCall) -> None:
        self._call_key, self.is_spread = traced_call.arguments[0], traced_call.is_spread
        self.key: Key = traced_call.key
        self._has_written = traced_call.written is not None
        self._refs: dict[int, Any] = {}  # a description of each ref, by its place among all leaves
        self._kinds = ref_kinds(traced_call.leaves)
        if self._kinds:
            self._refs = {i: shape_of(traced_call.leaves[i]) for i in self._kinds}

    def is_for(self, traced_call: TracedCall) -> bool:
        """Whether what was compiled for this call can run the other."""
        return bool(self._call_key == traced_call.arguments[0])

    def ref_difference(self, leaves: Sequence[Leaf]) -> str:
        """Where another call of the same structure has other refs, in words."""
        first, second = self._kinds, ref_kinds(leaves)
        accessors = self.key.untraced.spec.accessors()
        return "\n".join(
            f"{argument_text(accessors[i])}\n"
            f"  first:  {first.get(i, _NO_REF)}\n  second: {second.get(i, _NO_REF)}"
            for i in sorted(first.keys() | second.keys())
            if first.get(i) != second.get(i)
        )

    def described(self, found: Any) -> Dag:
        """The result, with shapes and types for arrays, from those of what is returned."""
        if self._has_written:
            found = found[0]
        count = self.key.untraced.spec.num_leaves
        leaves = [self._refs.get(i) for i in range(count)]  # a result takes only refs from them
        return unpacked(result_of(found), leaves, lambda content: content)


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
