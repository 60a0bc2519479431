# SPDX-License-Identifier: Apache-2.0
"""The mechanism of every wrapper: a DAG taken apart into what JAX traces, and all the rest.

What JAX gets is the distinct traced leaves, as a flat sequence. The rest is an `Untraced`, which
is compared and hashed: structure, sharing, static leaves. An untraced part and leaves make a DAG
again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import optree

import pydag._core as _core
from pydag._core import PyDagSpec, SpecKey
from pydag.jaxinterop.messages.roots import CALL, Roots, place_text
from pydag.jaxinterop.options import StaticOptions, TreeOptions, check_known
from pydag.structure.text import short_repr
from pydag.typing import Dag, Identity, Leaf, Where

from .bare_arrays import separated, without_bare
from .constants import with_state
from .leaves import Carried, Static
from .option import Shape, StaticOption
from .parted import PLAIN, Parting, parted
from .pick import put_in
from .positions import static_positions, without_static
from .refused import check_meta_fields, check_weak, holds_weak
from .unregistered import check_leaf, is_lazy, lazy_text


class Options(NamedTuple):
    """How a wrapper flattens."""

    namespace: str = ""
    identity: Identity = "all"
    static: StaticOption | None = None

    def __hash__(self) -> int:
        return 0 if self.static is None else 1  # the hash of text differs between processes

    @classmethod
    def of(cls, namespace: str, identity: Identity, static: Where | None) -> "Options":
        """The options of a wrapper as its caller gave them."""
        return cls(namespace, identity, StaticOption.of(static))

    @classmethod
    def given(cls, options: StaticOptions | TreeOptions, known: type) -> "Options":
        """The options of a wrapper as its caller gave them by keyword.

        Args:
            known: The class that lists the options that the wrapper has.

        Raises:
            TypeError: It doesn't have one of them.
        """
        given: Mapping[str, Any] = options
        check_known(given, known)
        static = StaticOption.of(given.get("static"))
        return cls(given.get("namespace", ""), given.get("identity", "all"), static)

    def flatten(self, tree: Dag, roots: Roots = "tree") -> tuple[list[Leaf], PyDagSpec]:
        """The leaves and the spec of a tree; errors speak of it by the user's names."""
        return _core.flatten_at(tree, roots, namespace=self.namespace, identity=self.identity)

    def selected(
        self, leaves: Sequence[Leaf], spec: PyDagSpec, roots: Roots, is_returned: bool = False
    ) -> Sequence[int]:
        """Which leaves of a tree are static because `static=` selects them."""
        if self.static is None:
            return ()
        if is_returned:
            return self.static.returned(leaves, spec, "tree")
        shape: Shape = "call" if roots == CALL else "tree"
        return self.static.given(leaves, spec, shape, must_match=shape == "call")

    def check_static(self, *trees: Dag) -> None:
        """Raises what `StaticOption.given` raises where `static=` selects nothing of some trees."""
        if self.static is not None:
            leaves, spec = self.flatten(trees)
            self.static.given(leaves, spec, "trees", must_match=True)

    def separated(self, arguments: Sequence[Dag]) -> list[Dag]:
        """Arguments that are told apart: `bare_arrays.separated`."""
        if self.identity == "nodes":
            return list(arguments)
        return separated(arguments, self.leaves)

    def separated_items(self, result: Dag) -> Dag:
        """A result in which each array that is an item of tuples alone has a leaf of its own."""
        if not isinstance(result, tuple) or self.identity == "nodes":
            return result
        items, spec = _core.flatten(
            result,
            is_leaf=lambda x: not isinstance(x, tuple),
            namespace=self.namespace,
            identity="nodes",
        )
        return spec.unflatten(self.separated(items))

    def leaves(self, tree: Dag) -> list[Leaf]:
        return _core.leaves(tree, namespace=self.namespace, identity=self.identity)


class SeenDerivatives(Protocol):
    """What JAX sees of the derivatives in a DAG: the structures of what they are for."""

    def note(self, tree: Dag, options: Options) -> None:
        """Notes it for the derivatives in a tree of the same structure."""


class Content(NamedTuple):
    """What must be equal in two DAGs that JAX compares: all but traced leaves and dict order."""

    spec: PyDagSpec
    positions: tuple[int, ...]
    statics: tuple[Static, ...]
    options: Options
    whole: Carried  # the untraced part, with the order of dicts

    def untraced(self) -> "Untraced":
        """The untraced part, with the order in which the dicts of this DAG were filled."""
        found: Untraced = self.whole.value
        return found


class Untraced(NamedTuple):
    """A DAG without its traced leaves. Hashable where the static leaves are.

    Those of two DAGs are equal where a function could not tell the DAGs apart by anything but
    their arrays: the order in which dicts were filled counts.
    """

    spec_key: SpecKey
    positions: tuple[int, ...]  # of the static leaves, among all
    statics: tuple[Static, ...]
    options: Options  # with which the DAG was, and will be, flattened
    seen: SeenDerivatives | None = None  # what JAX sees of the derivatives in it

    @property
    def spec(self) -> PyDagSpec:
        """The structure."""
        return self.spec_key.spec

    @property
    def content(self) -> Content:
        """This untraced part, but for the order of dicts."""
        return Content(self.spec_key.spec, *self[1:-1], Carried(self))

    def __repr__(self) -> str:
        return self.describe(lambda accessor: accessor.codify(""))

    def _brief_repr(self) -> str:
        return f"a structure of {self.size()}"

    def size(self) -> str:
        """How many leaves of each kind there are, in words."""
        arrays = self.spec.num_leaves - len(self.positions)
        text = f"{arrays} array" + "s" * (arrays != 1)
        return text + (f" and {len(self.positions)} static" if self.positions else "")

    def describe(self, text: Callable[[optree.PyTreeAccessor], str]) -> str:
        """The structure; and the static leaves with their paths, such as `['name']: 'net'`."""
        structure = repr(self.spec_key).removeprefix("SpecKey(PyDagSpec(").removesuffix("))")
        if not self.positions:
            return structure
        accessors = self.spec.accessors()
        pairs = zip(self.positions, self.statics, strict=True)
        values = (f"{text(accessors[i])}: {short_repr(static.inner)}" for i, static in pairs)
        return f"{structure} with {', '.join(values)}"

    def all_leaves(self, traced: Iterable[Leaf]) -> list[Leaf]:
        """The leaves of a DAG with these, the static ones where they stand."""
        return put_in(traced, zip(self.positions, (x.value for x in self.statics), strict=True))

    def build(self, traced: Iterable[Leaf]) -> Dag:
        """A fresh DAG with these leaves; where JAX puts something else for a leaf, with that."""
        return self.build_of(self.all_leaves(traced) if self.positions else traced)

    def build_of(self, leaves: Iterable[Leaf]) -> Dag:
        """A fresh DAG with these leaves, static ones among them."""
        tree = _core.unflatten(self.spec_key.spec, leaves)
        if self.seen is not None:
            self.seen.note(tree, self.options)
        return tree

    def check_not_lazy(
        self, what: str, place: Callable[[optree.PyTreeAccessor], str | None]
    ) -> None:
        """Checks that there is no iterator and no view, in which JAX sees no arrays.

        Args:
            what: Says what is done with the arrays, such as "mapped over".
            place: Gives the path of a leaf as text; None for a leaf that doesn't count.

        Raises:
            TypeError: There is one.
        """
        for position, static in zip(self.positions, self.statics, strict=True):
            if is_lazy(static.inner):
                where = place(self.spec.accessors()[position])
                if where is not None:
                    raise TypeError(lazy_text(static.inner, where, what))

    def with_states(self, exempt: Sequence[int] = ()) -> "Untraced":
        """This as part of a key, in which what constant objects hold counts.

        Args:
            exempt: Positions of leaves whose contents don't count.
        """
        if not self.positions:
            return self
        pairs, skipped = zip(self.positions, self.statics, strict=True), frozenset(exempt)
        return self._replace(statics=tuple(x if i in skipped else with_state(x) for i, x in pairs))

    def check_weak(self, tree: Dag, roots: Roots) -> None:
        """`refused.check_weak` of the tree that this was taken from."""
        if any(holds_weak(static.inner) for static in self.statics):
            leaves, spec = self.options.flatten(tree, roots)
            check_weak(tree, leaves, spec, self.options.identity, roots)

    def unseen(self) -> "Untraced":
        """This, but for what JAX sees of derivatives."""
        return self if self.seen is None else self._replace(seen=None)

    def without_statics(self) -> "Untraced":
        """This with None for each static leaf."""
        return self._replace(statics=(Static(None),) * len(self.statics))

    def traced_positions(self) -> list[int]:
        """Where the traced leaves stand, among all."""
        if not self.positions:
            return list(range(self.spec.num_leaves))
        skipped = frozenset(self.positions)
        return [i for i in range(self.spec.num_leaves) if i not in skipped]

    def traced_among(self, leaves: Sequence[Leaf]) -> Sequence[Leaf]:
        """The traced ones of all leaves."""
        return [leaves[i] for i in self.traced_positions()] if self.positions else leaves

    def rearranged(self, spec: PyDagSpec, leaves: Sequence[int]) -> "tuple[Untraced, list[int]]":
        """The untraced part of another structure of these leaves, and which traced ones it has.

        Args:
            leaves: For each leaf of that structure, which leaf of this one it is, among all.
        """
        statics = dict(zip(self.positions, self.statics, strict=True))
        traced = {position: i for i, position in enumerate(self.traced_positions())}
        positions = tuple(i for i, leaf in enumerate(leaves) if leaf in statics)
        found = tuple(statics[leaves[i]] for i in positions)
        return Untraced(_core.spec_key(spec), positions, found, self.options), [
            traced[leaf] for leaf in leaves if leaf in traced
        ]

    def match(self, tree: Dag, what: str, root: str) -> list[Leaf]:
        """What stands in a tree of this structure at the place of each traced leaf.

        At the places of static leaves there may be anything.

        Args:
            what: Says in an error what the tree is, such as "the cotangent".
            root: Begins the paths in an error, such as "cotangent".

        Raises:
            ValueError: The tree is structured in another way.
            SharingError: It has different objects where this one has one.
        """
        try:
            found = _core.match_at(self.spec, tree, root)
        except ValueError as error:
            error.add_note(f"The tree that doesn't fit is {what}.")
            raise
        return [found[i] for i in self.traced_positions()] if self.positions else found


def _place(spec: PyDagSpec, position: int, roots: Roots) -> str:
    return place_text(spec.accessors()[position], roots)


# The classes of values that hold nothing, by id.
_PLAIN = PLAIN | {id(Static)}


def check_statics(
    leaves: Sequence[Leaf],
    spec: PyDagSpec,
    positions: Sequence[int],
    roots: Roots,
    selected: Sequence[int] = (),
    is_returned: bool = False,
) -> None:
    """Raises the `TypeError`s of `untraced_of`."""
    check_meta_fields(spec, roots)
    chosen = leaves if len(positions) == len(leaves) else [leaves[i] for i in positions]
    if _core.one_of_each_class(chosen).keys() <= _PLAIN:
        return
    exempt = frozenset(selected)
    for position, leaf in zip(positions, chosen, strict=True):
        if id(type(leaf)) in _PLAIN or position in exempt:
            continue
        check_leaf(leaf, partial(_place, spec, position, roots), is_returned)


def untraced_of(
    leaves: Sequence[Leaf],
    spec: PyDagSpec,
    positions: tuple[int, ...],
    options: Options,
    roots: Roots,
    selected: Sequence[int] = (),
    is_returned: bool = False,
) -> Untraced:
    """The untraced part of a DAG with these leaves, of which those at `positions` are static.

    Args:
        selected: Those that `static=` selects. They may hold arrays: they are meant as constants.
        is_returned: Whether a function returned it.

    Raises:
        TypeError: One of them is an object that nobody registered, and holds arrays; or a meta
            field holds one; or a result holds such an object, or an iterator.
    """
    check_statics(leaves, spec, positions, roots, selected, is_returned)
    statics = tuple(Static(leaves[i]) for i in positions)
    return Untraced(_core.spec_key(spec), positions, statics, options)


def told_apart(
    tree: Dag, options: Options, roots: Roots = "tree"
) -> tuple[list[Leaf], PyDagSpec, Parting | None]:
    """The leaves of a DAG, its structure, and which leaves are static, where that is known.

    Raises:
        CycleError: An object contains itself.
        TypeError: A meta field holds an array.
    """
    leaves, spec = options.flatten(tree, roots)
    return leaves, spec, parting_of(leaves, spec, options, roots)


def parting_of(
    leaves: list[Leaf], spec: PyDagSpec, options: Options, roots: Roots = "tree"
) -> Parting | None:
    """Which leaves of a structure are static, where that is known; raises as `told_apart`."""
    parting = parted(leaves, spec, roots) if options.static is None else None
    if parting is not None:
        check_meta_fields(spec, roots)
    return parting


def structure_of(tree: Dag, options: Options) -> PyDagSpec:
    """The structure of a DAG; raises as `take_apart`."""
    found, spec, parting = told_apart(tree, options)
    if parting is None:
        _static_positions(found, spec, options, "tree", False)
    return spec


def _static_positions(
    leaves: list[Leaf], spec: PyDagSpec, options: Options, roots: Roots, is_returned: bool
) -> tuple[int, ...]:
    selected = options.selected(leaves, spec, roots, is_returned)
    positions = static_positions(leaves, spec, roots, selected)
    check_statics(leaves, spec, positions, roots, selected, is_returned)
    return positions


def take_apart(
    tree: Dag, options: Options, roots: Roots = "tree", is_returned: bool = False
) -> tuple[Untraced, Sequence[Leaf]]:
    """The untraced part of a DAG and its distinct traced leaves, in first-visit order.

    Args:
        roots: What errors call the tree.
        is_returned: Whether a function returned it.

    Raises:
        CycleError: An object contains itself.
        TypeError: A leaf is an object that nobody registered, and holds arrays.
    """
    found, spec, parting = told_apart(tree, options, roots)
    if parting is not None:
        statics = parting.statics(found)
        untraced = Untraced(_core.spec_key(spec), parting.static, statics, options)
        return untraced, parting.data(found)
    leaves = without_bare(found)
    positions = _static_positions(leaves, spec, options, roots, is_returned)
    statics = tuple(Static(leaves[i]) for i in positions)
    return Untraced(_core.spec_key(spec), positions, statics, options), without_static(
        leaves, positions
    )
