# SPDX-License-Identifier: Apache-2.0
"""What `jax.export` gets: a function of the arguments as the user has them.

An exported function is called by JAX alone, which flattens the arguments its own way, each shared
array once for each of its places, and knows no static leaves. So the exported function takes them
in that form, and uses the first copy of each shared array. Its result keeps its sharing.
"""

import collections
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
from jax import tree_util

from pydag.jaxinterop.boundary.call import Call
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.messages.naming import COUNTED, named
from pydag.jaxinterop.messages.roots import shortened
from pydag.jaxinterop.packed.dag import dag_of, rebuilt
from pydag.jaxinterop.packed.returned import Returned
from pydag.jaxinterop.static.differentiable import is_ref
from pydag.jaxinterop.static.leaves import Static
from pydag.jaxinterop.static.pick import put_in
from pydag.jaxinterop.static.untraced import Options, Untraced
from pydag.jaxinterop.updates.choice import NOTHING
from pydag.typing import Leaf

from .compiled_function import CompiledFunction
from .key import Key
from .shardings import UNSPECIFIED

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


_struct: Any = jax.ShapeDtypeStruct


def _without_static(arguments: Arguments) -> Arguments:
    args, kwargs = arguments
    return (
        tuple(arg for arg in args if type(arg) is not Static),
        {name: arg for name, arg in kwargs.items() if type(arg) is not Static},
    )


def _first_indices(untraced: Untraced) -> list[int]:
    """For each traced leaf, its first index among the leaves that JAX sees.

    Raises:
        TypeError: JAX sees a leaf that it can't trace.
    """
    marks = [_struct((), "float32") for _ in untraced.traced_positions()]
    found = tree_util.tree_leaves_with_path(_without_static(untraced.build(marks)))
    first: dict[int, int] = {}
    for index, (path, leaf) in enumerate(found):
        if type(leaf) is not jax.ShapeDtypeStruct:
            root = ("args", "kwargs")[path[0].idx]
            raise _not_of_jax(root + tree_util.keystr(path[1:]), leaf, untraced.spec.namespace)
        first.setdefault(id(leaf), index)
    return [first[id(mark)] for mark in marks]


def _not_of_jax(where: str, leaf: Any, namespace: str) -> TypeError:
    cls = type(leaf).__qualname__
    cure = (
        "Pass the tree that holds it in a pydag.jaxinterop.Dag, or name a static argument."
        if Options(namespace).flatten(leaf)[1].is_leaf()
        else f"Let JAX open it, too: pydag.jaxinterop.register({cls})."
    )
    return TypeError(
        f"{shortened(where)} is no array, but an object of type {cls}, and an exported function is "
        f"called by JAX, which takes arrays and what it knows how to open\n  {cure}"
    )


def _described(leaf: Leaf) -> Any:
    """An array's shape and type in its place, so that nothing large is kept."""
    if is_ref(leaf):
        return None  # a function of refs can't be exported
    if not isinstance(leaf, jax.Array) or isinstance(leaf, jax.core.Tracer):
        return leaf
    where = leaf.sharding if getattr(leaf, "committed", False) else None
    return _struct(
        leaf.shape, leaf.dtype, sharding=where, weak_type=getattr(leaf, "weak_type", False)
    )


_ARRAY: Any = jax_private.array_class


class _Kept:
    """What is kept of leaves: to describe an array takes long, and only an export needs that."""

    def __init__(self, leaves: Iterable[Any]) -> None:
        arrays = list(leaves)
        self._others = {i: _described(x) for i, x in enumerate(arrays) if type(x) is not _ARRAY}
        if self._others:
            arrays = [x for x in arrays if type(x) is _ARRAY]
        self._types = [array.aval for array in arrays]
        self._places = [array.sharding if array.committed else None for array in arrays]

    def described(self) -> list[Any]:
        """The leaves, with a description for each array."""
        found = [
            _struct(aval.shape, aval.dtype, sharding=where, weak_type=aval.weak_type)
            for aval, where in zip(self._types, self._places, strict=True)
        ]
        return put_in(found, self._others.items())


_PLAIN = {dict, list, tuple, type(None), collections.OrderedDict}


def _is_plain(structure: Any) -> bool:
    """Whether it has only containers that hold anything."""
    rest = [structure]
    while rest:
        node = rest.pop()
        data = node.node_data()
        if data is not None and data[0] not in _PLAIN:
            return False
        rest.extend(node.children())
    return True


def _for_jax(result: Any, options: Options, each: bool) -> Any:
    """The result; as a `Returned` where JAX would see it otherwise than the user.

    Args:
        each: Whether each leaf is given a sharding. JAX takes those in the result's own structure,
            so that a class of the user's would have to hold them.
    """
    dag = dag_of(result, options)
    leaves, structure = tree_util.tree_flatten(result)
    if (
        sorted(map(id, leaves)) == sorted(map(id, dag._leaves))
        and not dag.spec.num_shared
        and not (each and not _is_plain(structure))
    ):
        return result
    return Returned(dag._untraced, dag._leaves)


def _placed(leaf: Any, where: Any) -> Any:
    return _struct(
        leaf.shape, leaf.dtype, sharding=where, weak_type=getattr(leaf, "weak_type", False)
    )


class Exported:
    """A compiled function and arguments, which `jax.export` may ask for.

    Args:
        fun: The user's function; nothing else here owns it.
        leaves: The traced leaves of the arguments.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        compiled: CompiledFunction,
        key: Key,
        leaves: Sequence[Leaf],
    ) -> None:
        self.fun, self.compiled, self.key, self.untraced = fun, compiled, key, key.untraced
        self._leaves = _Kept(leaves)

    def trace(self, result: Any) -> Any:
        """JAX's stage of the function in the form in which JAX calls it.

        Args:
            result: Of the function, with shapes for arrays.

        Raises:
            TypeError: An argument holds something that isn't JAX's.
        """
        untraced, compiled = self.untraced, self.compiled
        if compiled.updated != NOTHING:
            raise TypeError(
                "a function with update_argnums can't be exported: what is exported only returns\n"
                "  Export a function that returns what it changed."
            )
        indices = _first_indices(untraced)
        each = not compiled.shardings.outputs(compiled.options).is_one

        def plain(*args: Any, **kwargs: Any) -> Any:
            given = tree_util.tree_leaves((args, kwargs))
            call = rebuilt(untraced, [given[i] for i in indices], Call)
            return _for_jax(call.run(compiled.call), compiled.options, each)

        args, kwargs = _without_static(untraced.build(self._described()))
        return jax.jit(named(plain, compiled.source, COUNTED), **self._shardings(result)).trace(
            *args, **kwargs
        )

    def _described(self) -> list[Any]:
        """The traced leaves, each with the sharding that it alone is given."""
        leaves = self._leaves.described()
        if self.key.order is None:
            return leaves
        asked = [self.compiled.shardings.values[group] for group in self.key.order]
        return [
            leaf if where is None else _placed(leaf, where)
            for leaf, where in zip(leaves, asked, strict=True)
        ]

    def _shardings(self, result: Any) -> dict[str, Any]:
        """The shardings that the function was compiled with, in the form of what JAX sees."""
        shardings, options = self.compiled.shardings, self.compiled.options
        given_in, given_out = shardings.given_in, shardings.given_out
        if self.key.order is not None:
            given_in = UNSPECIFIED  # the arguments' shapes have it
        if not shardings.outputs(options).is_one:
            dag = dag_of(result, options)
            treatments = shardings.of_result(result, options)
            each = [treatments[i] for i in dag._untraced.traced_positions()]
            is_returned = type(_for_jax(result, options, True)) is Returned
            given_out = (Returned if is_returned else Untraced.build)(dag._untraced, each)
        found = {"in_shardings": given_in, "out_shardings": given_out}
        return {name: given for name, given in found.items() if given is not UNSPECIFIED}
