# SPDX-License-Identifier: Apache-2.0
"""A tree taken apart: the leaves that JAX traces, and the `Content`, which is all the rest.

Everything at the boundary takes a tree apart by `take_apart`, and puts it together by
`Content.build`. `Content.match` finds in another tree what it has at the place of each traced leaf.
"""

from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pydag._core as _core
from pydag._core import PyDagSpec, SpecKey
from pydag.jaxinterop.foreign import jax_private
from pydag.structure.listing import shorten
from pydag.structure.reshared import in_common
from pydag.structure.text import short_repr
from pydag.typing import Dag, IsLeaf, Leaf

from .leaves import is_number
from .options import Options, Roots, path_texts
from .static import check, leaves_of_modules, remember, remembered, static_positions

PLAIN = Options()

Flat = tuple[list[Leaf], PyDagSpec, tuple[int, ...] | None]
"""All leaves of a tree, its structure, and the positions of the static leaves if remembered."""


@jax.tree_util.register_static
class Content:
    """A tree without the leaves that JAX traces: what a function is compiled for.

    Two are equal where a function that sees both trees could find no difference but arrays.

    Args:
        key: The structure, sharing included. A `SpecKey` compares the order in which dicts were
            filled, too; a `PyDagSpec` doesn't.
        positions: Of the static leaves among all, in order.
        values: The static leaves.

    Attributes:
        spec: The structure.
    """

    __slots__ = ("_are_traced", "key", "positions", "spec", "values")

    def __init__(
        self, key: SpecKey | PyDagSpec, positions: tuple[int, ...], values: tuple[Leaf, ...]
    ) -> None:
        self.key, self.positions, self.values = key, positions, values
        self.spec: PyDagSpec = key.spec if type(key) is SpecKey else key
        self._are_traced = bytearray(b"\1") * (self.spec.num_leaves if positions else 0)
        for i in positions:
            self._are_traced[i] = 0

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
        return Content, (self.key, self.positions, self.values)

    def traced_positions(self) -> Sequence[int]:
        """The positions of the traced leaves among all."""
        return self.traced_among(range(self.spec.num_leaves))

    def traced_among(self, leaves: Sequence[Any]) -> Sequence[Any]:
        """The items that belong to traced leaves, given an item for each leaf."""
        return list(compress(leaves, self._are_traced)) if self.positions else leaves

    def all_leaves(self, leaves: Iterable[Leaf]) -> list[Leaf]:
        """All leaves, given the traced leaves."""
        if not self.positions:
            return list(leaves)
        found: list[Leaf] = [None] * self.spec.num_leaves
        positions = *self.positions, *self.traced_positions()
        for i, leaf in zip(positions, (*self.values, *leaves), strict=True):
            found[i] = leaf
        return found

    def build(self, leaves: Iterable[Leaf]) -> Dag:
        """A fresh tree with these traced leaves."""
        return _core.unflatten(self.spec, self.all_leaves(leaves))

    def build_mapped(self, leaves: Sequence[Leaf]) -> Dag:
        """A fresh tree with these in place of the traced leaves, all of them data.

        A number that a module would hold becomes an array of no dimension: there, numbers are
        configuration. So a mask or a size for each array of a model has the model's structure.
        """
        owned, mixed = leaves_of_modules(self.spec)
        if (owned or mixed) and any(map(is_number, _core.one_of_each_class(leaves).values())):
            places = zip(self.traced_positions(), leaves, strict=True)
            by_module = owned | mixed
            leaves = [_as_array(x) if i in by_module and is_number(x) else x for i, x in places]
        return self.build(leaves)

    def match(self, tree: Dag, roots: Roots, what: str = "") -> Sequence[Any]:
        """What another tree has at the place of each traced leaf; `SharingError` if it has two.

        Args:
            roots: Begin its paths.
            what: Names it in a note to an error.
        """
        try:
            found = _core.match_at(self.spec, tree, roots)
        except ValueError as error:
            if what:
                error.add_note(f"The tree that doesn't fit is {what}.")
            raise
        return self.traced_among(found)

    def shared_with(self, others: Sequence[PyDagSpec]) -> tuple["Content", Sequence[int]]:
        """A content in which one object is what is one here and in all others.

        Returns:
            The content, this very one if nothing comes apart; and for each of its traced leaves,
            which one it is here.
        """
        made = in_common(self.spec, others)
        numbers = {position: i for i, position in enumerate(self.traced_positions())}
        picked = [numbers[leaf] for leaf in made.leaves if leaf in numbers]
        if made.spec == self.spec:
            return self, picked
        values = dict(zip(self.positions, self.values, strict=True))
        positions = tuple(i for i, leaf in enumerate(made.leaves) if leaf in values)
        key = _core.spec_key(made.spec) if type(self.key) is SpecKey else made.spec
        return Content(key, positions, tuple(values[made.leaves[i]] for i in positions)), picked

    def paths(self, roots: Roots) -> Sequence[str]:
        """The path of each traced leaf."""
        return self.traced_among(path_texts(self.spec, roots))


def _as_array(number: Any) -> Any:
    """Flags and integers are NumPy's, being read by Python; others are weakly typed, as in JAX."""
    if isinstance(number, float | complex) and not isinstance(number, np.generic):
        return jnp.asarray(number)
    return np.asarray(number)


def take_apart(
    tree: Dag,
    options: Options = PLAIN,
    roots: Roots = "tree",
    *,
    is_result: bool = False,
    by_tuples: bool = False,
    is_leaf: IsLeaf | None = None,
    has_names: bool = True,
    flat: Flat | None = None,
) -> tuple[list[Leaf], Content]:
    """The traced leaves of a tree, each distinct one once, and its content.

    Args:
        roots: What errors call the tree.
        is_result: Whether a function returned it. Then the order of dicts isn't compared.
        by_tuples: Whether an array to which tuples alone lead is a variable of its own at each
            place.
        is_leaf: Asked once per distinct object before it is opened. What it keeps whole is traced.
        has_names: Whether paths have names. To ask classes of JAX's registry for them takes long.
        flat: The tree, if the caller has flattened it without options.
    """
    namespace, identity = options.namespace, options.identity
    if by_tuples and identity == "all":
        tree = with_variables(tree, namespace)
    given = (tree, roots) if has_names else (tree,)
    flatten: Any = _core.flatten_at if has_names else _core.flatten
    is_plain = options.static is None and is_leaf is None
    if flat is None:
        leaves, spec = flatten(*given, is_leaf=is_leaf, namespace=namespace, identity=identity)
        if by_tuples:
            leaves = [x.array if type(x) is Variable else x for x in leaves]
        positions = remembered(leaves, spec) if is_plain else None
    else:
        leaves, spec, positions = flat
    if positions is None:
        selected: list[int] = []
        if options.static is not None:
            selected = options.selected(leaves, spec, roots, is_result)
        positions = static_positions(leaves, spec, roots, selected)
        if is_leaf is not None:
            positions = tuple(i for i in positions if _core.is_leaf(leaves[i], namespace=namespace))
        static = [leaves[i] for i in positions]
        check(spec, roots, positions, static, selected, is_result)
        if is_plain:
            remember(leaves, spec, positions)
    values = tuple([leaves[i] for i in positions])
    content = Content(spec if is_result else _core.spec_key(spec), positions, values)
    return list(content.traced_among(leaves)), content


class Variable:
    """Stands for an array while the tree that holds it is flattened: an object of its own."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array


def with_variables(tree: Dag, namespace: str) -> Dag:
    """The tree with a `Variable` for each array to which tuples alone lead.

    Tuples are values. So `grad(f, argnums=(0, 1))(s, s)` are two partial derivatives, and
    `(h, c) = (z, z)` is a carry of two arrays. A ref stays one object.
    """

    def is_kept(node: Any) -> bool:
        cls = type(node)
        if cls is tuple or not isinstance(node, tuple):
            return cls is not tuple
        is_registered = _core.find_registration(cls, namespace) is not None
        return is_registered or not _core.is_namedtuple_class(cls)

    def variable(leaf: Leaf) -> Any:
        is_array = isinstance(leaf, jax.Array | np.ndarray | jax.core.Tracer)
        is_own = type(leaf) is jax_private.ArrayImpl or (is_array and not jax_private.is_ref(leaf))
        return Variable(leaf) if is_own else leaf

    return _core.map(
        variable, tree, (), None, is_leaf=is_kept, namespace=namespace, identity="nodes"
    )
