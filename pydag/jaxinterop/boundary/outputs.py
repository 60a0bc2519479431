# SPDX-License-Identifier: Apache-2.0
"""Results whose leaves get different treatments: axes, specs or shardings, as a tree prefix.

JAX wants these before it calls the function, when nobody knows yet which leaves are distinct. But
the treatments themselves are known. So the leaves are returned in groups, one for each treatment.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jax import tree_util

from pydag.jaxinterop.prefixes.treatments import Question, distinct, one_level, treatments
from pydag.jaxinterop.refs.access import new_ref
from pydag.jaxinterop.refs.results import (
    ARRAY,
    Given,
    Sources,
    with_refs,
    without_refs,
)
from pydag.jaxinterop.refs.table import NO_REFS, RefTable
from pydag.jaxinterop.static.paths import paths_of
from pydag.jaxinterop.static.untraced import Options, Untraced
from pydag.typing import Dag as AnyDag
from pydag.typing import Leaf

from .dag import InnerDag, to_outcome

Content = tuple[Untraced, tuple[int | None, ...], Sources | None]


class Shell:
    """A pytree without children, which carries something past JAX."""

    def __init__(self, content: Any) -> None:
        self.content = content


class Group:
    """Leaves of a result that get one treatment. JAX's paths to them are those in the result.

    Args:
        content: The untraced part of the result; the group of each of its traced leaves, None for a
            ref of the caller's; and where refs are among them, where each comes from.
        number: Which group it is.
    """

    def __init__(self, leaves: Iterable[Leaf], content: Content, number: int) -> None:
        self.leaves, self.content, self.number = tuple(leaves), content, number

    def paths(self) -> list[str]:
        untraced, order, _ = self.content
        pairs = zip(paths_of(untraced), order, strict=True)
        return [path for path, group in pairs if group == self.number]


class Grouped:
    """A result taken apart: for each treatment the leaves that get it."""

    def __init__(self, shell: Any, *groups: Any) -> None:
        self.shell = shell
        self.groups = groups

    @property
    def tree(self) -> AnyDag:
        """The result, put together."""
        return self.fill(())

    def fill(
        self,
        given: Sequence[Leaf],
        make: Callable[[Any], Any] = new_ref,
        table: RefTable = NO_REFS,
    ) -> AnyDag:
        """The result for a caller with these leaves, put together."""
        untraced, order, sources = self.shell.content
        untraced = table.shown(untraced)
        waiting = [iter(group.leaves) for group in self.groups]
        leaves: list[Leaf] = [next(waiting[group]) for group in order if group is not None]
        return untraced.build(with_refs(leaves, sources, given, make))


tree_util.register_pytree_node(Shell, lambda s: ((), s.content), lambda content, _: Shell(content))
tree_util.register_pytree_with_keys(
    Group,
    lambda g: (tuple(zip(g.paths(), g.leaves, strict=True)), (g.content, g.number)),
    lambda aux, leaves: Group(leaves, *aux),
    lambda g: (g.leaves, (g.content, g.number)),
)
tree_util.register_pytree_with_keys(
    Grouped,
    lambda g: (tuple(("", child) for child in (g.shell, *g.groups)), None),
    lambda _, children: Grouped(*children),
    lambda g: ((g.shell, *g.groups), None),
)


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
        self.prefix = prefix if self.is_one else Grouped(nothing, *self.values)

    def pack(self, result: AnyDag, given: Given | None = None, table: RefTable = NO_REFS) -> Any:
        """The result for JAX: `prefix` is a tree prefix of it, and its `.tree` is the result.

        Args:
            given: The refs that the function was given, where JAX returns none.
            table: The refs that the function was given, where numbers for them go through JAX.
        """
        dag = table.hide(to_outcome(result, self.options))
        if self.is_one:
            return dag
        treated = treatments(
            {"result": result}, {"result": self.given}, self.question, self.options
        )
        leaves: Sequence[Leaf] = dag._leaves
        sources: Sources | None = None
        if given is not None:
            leaves, sources = without_refs(leaves, given)
        numbers = [self.values.index(treated[i]) for i in dag._untraced.traced_positions()]
        found = sources or [ARRAY] * len(numbers)
        order = tuple(n if source < 0 else None for n, source in zip(numbers, found, strict=True))
        groups: list[list[Leaf]] = [[] for _ in self.values]
        for group, leaf in zip((n for n in order if n is not None), leaves, strict=True):
            groups[group].append(leaf)
        content = dag._untraced, order, sources
        return Grouped(Shell(content), *(Group(g, content, i) for i, g in enumerate(groups)))

    @staticmethod
    def open(found: Any, table: RefTable) -> AnyDag:
        """The result, from what JAX returned for `pack`, with refs for their numbers.

        A result that went to JAX as it is comes back as it is.
        """
        if isinstance(found, InnerDag):
            return table.show(found).tree
        return found.fill((), table=table) if isinstance(found, Grouped) else found
