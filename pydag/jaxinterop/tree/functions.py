# SPDX-License-Identifier: Apache-2.0
"""`jax.tree`'s functions, for DAGs. As in the wrappers, the leaves are the data."""

import builtins
import functools
from collections.abc import Callable
from typing import Any, cast, overload

import jax

import pydag._core as _core
from pydag.jaxinterop.content.content import Content, Flat, take_apart
from pydag.jaxinterop.content.leaves import copied, is_number
from pydag.jaxinterop.content.static import leaves_of_modules, remembered
from pydag.jaxinterop.foreign.jax_private import is_ref
from pydag.jaxinterop.help import with_wrapper_options
from pydag.jaxinterop.typed import T
from pydag.optree_api.broadcast import broadcast_prefix
from pydag.public.compiled import MISSING, check_function
from pydag.public.tracebacks import short_tracebacks
from pydag.sharing.refs import copy_of_leaf
from pydag.typing import Builtin, Dag, IsLeaf, Leaf

from .treedef import Structure, rows_of


def _apart(
    tree: Dag, is_leaf: IsLeaf | None, flat: Flat | None = None
) -> tuple[list[Leaf], Content]:
    """The data of a tree, and its content. Names are only looked up for an error."""
    try:
        return take_apart(tree, is_leaf=is_leaf, has_names=False, flat=flat)
    except (TypeError, ValueError):
        return take_apart(tree, is_leaf=is_leaf)


def _flat(tree: Dag) -> Flat | None:
    """The tree, flattened; None if `_apart` is to raise an error."""
    try:
        leaves, spec = _core.flatten(tree)
    except (TypeError, ValueError):
        return None
    return leaves, spec, remembered(leaves, spec)


@short_tracebacks
@with_wrapper_options
def flatten(tree: Dag, is_leaf: IsLeaf | None = None) -> tuple[list[Leaf], Structure]:
    """The distinct leaves of a DAG, and its structure.

    Raises:
        CycleError: An object contains itself.
        TypeError: A leaf is an object of a class that is not registered.

    >>> w = jnp.ones(2)
    >>> found, treedef = flatten({"encoder": w, "decoder": w, "name": "net"})
    >>> len(found), treedef.num_leaves
    (1, 1)
    """
    found, content = take_apart(tree, is_leaf=is_leaf)
    return found, Structure(content)


@short_tracebacks
@with_wrapper_options
def leaves(tree: Dag, is_leaf: IsLeaf | None = None) -> list[Leaf]:
    """The distinct leaves of a DAG: arrays, refs, and the numbers of dicts and records.

    >>> w = jnp.ones(2)
    >>> sum(x.size for x in leaves({"encoder": w, "decoder": w, "name": "net"}))
    2
    """
    return _apart(tree, is_leaf)[0]


@overload
def map(f: Callable[..., Any], tree: Builtin, *rest: Dag, is_leaf: IsLeaf | None = None) -> Any: ...
@overload
def map(f: Callable[..., Any], tree: T, *rest: Dag, is_leaf: IsLeaf | None = None) -> T: ...
@short_tracebacks
@with_wrapper_options
def map(f: Callable[..., Any], tree: Dag, *rest: Dag, is_leaf: IsLeaf | None = None) -> Any:
    """Call a function once for each distinct leaf; the result is shared as `tree` is.

    Configuration, text and functions are never given to `f`, and stay. Where a further tree has
    None, `f` isn't called, and the leaf stays: so a model and its gradient are mapped together.
    A number that `f` returns in the place of an array of a module, where numbers are configuration,
    becomes an array of no dimension: so a mask or a size is data of the result.

    Args:
        f: Gets the leaf, and what each further tree has at its place.

    Raises:
        ValueError: A further tree is structured differently.
        SharingError: A further tree gives one object two answers.
        CycleError, TypeError: As `flatten`.

    >>> w = jnp.ones(2)
    >>> doubled = map(lambda x: 2 * x, {"a": w, "b": w, "name": "net"})
    >>> doubled["a"] is doubled["b"], doubled["name"]
    (True, 'net')
    """
    check_function("map", f, tree)
    if not rest:
        flat = None if is_leaf else _flat(tree)
        static = flat[2] if flat else None
        if flat and static is not None and not any(leaves_of_modules(flat[1])):
            # To make a content would take longer than all the rest.
            mapped = [leaf if i in static else f(leaf) for i, leaf in enumerate(flat[0])]
            return _core.unflatten(flat[1], mapped)
        found, content = _apart(tree, is_leaf, flat)
        return content.build_mapped([f(leaf) for leaf in found])
    found, content = take_apart(tree, is_leaf=is_leaf)
    rows = rows_of(content, found, rest)
    return content.build_mapped([leaf if stays else f(leaf, *row) for leaf, row, stays in rows])


@with_wrapper_options
def reduce(
    function: Callable[[Any, Any], Any],
    tree: Dag,
    initializer: Any = MISSING,
    is_leaf: IsLeaf | None = None,
) -> Any:
    """Reduce the distinct leaves by a function, one after the other.

    Args:
        function: Called as `function(accumulated, leaf)`.
        initializer: What the first call gets; left out: the first leaf.

    Raises:
        TypeError: There is neither a leaf nor an initializer.
        CycleError: An object contains itself.

    >>> reduce(lambda total, x: total + x.size, {"a": jnp.ones(2), "b": jnp.ones(3)}, 0)
    5
    """
    check_function("reduce", function, tree)
    start = () if initializer is MISSING else (initializer,)
    return functools.reduce(function, leaves(tree, is_leaf), *start)


def reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: Dag,
    *,
    identity: Any = MISSING,
    is_leaf: IsLeaf | None = None,
) -> Any:
    """Combine the distinct leaves by an associative operation, pair by pair: in log(n) steps.

    Args:
        operation: Gets two neighbours, in order.
        tree: The DAG.
        identity: The result for a tree without leaves.
        is_leaf: Asked once per distinct object before it is opened. True keeps it whole, as a leaf.

    Raises:
        TypeError: There is neither a leaf nor an identity.
        CycleError: An object contains itself.

    >>> w = jnp.float32(2.0)
    >>> float(reduce_associative(jnp.add, {"a": w, "b": w, "c": jnp.float32(3.0)}))
    5.0
    """
    check_function("reduce_associative", operation, tree)
    found = leaves(tree, is_leaf)
    given = {} if identity is MISSING else {"identity": identity}
    return jax.tree.reduce_associative(operation, found, is_leaf=lambda x: x is not found, **given)


@with_wrapper_options
def all(tree: Dag, *, is_leaf: IsLeaf | None = None) -> bool:
    """Whether all distinct leaves are true.

    Raises:
        CycleError: An object contains itself.

    >>> all(map(lambda x: bool((x > 0).all()), {"a": jnp.ones(2)}))
    True
    """
    return builtins.all(leaves(tree, is_leaf))


@short_tracebacks
@with_wrapper_options
def broadcast(prefix_tree: Dag, full_tree: Dag, is_leaf: IsLeaf | None = None) -> Any:
    """A DAG of the structure of `full_tree`, with what a tree prefix says for each leaf.

    Args:
        prefix_tree: Each of its leaves applies to the subtree below.
        full_tree: The DAG.

    Raises:
        ValueError: It is no prefix.
        SharingError: It gives one object two answers.
        CycleError: An object contains itself.

    >>> w = jnp.ones(2)
    >>> broadcast({"a": 1.0, "b": 2.0}, {"a": [w, w], "b": jnp.ones(3)})
    {'a': [1.0, 1.0], 'b': 2.0}
    """
    _, content = take_apart(full_tree, is_leaf=is_leaf)
    answers = broadcast_prefix(prefix_tree, full_tree, is_leaf)
    return content.build_mapped(content.traced_among(answers))


def static(**kwargs: Any) -> Any:
    """Declare a field of a dataclass as configuration, which is no leaf; as `jax.tree.static`.

    Args:
        kwargs: What `dataclasses.field` takes.

    >>> from dataclasses import dataclass
    >>> @pydag.register_fields
    ... @dataclass
    ... class Scale:
    ...     factor: jax.Array
    ...     name: str = static(default="scale")
    >>> len(leaves(Scale(jnp.ones(2))))
    1
    """
    return jax.tree.static(**kwargs)


def copy(tree: T) -> T:
    """A real copy of a DAG: containers, modules, arrays and refs are new, and tied as they were.

    A change of the copy doesn't reach the original, nor the other way round; either may be donated
    while the other lives. Configuration, numbers and text are the same objects in both. An array
    keeps its type and sharding, one of NumPy stays one of NumPy, and a ref becomes a new ref with
    the content that the old one has now.

    `pydag.dag_copy`, which is faster, makes new containers around the same arrays.

    Args:
        tree: The DAG.

    Raises:
        TypeError: A leaf is an object of a class that is not registered.
        CycleError: An object contains itself.

    >>> w = jnp.ones(2)
    >>> model = {"encoder": w, "decoder": w, "name": "net"}
    >>> target = copy(model)
    >>> target["encoder"] is target["decoder"], target["encoder"] is w, target["name"]
    (True, False, 'net')
    """
    found, content = take_apart(tree)
    for i, leaf in enumerate(found):
        if isinstance(leaf, jax.Array) and not is_ref(leaf):
            found[i] = copied(leaf)
        elif not is_number(leaf):
            found[i] = copy_of_leaf(leaf)
    return cast(T, content.build(found))
