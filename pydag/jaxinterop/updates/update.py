# SPDX-License-Identifier: Apache-2.0
"""Arguments that are updated: leaves that a function wrote are written into the caller's objects.

The leaves are written when the call returns, each once, either all of them or none. Structure,
sharing and static leaves must not change. Objects keep their identity, in the result too.
"""

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import pydag._core as _core
from pydag._core import PyDagSpec
from pydag.errors import SharingError
from pydag.jaxinterop.content.leaves import is_number, is_traced, static_positions
from pydag.jaxinterop.content.paths import CALL, MISSING, path_texts
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.packed.dag import Dag as PackedDag
from pydag.jaxinterop.treatments.arguments import Chosen, Spot, pick
from pydag.sharing.update import find_writer, writer_finders
from pydag.structure.text import short_repr
from pydag.typing import Dag, Leaf

from .changes import Given, nodes_of
from .ties import Part, Ties, ways_to


class Update(NamedTuple):
    """What a call writes into its arguments: new leaves; the plan says where."""

    plan: Any = None
    leaves: tuple[Leaf, ...] = ()

    def beside(self, packed: Any) -> Any:
        """The result with this beside it, for JAX."""
        return _core.make_updated(None, (packed, self.plan, self.leaves))


class UpdatedArguments:
    """The arguments of a call that are updated, as the function gets them.

    Args:
        given: The call.
        chosen: Which of the arguments are updated.
        donated: The positions of donated leaves, which the caller's objects get back.
        is_staged: Whether the function is traced to be run later.
    """

    def __init__(
        self, given: Given, chosen: Chosen, donated: Collection[int], is_staged: bool
    ) -> None:
        args, kwargs = given.tree
        self._given, self._donated, self._is_staged = given, donated, is_staged
        namespace, updated = given.options.namespace, chosen.spots(args, kwargs)
        # An argument that is an array itself holds nothing: it can't be written, nor be tied.
        holders: list[Spot] = [
            spot
            for spot, x in (*enumerate(args), *kwargs.items())
            if not _core.is_leaf(x, namespace=namespace)
        ]
        self.spots = [spot for spot in holders if spot in updated]
        self._own = Part(given, self.spots)
        others = Part(given, [spot for spot in holders if spot not in updated])
        self._ties = Ties(given, self._own, others)
        self._spec = given.options.flatten(self._own.tree, self._own.roots)[1]

    def update(self, result: Dag) -> Update:
        """What the function has written, and which of its objects it returns."""
        given, own = self._given, self._own
        leaves, spec = given.options.flatten(own.tree, own.roots)
        if spec != self._spec:
            raise self._other_structure(spec)
        written: dict[int, Leaf] = {}
        static = frozenset(static_positions(given.leaves, given.spec, CALL))
        for number, leaf in zip(own.numbers, leaves, strict=True):
            old = given.leaves[number]
            if number in static:
                self._check_static(number, old, leaf)
            elif leaf is not old:
                self._check_written(number, leaf)
                # A number in the place of an array is one of no dimension, as what `jit` returns.
                written[number] = jnp.asarray(leaf) if is_number(leaf) else leaf
        nodes = own.nodes()
        if written:
            self._ties.check(written, nodes)
        kept = {i: given.leaves[i] for i in own.numbers if i in self._donated}
        written = {**kept, **written}
        returned = self._returned(result, nodes)
        if not written and returned is None:
            return Update()
        plan = _core.update_plan(
            spec=given.spec,
            positions=tuple(written),
            writers=find_writer,
            returned=returned,
            roots=CALL,
        )
        olds = {id(leaf) for leaf in given.leaves}
        copied = (
            jnp.copy(x) if id(x) in olds and i not in kept and not jax_private.is_ref(x) else x
            for i, x in written.items()
        )
        return Update(plan, tuple(copied))

    def _place(self, number: int) -> str:
        return path_texts(self._given.spec, CALL)[number]

    def _check_static(self, number: int, old: Leaf, new: Leaf) -> None:
        if not _core.is_same_value(old, new):
            raise ValueError(
                f"{self._place(number)} was {short_repr(old)} and is {short_repr(new)}: it is "
                "static, and an update only writes arrays\n  If it changes from call to call, make "
                "it an array; or return it, and set it after the call."
            )

    def _check_written(self, number: int, leaf: Leaf) -> None:
        if not is_traced(leaf):
            raise ValueError(
                f"{self._place(number)} was an array and is {short_repr(leaf)}: an update only "
                "writes arrays\n  Set what is configuration outside of the function."
            )
        if jax_private.is_dead(leaf):
            raise jax.errors.UnexpectedTracerError(
                f"{self._place(number)} was written inside of an inner function (jit, scan, cond "
                "...) whose trace has ended\n  Pass the object to the inner function as an "
                "argument, with update_argnums there; or return what changed."
            )
        if jax_private.is_ref(leaf) and self._is_staged:
            raise TypeError(
                f"the function puts another ref at {self._place(number)}, which can't come out of "
                "a compiled function as an update\n"
                "  Write into the ref that stands there: ref[...] = value."
            )

    def _other_structure(self, spec: PyDagSpec) -> Exception:
        others = [c.text for c in self._given.changes() if MISSING in (c.old, c.new)]
        unfolds_alike = self._spec.num_paths == spec.num_paths and (
            self._spec.is_prefix(spec) or spec.is_prefix(self._spec)
        )
        kind: type[Exception] = ValueError
        what = "its structure"
        cure = (
            "Make what is missing before the call (an array of zeros for None); set what is "
            "configuration, such as a flag, outside of the function; or return the new object."
        )
        if unfolds_alike and not others:
            kind, what = SharingError, "what is shared in it"
            cure = "Write jnp.copy(x) at one of the places; or give one object at both beforehand."
        shown = _core.explain(self._spec, spec, roots=self._own.roots)
        if others:
            shown += f"\n  What came or went: {', '.join(others[:4])}"
        return kind(
            "an argument that is updated must keep its structure, but the function changes "
            f"{what}\n  (first: as it was given, second: as the function left it)\n{shown}\n"
            f"  {cure}"
        )

    def _returned(self, result: Dag, nodes: dict[int, Any]) -> Callable[[Dag, Any], Dag] | None:
        """A function that puts the caller's own objects where updated ones (`nodes`) came back."""
        options, spots = self._given.options, self.spots
        both = nodes_of(result, options).keys() & nodes.keys()
        if not both:
            return None
        found, spec = _core.flatten(
            result, is_leaf=lambda node: id(node) in both, namespace=options.namespace
        )
        ways = ways_to(self._own.tree, both, options.namespace)
        wanted = [(i, ways[id(x)]) for i, x in enumerate(found) if id(x) in ways]

        def put(result: Dag, arguments: Any) -> Dag:
            # The result has the structure that it had when it was traced.
            parts, own = spec.flatten_up_to(result), pick(arguments, spots)
            for i, way in wanted:
                parts[i] = way(own)
            return _core.unflatten(spec, parts)

        return put


def _writer_of(cls: type) -> Any:
    """How a Dag is written; None for other classes."""
    return _write_dag if issubclass(cls, PackedDag) else None


writer_finders.append(_writer_of)


def _write_dag(dag: PackedDag[Any], leaves: tuple[Leaf, ...]) -> None:
    """Writes leaves into the tree of a Dag."""
    _, content = dag.parts()
    holder = [dag.tree]
    spec = _core.collect_specs([content.spec], namespace=content.spec.namespace)
    positions = tuple(content.traced_positions())
    plan = _core.update_plan(spec=spec, positions=positions, writers=find_writer)
    _core.carry_out(plan, holder, leaves)
    dag._content, dag._leaves, dag._tree = content, list(leaves), (holder[0],)
