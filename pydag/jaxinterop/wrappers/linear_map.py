# SPDX-License-Identifier: Apache-2.0
"""The linear maps that `vjp` and `linearize` return."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax import tree_util

import pydag._core as _core
from pydag.jaxinterop.boundary.match import matched
from pydag.jaxinterop.foreign import jax_private
from pydag.jaxinterop.notices.blame import blame_tangent
from pydag.jaxinterop.packed.dag import Dag, InnerDag, rebuilt
from pydag.jaxinterop.packed.derivatives import (
    Structures,
    derivative,
    tangents_for,
    tree_of_descriptions,
    without_float0,
)
from pydag.jaxinterop.refs.access import new_ref
from pydag.jaxinterop.static.differentiable import is_ref, shape_of
from pydag.jaxinterop.static.untraced import Untraced
from pydag.typing import Leaf

# What the objects of JAX's have, and why that isn't here.
_FLAT = "It would speak of the distinct leaves."
_LEFT_OUT: Mapping[str, str] = dict.fromkeys(
    ("in_tree", "out_tree", "opaque_residuals", "structured_residuals", "func", "args", "keywords"),
    _FLAT,
) | {
    "fun": _FLAT,
    "replace": "Set args_res, or take with_logs or with_refs.",
}


class LinearMap:
    """What `vjp` and `linearize` return: a pytree, whose leaves are what JAX keeps for it.

    A tree that it is given has the structure of that which it is for. It may share more, and must
    not share less: one object can't have two tangents.

    Args:
        function: JAX's.
        untraced, types: Of the Dag that `function` takes: its structure, the types of its leaves.
        takes: One cotangent, of the result; or tangents, one for each primal.
        gives: What JAX sees of the tree that what it gives is for.
        given: The structure of that tree.

    Raises:
        SharingError: When called: different objects stand where one object stood.
        ValueError: When called: a cotangent is structured in another way than the result.
        TypeError: When called: the tangents are structured in another way than the primals.
    """

    def __init__(
        self,
        function: Any,
        untraced: Untraced,
        types: tuple[Any, ...],
        takes: Literal["cotangent", "tangents"],
        gives: Structures,
        given: Untraced,
    ) -> None:
        self.function, self.untraced, self.types = function, untraced, types
        self.takes, self.gives, self.given = takes, gives, given
        self._args_res: list[Any] | None = None
        # Of a pullback: which of the primals' leaves are refs, and of what type; and whether JAX's
        # function has the refs to which it adds their cotangents.
        self.refs: tuple[tuple[int, Any], ...] = ()
        self.has_refs = False

    @classmethod
    def at(
        cls, function: Any, dag: Dag, takes: Literal["cotangent", "tangents"], gives: InnerDag
    ) -> "LinearMap":
        """The map that takes what is for this Dag."""
        given = gives._untraced
        structures = Structures.of(gives.tree, given)
        found = cls(function, dag._untraced, types_of(dag), takes, structures, given)
        if takes == "cotangent":
            pairs = enumerate(gives._leaves)
            found.refs = tuple((i, shape_of(leaf)) for i, leaf in pairs if is_ref(leaf))
        return found

    def _with(self, function: Any) -> "LinearMap":
        made = LinearMap(function, self.untraced, self.types, self.takes, self.gives, self.given)
        made.refs, made.has_refs = self.refs, self.has_refs
        return made

    def __getattr__(self, name: str) -> Any:
        is_pullback = self.__dict__.get("takes") == "cotangent"
        if name in _LEFT_OUT and hasattr(self.function, name):
            kind = "pullback" if is_pullback else "linear map"
            raise AttributeError(
                f"JAX's {kind} has {name}, and pydag.jaxinterop's hasn't. {_LEFT_OUT[name]}"
            )
        if name in ("jaxpr", "want_logs") and is_pullback:
            return getattr(self.function, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __call__(self, *given: Any) -> Any:
        if self.takes == "tangents":
            leaves = matched(self.untraced, given, "the tuple of the tangents", "tangents")
            tangent = self._apply(leaves, "primals", "tangents")
            return derivative(tangent._untraced, without_float0(tangent._leaves), self.gives)
        if len(given) != 1:
            raise TypeError(
                f"a pullback takes one cotangent, of the form of the result, but got {len(given)}"
            )
        leaves = self.untraced.match(given[0], "the cotangent", "cotangent")
        found = self._apply(leaves, "result", "cotangent")
        if getattr(self.function, "want_logs", False):
            found, logs = found
            return self._cotangents(found), logs
        return self._cotangents(found)

    def _cotangents(self, found: tuple[Dag]) -> Any:
        (cotangents,) = found
        leaves = list(without_float0(cotangents._leaves))
        for i, _ in self.refs:
            leaves[i] = None  # what it adds to a ref isn't returned
        return derivative(cotangents._untraced, leaves, self.gives)

    def _apply(self, leaves: list[Leaf], point: str, direction: str) -> Any:
        dag = rebuilt(self.untraced, tangents_for(self.types, leaves), InnerDag)
        try:
            return self._with_all_refs()(dag)
        except (TypeError, ValueError) as error:
            expected = rebuilt(self.untraced, self.types, InnerDag)
            blame_tangent(error, expected.with_paths(point), dag.with_paths(direction))
            raise

    def current(self, function: Any) -> Any:
        """JAX's function, with what was put into `args_res`."""
        if self._args_res is None:
            return function
        leaves = self.given.match(tuple(self._args_res), "args_res", "args_res")
        function = copy.copy(function)
        function.args_res = [tuple(leaves)]
        return function

    @property
    def args_res(self) -> list[Any]:
        """Of a pullback: for each primal what is kept of it, in its form; as JAX's.

        At a leaf that isn't needed, or that `saveable_args` says not to keep, stands a mark of
        JAX's. What isn't kept must be put in its place before the call.
        """
        if self._args_res is None:
            (leaves,) = self.function.args_res
            self._args_res = list(tree_of_descriptions(self.given, leaves))
        return self._args_res

    @args_res.setter
    def args_res(self, values: Any) -> None:
        self._args_res = list(values)

    @property
    def out_nzs(self) -> Any:
        """In the form of the result: whether it depends on the primals; with newer JAX."""
        of_result = self.untraced if self.takes == "cotangent" else self.given
        return tree_of_descriptions(of_result, self.function.out_nzs)

    @property
    def with_logs(self) -> "LinearMap":
        """A pullback that returns a pair of the cotangents and what rules logged; newer JAX."""
        return self._with(self.current(self.function).with_logs)

    def _with_all_refs(self) -> Any:
        """JAX's function, which wants a ref for each primal that is one."""
        if self.has_refs or not self.refs:
            return self.current(self.function)
        return self._adding_to([None] * len(self.given.traced_positions()))

    def with_refs(self, *refs: Any) -> "LinearMap":
        """A pullback that adds cotangents to refs; as JAX's.

        Args:
            refs: For each primal a tree in its form, with a ref, `jax.ad.GradValue()`,
                `jax.ad.DontWant()`, or None at each leaf. None is the first of these two; where the
                primal is a ref it means that the cotangent isn't wanted.
        """
        leaves = self.given.match(refs, "the tuple of the refs", "refs")
        _check_used(refs, leaves)
        made = self._with(self._adding_to(leaves))
        made.has_refs = True
        return made

    def _adding_to(self, refs: Sequence[Any]) -> Any:
        """JAX's function with these refs, or marks of JAX's; None for what is usual."""
        marks: Any = jax.ad
        usual = [marks.GradValue()] * len(refs)
        for i, kind in self.refs:
            # It isn't asked for. A mark isn't enough where the ref was written into.
            usual[i] = new_ref(jnp.zeros(kind.shape, kind.dtype))
        wanted = [own if leaf is None else leaf for leaf, own in zip(refs, usual, strict=True)]
        return self.current(self.function).with_refs(rebuilt(self.given, wanted, InnerDag))


def _check_used(refs: tuple[Any, ...], leaves: Sequence[Leaf]) -> None:
    """Checks that each ref stands at a leaf that is differentiated by."""
    used = set(map(id, leaves))
    if any(is_ref(leaf) and id(leaf) not in used for leaf in _core.leaves(refs)):
        raise ValueError(
            "with_refs() has a ref for a leaf that isn't differentiated by, so nothing would be "
            "added to it\n"
            "  Give None there. By a primal that is a ref JAX differentiates from 0.12 on."
        )


def takes_grad_refs(refs: Sequence[Any]) -> bool:
    """Whether JAX differentiates by refs among the primals, and adds to refs what it finds."""
    return bool(refs) and jax_private.differentiates_refs


def types_of(dag: Dag) -> tuple[Any, ...]:
    """JAX's types of the leaves."""
    return tuple(map(jax.typeof, dag._leaves))


def _rebuilt(function: Any, *aux: Any) -> LinearMap:
    made = LinearMap(function, *aux[:-2])
    made.refs, made.has_refs = aux[-2:]
    return made


tree_util.register_pytree_node(
    LinearMap,
    lambda f: (
        (f.current(f.function),),
        (f.untraced, f.types, f.takes, f.gives, f.given, f.refs, f.has_refs),
    ),
    lambda aux, children: _rebuilt(children[0], *aux),
)
