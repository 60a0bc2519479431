# SPDX-License-Identifier: Apache-2.0
"""What stages keep of the call that they are for; nothing that is as large as the arrays."""

from collections.abc import Sequence
from typing import Any

from pydag.jaxinterop.packed.outputs import unpacked
from pydag.jaxinterop.prefixes.arguments import argument_text
from pydag.jaxinterop.refs.access import ref_kinds
from pydag.jaxinterop.static.differentiable import shape_of
from pydag.jaxinterop.updates.update import result_of
from pydag.typing import Dag, Leaf

from .extra_results import TracedCall
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
