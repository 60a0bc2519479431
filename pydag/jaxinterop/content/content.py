# SPDX-License-Identifier: Apache-2.0
"""A tree taken apart: the leaves that JAX traces, and the `Content`, which is all the rest.

Everything at the boundary takes a tree apart by `take_apart`, and puts it together by
`Content.build`. `Content.match` finds in another tree what it has at the place of each traced leaf.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from typing import Any

import pydag._core as _core
from pydag._core import PyDagSpec, SpecKey
from pydag.structure.listing import shorten
from pydag.structure.text import short_repr
from pydag.typing import Dag, IsLeaf, Leaf

from .leaves import is_array, is_number, static_positions
from .options import Options
from .paths import Roots, path_texts
from .structure import check_structure
from .values import ATOMS, check_value, is_value, tracer_in
from .variables import Variable, with_variables

PLAIN = Options()


class Content:
    """A tree without the leaves that JAX traces: what a function is compiled for.

    Two are equal where a function that sees both trees could find no difference but arrays.

    Args:
        key: The structure, sharing included. A `SpecKey` compares the order in which dicts were
            filled, too; a `PyDagSpec` doesn't.
        positions: Of the static leaves among all, in order.
        values: The static leaves.
    """

    __slots__ = ("_are_traced", "key", "positions", "values")

    def __init__(
        self, key: SpecKey | PyDagSpec, positions: tuple[int, ...], values: tuple[Leaf, ...]
    ) -> None:
        self.key, self.positions, self.values = key, positions, values
        self._are_traced: bytearray | None = None  # for each leaf; as long as nobody asks, None

    @property
    def spec(self) -> PyDagSpec:
        """The structure."""
        return self.key.spec if type(self.key) is SpecKey else self.key

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Content):
            return NotImplemented
        if self.key != other.key or self.positions != other.positions:
            return False
        return _core.is_same_value(self.values, other.values)

    def __hash__(self) -> int:
        return hash((self.key, _core.value_hash(self.values)))

    def __repr__(self) -> str:
        text = self.spec._brief_repr()
        if type(self.key) is SpecKey:  # which shows the order of dicts and attributes
            text = shorten(repr(self.key).removeprefix("SpecKey(").removesuffix(")"), 4000)
        if not self.positions:
            return text
        paths = path_texts(self.spec, "")
        found = zip(self.positions, self.values, strict=True)
        return f"{text} with {', '.join(f'{paths[i]}: {short_repr(x)}' for i, x in found)}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (self.spec, type(self.key) is SpecKey, self.positions, self.values)

    def traced_positions(self) -> Sequence[int]:
        """Where the traced leaves stand, among all."""
        count = self.spec.num_leaves
        return list(compress(range(count), self.are_traced())) if self.positions else range(count)

    def are_traced(self) -> bytearray:
        """Whether each leaf is traced."""
        flags = self._are_traced
        if flags is None:
            flags = bytearray(b"\1") * self.spec.num_leaves
            for i in self.positions:
                flags[i] = 0
            self._are_traced = flags
        return flags

    def traced_among(self, leaves: Sequence[Any]) -> Sequence[Any]:
        """Those of as many things as there are leaves that stand for traced ones."""
        return list(compress(leaves, self.are_traced())) if self.positions else leaves

    def all_leaves(self, leaves: Iterable[Leaf]) -> list[Leaf]:
        """All leaves, given the traced ones."""
        if not self.positions:
            return list(leaves)
        found: list[Leaf] = [None] * self.spec.num_leaves
        for i, leaf in zip(self.positions, self.values, strict=True):
            found[i] = leaf
        for i, leaf in zip(self.traced_positions(), leaves, strict=True):
            found[i] = leaf
        return found

    def build(self, leaves: Iterable[Leaf]) -> Dag:
        """A fresh tree with these traced leaves."""
        return _core.unflatten(self.spec, self.all_leaves(leaves))

    def match(self, tree: Dag, roots: Roots, what: str = "") -> Sequence[Any]:
        """What another tree has at the place of each traced leaf.

        Args:
            roots: Begin its paths.
            what: Names it in a note to an error.

        Raises:
            ValueError: It has another structure.
            SharingError: It has two different things for one leaf.
        """
        try:
            found = _core.match_at(self.spec, tree, roots)
        except ValueError as error:
            if what:
                error.add_note(f"The tree that doesn't fit is {what}.")
            raise
        return self.traced_among(found)

    def paths(self, roots: Roots) -> Sequence[str]:
        """The path of each traced leaf."""
        return self.traced_among(path_texts(self.spec, roots))


def _arrived(spec: PyDagSpec, is_ordered: bool, positions: Any, values: Any) -> Content:
    return Content(_core.spec_key(spec) if is_ordered else spec, positions, values)


def take_apart(
    tree: Dag,
    options: Options = PLAIN,
    roots: Roots = "tree",
    *,
    is_result: bool = False,
    by_tuples: bool = False,
    is_leaf: IsLeaf | None = None,
) -> tuple[list[Leaf], Content]:
    """The traced leaves of a tree, each distinct one once, and its content.

    Args:
        roots: What errors call the tree.
        is_result: Whether a function returned it. Then the order of dicts isn't compared.
        by_tuples: Whether an array to which tuples alone lead is a variable of its own at each
            place.
        is_leaf: Asked once per distinct object before it is opened. What it keeps whole is traced.

    Raises:
        TypeError: A static leaf is no value; in a result, it is an iterator or leads to a tracer.
        SharingError: A number is a module's configuration by one path, and data by another.
    """
    if by_tuples and options.identity == "all":
        tree = with_variables(tree, options.namespace)
    leaves, spec = options.flatten(tree, roots, is_leaf)
    if by_tuples:
        leaves = [x.array if type(x) is Variable else x for x in leaves]
    check_structure(spec, roots)
    selected = options.selected(leaves, spec, roots, is_result)
    positions = static_positions(leaves, spec, roots, selected)
    if is_leaf is not None:
        positions = tuple(
            i for i in positions if _core.is_leaf(leaves[i], namespace=options.namespace)
        )
    values = tuple(leaves[i] for i in positions)
    for number in _doubtful(values):
        i, value = positions[number], values[number]
        _check(value, functools.partial(_place, spec, roots, i), i in selected, is_result)
    key = spec if is_result else _core.spec_key(spec)
    content = Content(key, positions, values)
    return list(content.traced_among(leaves)), content


def _doubtful(values: Sequence[Leaf]) -> Sequence[int]:
    """The numbers of the static leaves that have to be looked at: text and numbers are values."""
    examples = _core.one_of_each_class(values) if values else {}
    classes = [cls for cls, x in examples.items() if type(x) not in ATOMS and not is_number(x)]
    return _core.positions_of_classes(values, classes) if classes else ()


def _place(spec: PyDagSpec, roots: Roots, position: int) -> str:
    return path_texts(spec, roots)[position]


def _check(value: Leaf, place: Callable[[], str], is_selected: bool, is_result: bool) -> None:
    can_be = is_selected or is_value(value)
    if is_result and can_be and (tracer := tracer_in(value)) is not None:
        where = place()
        raise TypeError(
            f"{where} is {short_repr(value)}, and leads to an array that is being traced: "
            f"{short_repr(tracer)}\n  That array is gone when the function returned. Return the "
            "array itself, or a jax.tree_util.Partial of it, which JAX opens."
        )
    if not is_selected:
        check_value(value, place)
        return
    try:
        hash(value)
    except TypeError as error:
        what, cure = "", "or make it hashable, such as a tuple for a list"
        if is_array(value):
            what, cure = "an array and ", "and leave arrays to JAX"
        raise TypeError(
            f"{place()} is {what}selected by static=, and can't be hashed: {error}\n  What is "
            f"static is part of the key of the compiled function. Select configuration, {cure}."
        ) from None
