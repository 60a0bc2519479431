# SPDX-License-Identifier: Apache-2.0
"""Results whose leaves get different treatments: axes, specs or shardings, as a tree prefix.

JAX wants these before it calls the function, when nobody knows yet which leaves are distinct. But
the treatments themselves are known. So the leaves are returned in groups, one for each treatment.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pydag._core as _core
from pydag.jaxinterop.prefixes.treatments import Question, distinct, one_level, treatments
from pydag.jaxinterop.refs.access import new_ref
from pydag.jaxinterop.refs.results import Given, Sources, without_refs
from pydag.jaxinterop.refs.table import NO_REFS, RefTable
from pydag.jaxinterop.static.untraced import Options
from pydag.jaxinterop.structure.groups import grouped
from pydag.typing import Dag as AnyDag
from pydag.typing import Leaf

from .dag import InnerDag, Outcome, dag_of
from .packed import Packed, UntracedResult
from .result import compiled_result, is_result_itself


class Outputs:
    """How a function's result goes to JAX, given the treatments of its leaves.

    Args:
        prefix: The treatments.
        nothing: A treatment that fits a part without leaves.
    """

    def __init__(self, prefix: Any, nothing: Any, question: Question, options: Options) -> None:
        self.question, self.options, self.given = question, options, prefix
        self.is_one = one_level(prefix, options)[2].is_leaf()
        self.values = distinct(prefix, question, options)
        self.prefix = prefix if self.is_one else Packed((nothing, *self.values))

    def pack(self, result: AnyDag, table: RefTable = NO_REFS, given: Given | None = None) -> Any:
        """The result for JAX: `prefix` is a tree prefix of it. `unpacked` is its inverse.

        Args:
            table: The refs that the function was given, where numbers for them go through JAX.
            given: The refs that the function was given, where JAX returns none.
        """
        if self.is_one and is_result_itself(result):
            return result
        if self.is_one and given is not None:
            return compiled_result(result, self.options, given)
        dag = table.hide(dag_of(result, self.options, cls=Outcome))
        if self.is_one:
            return dag
        treated = treatments(
            {"result": result}, {"result": self.given}, self.question, self.options
        )
        leaves: Sequence[Leaf] = dag._leaves
        sources: Sources | None = None
        if given is not None:
            leaves, sources = without_refs(leaves, given)
        chosen = tuple(self.values.index(treated[i]) for i in dag._untraced.traced_positions())
        content = UntracedResult(dag._untraced, sources, chosen)
        groups = grouped(leaves, content.order(), len(self.values))
        return Packed((Packed((), content), *(Packed(g, content, i) for i, g in enumerate(groups))))


def unpacked(
    found: Any,
    given: Sequence[Leaf] = (),
    make: Callable[[Any], Any] = new_ref,
    table: RefTable = NO_REFS,
) -> AnyDag:
    """The result, from what JAX returned for what `Outputs.pack` gave it.

    Args:
        given: All leaves of the caller's arguments.
        make: Makes a ref of a content.
        table: The refs for which there are numbers.
    """
    if isinstance(found, InnerDag):
        return table.show(found).tree
    if isinstance(found, Packed):
        return found.fill(given, make, table)
    if isinstance(found, _core.Result) and _core.holds_refs(found):
        return _core.fill_result(found, given, make)
    return _core.build_result(found)
