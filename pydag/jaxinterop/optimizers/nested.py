# SPDX-License-Identifier: Apache-2.0
"""The nested dict that optax sees of a model: the arrays that are trained, each at one place.

It looks as flax's parameters do. Keys are attribute names, keys of dicts and indices; an array that
is at several places is at its anchor's, and a Variable of NNX is the array in it.
"""

import dataclasses
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import jax

import pydag._core as _core
from pydag.errors import SharingError
from pydag.jaxinterop.content.content import Content, take_apart
from pydag.jaxinterop.content.dag import Dag as PackedDag
from pydag.jaxinterop.content.leaves import is_number, is_traced
from pydag.jaxinterop.content.options import Options, path_texts
from pydag.jaxinterop.content.selection import variable_classes
from pydag.ops.select import dag_mask
from pydag.registry.classes import inherits
from pydag.structure.listing import Listing
from pydag.structure.text import short_repr
from pydag.typing import Dag, Leaf, Path, Where


def tree_of(tree: Dag, *, keeps_variables: bool = False) -> Dag:
    """The tree of a `Dag`, the values of a state of NNX, any other tree itself.

    `nnx.Optimizer` begins with a state of Variables, and updates by values.
    """
    nnx: Any = sys.modules.get("flax.nnx")
    if isinstance(tree, PackedDag):
        return tree.tree
    is_state = nnx is not None and isinstance(tree, nnx.State) and not keeps_variables
    return nnx.as_pure(tree) if is_state else tree


def apart(
    tree: Dag, options: Options, *, keeps_variables: bool = False
) -> tuple[Sequence[Leaf], Content]:
    """The traced leaves of a model, given as in `tree_of`, and its content."""
    if isinstance(tree, PackedDag):
        return tree.parts()
    return take_apart(tree_of(tree, keeps_variables=keeps_variables), options, "params")


@dataclasses.dataclass(frozen=True)
class Trained:
    """Which arrays of a model an optimizer trains: what its state knows, beside optax's."""

    spec: _core.PyDagSpec  # of the model
    positions: tuple[int, ...]  # of the arrays, among its leaves

    def __repr__(self) -> str:
        return f"Trained({len(self.positions)} of {self.spec._brief_repr()})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Trained, (self.spec, self.positions)

    @functools.cached_property
    def _ways(self) -> list[Path]:
        """The keys that lead to each array in the nested dict."""
        listing = Listing.of(self.spec)
        records, parents = listing.records, listing.parents
        ways: list[Path] = [
            tuple(
                records[step].entry
                for step in listing.way(listing.leaves[i])
                if not is_variable_class(records[parents[step]].type)
            )
            for i in self.positions
        ]
        keys: dict[Path, dict[Any, Any]] = {}
        for way in ways:
            for depth, key in enumerate(way):
                keys.setdefault(way[:depth], {})[key] = key
        if len(set(ways)) < len(ways):
            raise TypeError(
                "two arrays of the model have the same path: its class gives two children one name"
            )
        names = {above: _sortable(list(below)) for above, below in keys.items()}
        return [tuple(names[way[:i]][key] for i, key in enumerate(way)) for way in ways]

    def nested(self, values: Sequence[Any]) -> Any:
        """The nested dict of one value for each array."""
        root: dict[Any, Any] = {}
        for way, value in zip(self._ways, values, strict=True):
            if not way:
                return value  # the model is one array
            node = root
            for key in way[:-1]:
                node = node.setdefault(key, {})
            node[way[-1]] = value
        return root

    def values(self, nested: Any) -> list[Any]:
        """The values in such a dict."""
        return [functools.reduce(lambda node, key: node[key], way, nested) for way in self._ways]

    def match(self, tree: Dag, root: str) -> list[Any]:
        """What a tree of the model's form has for each leaf of the model."""
        return _core.match_at(self.spec, tree_of(tree), root)

    def pick(self, leaves: Sequence[Leaf]) -> list[Leaf]:
        """What is trained of all leaves."""
        return [leaves[i] for i in self.positions]

    def paths(self, root: str) -> list[str]:
        """The path of each array in the model."""
        return self.pick(path_texts(self.spec, root))


def is_variable_class(cls: object) -> bool:
    """Whether instances of a class are a variable, which stands for what it holds."""
    return isinstance(cls, type) and any(inherits(cls, known) for known, _ in variable_classes)


def _sortable(keys: list[Any]) -> dict[Any, Any]:
    """The names of keys in a dict that JAX has to sort."""
    try:
        sorted(keys)
        return dict(zip(keys, keys, strict=True))
    except TypeError:
        write = str if len(set(map(str, keys))) == len(keys) else repr
        return dict(zip(keys, map(write, keys), strict=True))


def shown_to_optax(value: Any, trained: Trained, leaves: Sequence[Leaf]) -> Any:
    """A further argument of `update`: a tree like the model, or a function of such, by dicts."""
    if value is None or is_traced(value) or is_number(value):
        return value
    try:
        return trained.nested(trained.pick(trained.match(value, "argument")))
    except SharingError:
        raise
    except ValueError:
        if not callable(value):
            is_tuple = type(value) is tuple
            return tuple(shown_to_optax(x, trained, leaves) for x in value) if is_tuple else value

    def model_of(nested: Any) -> Any:
        """The model that a nested dict stands for; any other value itself."""
        shown: Any = jax.tree.structure(trained.nested(trained.positions))
        if jax.tree.structure(nested) != shown:
            return nested
        filled = list(leaves)
        for position, leaf in zip(trained.positions, trained.values(nested), strict=True):
            filled[position] = leaf
        return _core.unflatten(trained.spec, filled)

    @functools.wraps(value, updated=())  # optax reads the names of its parameters
    def of_dicts(*args: Any, **kwargs: Any) -> Any:
        named = {name: model_of(given) for name, given in kwargs.items()}
        return shown_to_optax(value(*map(model_of, args), **named), trained, leaves)

    return of_dicts


def mask(tree: Dag, where: Where | None = None, *, namespace: str = "") -> Callable[[Any], Any]:
    """A function for optax that makes a mask, or labels, of what an `optimizer` shows to optax.

    Args:
        tree: A tree like the model, or a prefix of it, with an answer for each leaf: a flag, a
            label. A shared array gets the answer at the first of its paths.
        where: Given, `tree` is the model, and the mask is that of `pydag.dag_mask(tree, where)`.
        namespace: As in `pydag.dag_flatten`.

    Raises:
        TypeError: The tree is a selection.

    >>> import optax
    >>> model = {"weight": jnp.ones(2), "scale": jnp.ones(())}
    >>> decayed = optax.add_decayed_weights(0.1, mask(model, "*weight*"))
    >>> zeros = {"weight": jnp.zeros(2), "scale": jnp.zeros(())}
    >>> tx = pydag.jaxinterop.optimizer(decayed)
    >>> tx.update(zeros, tx.init(model), model)[0]["scale"].item()
    0.0
    """
    if isinstance(tree, str) or (callable(tree) and _core.is_leaf(tree, namespace=namespace)):
        raise TypeError(
            f"mask takes the model first, got {short_repr(tree)}, which would be one answer for "
            "all\n  A selection is the second argument: pj.mask(model, where), such as "
            'pj.mask(model, "*.weight"). Labels are a tree like the model.'
        )
    answers = tree if where is None else dag_mask(tree, where, namespace=namespace)
    return _Mask(answers, namespace)


@dataclasses.dataclass
class _Mask:
    answers: Dag
    namespace: str

    def __call__(self, nested: Any) -> Any:
        return self._at(self.answers, nested, "mask")

    def __bool__(self) -> bool:  # it would be one answer for everything
        raise TypeError(
            "pydag.jaxinterop.mask makes a function, and this transformation of optax's takes "
            "trees alone (such as optax.selective_transform)\n  Call it: "
            "mask(tree)(what optax sees, a nested dict of the arrays); or take optax.masked, "
            "optax.partition or optax.freeze, which take functions."
        )

    def _at(self, node: Any, nested: Any, path: str) -> Any:
        """The answers of a tree for each place of a nested dict."""
        while is_variable_class(type(node)):
            [node], _, _ = _core.open_one_level(node, namespace=self.namespace)
        if type(nested) is not dict:
            return node
        if _core.is_leaf(node, namespace=self.namespace):
            return jax.tree.map(lambda _: node, nested)
        children, entries, _ = _core.open_one_level(node, namespace=self.namespace)
        found: dict[Any, Any] = {}
        for names in (map(str, entries), map(repr, entries), entries):
            found.update(zip(names, children, strict=True))
        for key in nested:
            if key not in found:
                raise ValueError(
                    f"{path} is a tree for another model: it has {list(entries)}, and not {key!r}\n"
                    "  Make it of the model: pydag.dag_map or pydag.dag_mask."
                )
        return {key: self._at(found[key], x, f"{path}[{key!r}]") for key, x in nested.items()}
