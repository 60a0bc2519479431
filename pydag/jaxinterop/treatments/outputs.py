# SPDX-License-Identifier: Apache-2.0
"""Results whose leaves get different treatments: shardings, axes, specs.

JAX wants the treatments before it calls the function, whose result isn't known then. So the leaves
of the result come in groups, one for each treatment that the user named.
"""

import dataclasses
import inspect
from collections.abc import Iterable, Sequence
from typing import Any

import jax
from jax.experimental.layout import Format

import pydag._core as _core
from pydag.jaxinterop.content.content import Content, take_apart
from pydag.jaxinterop.content.options import Options
from pydag.jaxinterop.content.packed import Origins, pack, packed_of, unpack, without_refs
from pydag.structure.text import short_repr
from pydag.typing import Dag, Leaf

from .treatments import Question, answers_in, treatments


class Outputs:
    """The treatments of a result.

    Args:
        nothing: The treatment of what has no leaves.

    Attributes:
        prefix: What JAX is given for the user's.
    """

    def __init__(self, question: Question, prefix: Any, nothing: Any, options: Options) -> None:
        answers, spec = answers_in(prefix, options.namespace, question.is_answer)
        self._question, self._given, self._options = question, prefix, options
        self._answers: list[Any] = []
        self._is_one, self.prefix = spec.is_leaf(), prefix
        if self._is_one:
            return
        owned = frozenset[int]().union(*_core.module_leaves(spec))
        is_answer = question.is_answer or (lambda x: x is None or type(x) is int)
        for i, answer in enumerate(answers):
            if not is_answer(answer) and (i in owned or isinstance(answer, str)):
                continue  # configuration
            if answer not in self._answers:
                self._answers.append(answer)
        self.prefix = Grouped(nothing, self._answers)

    def pack(self, result: Dag, origins: Origins, *, makes_refs: bool = False) -> Any:
        """The result of a function, for JAX."""
        if self._is_one:
            return pack(result, self._options, origins, makes_refs=makes_refs)
        leaves, content = take_apart(result, self._options, "result", is_result=True)
        found = treatments(self._question, self._given, result, content, self._options, "result")
        arrays, sources = without_refs(leaves, origins, makes_refs)
        if sources is not None:
            found = [x for x, source in zip(found, sources, strict=True) if source < 0]
        for answer in found:
            if answer not in self._answers:
                raise TypeError(f"{self._question.name} has {short_repr(answer)} for an array")
        order = tuple(map(self._answers.index, found))
        groups = [
            [x for x, group in zip(arrays, order, strict=True) if group == number]
            for number in range(len(self._answers))
        ]
        return Grouped(_About(content, sources, order), groups)


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class _About:
    """A grouped result without its leaves."""

    content: Content
    sources: tuple[int, ...] | None
    order: tuple[int, ...]


class Grouped:
    """A result whose leaves are in groups. A prefix of such a form has one treatment for each."""

    def __init__(self, about: Any, groups: Iterable[Any]) -> None:
        self.about, self.groups = about, list(groups)

    def fill(self, leaves: Sequence[Leaf]) -> Dag:
        """The result for a caller with these leaves: the core calls this."""
        waiting = list(map(iter, self.groups))
        found = [next(waiting[number]) for number in self.about.order]
        return unpack(packed_of(self.about.content, found, self.about.sources), leaves)


jax.tree_util.register_pytree_node(
    Grouped,
    lambda grouped: ((grouped.about, *grouped.groups), None),
    lambda _, parts: Grouped(parts[0], parts[1:]),
)
_core.set_filled_class(Grouped)


_UNSPECIFIED = type(inspect.signature(jax.jit).parameters["out_shardings"].default)
_SHARDINGS = (jax.sharding.Sharding, jax.sharding.PartitionSpec, jax.Device, Format, _UNSPECIFIED)


def is_sharding(x: Any) -> bool:
    """Whether something is a sharding, or None, which leaves the choice to JAX."""
    return x is None or isinstance(x, _SHARDINGS)
