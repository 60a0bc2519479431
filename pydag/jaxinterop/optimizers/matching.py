# SPDX-License-Identifier: Apache-2.0
"""Gradients and states, matched with the model that they are for."""

from typing import Any

import jax

import pydag._core as _core
from pydag.errors import SharingError
from pydag.jaxinterop.messages.plain_functions import plain_trace_advice
from pydag.jaxinterop.messages.roots import shortened
from pydag.jaxinterop.packed.dag import Dag
from pydag.jaxinterop.static.untraced import Untraced
from pydag.jaxinterop.structure.pairing import unfold_alike
from pydag.typing import Dag as AnyDag
from pydag.typing import Leaf


def leaves_or_none(untraced: Untraced, tree: AnyDag, what: str, root: str) -> list[Leaf]:
    """What a tree has at the place of each traced leaf of a structure; None where it has nothing.

    Raises:
        ValueError: The tree is structured in another way.
        SharingError: It has two objects where there is one.
    """
    if type(tree) is Dag:
        own, leaves = tree._take_apart()
        if own.content == untraced.content:
            return list(map(or_none, leaves))
        tree = tree.tree
    return list(map(or_none, untraced.match(tree, what, root)))


def check_state(state: Untraced, model: Untraced, root: str) -> None:
    """Checks that an optimizer's state is for this structure.

    Raises:
        ValueError: It is for another one.
        SharingError: For one that is shared in another way.
    """
    if state.spec == model.spec and state.positions == model.positions:
        return
    shown = _core.explain(state.spec, model.spec, roots=root)
    told = shortened(shown or "other leaves are arrays", 1400)
    if state.spec != model.spec and unfold_alike(state.spec, model.spec):
        raise SharingError(_OTHER_SHARING.format(told, _tied_advice(_MODEL_ADVICE)))
    raise ValueError(_OTHER.format(told))


_BOTH = "  (first: what the state is for, second: the model)\n{}\n"

_OTHER = (
    "the optimizer's state is for another structure than that of the model\n"
    + _BOTH
    + "  Update the model that init was given, or one that is structured alike."
)

_OTHER_SHARING = (
    "the optimizer's state is for a model that is shared in another way\n" + _BOTH + "  {}"
)

_MODEL_ADVICE = (
    "Something between untied the model, or tied it: a plain jax.tree.map, jax.jit or "
    "optax.apply_updates unties. Take pydag.dag_map and pydag.jaxinterop's jit and apply_updates; "
    "pydag.retie ties the model again."
)

_GRADIENT_ADVICE = (
    "A gradient of plain jax.grad, or of equinox's, has two parts for what is one parameter, and "
    "so has one that plain jax.tree.map made. Take pydag.jaxinterop's grad, and pydag.dag_map."
)


def _tied_advice(otherwise: str) -> str:
    return plain_trace_advice() or otherwise


def matched_gradient(untraced: Untraced, updates: AnyDag) -> list[Leaf]:
    """What a gradient has for each traced leaf of a model; None where it has nothing.

    Raises:
        ValueError: It is structured in another way.
        SharingError: It has two parts where the model has one object.
    """
    try:
        return leaves_or_none(untraced, updates, "the gradient", "updates")
    except SharingError as error:
        raise SharingError(
            f"the gradient is shared in another way than the model\n{error}\n"
            f"  {_tied_advice(_GRADIENT_ADVICE)}"
        ) from None


class NoUpdate:
    """Stands in a `Dag` of updates for what isn't trained: a parameter plus this is the parameter.

    So `optax.apply_updates`, which knows no None there, takes Dags. A node without children.
    """

    __slots__ = ()

    def __radd__(self, parameter: Any) -> Any:
        return parameter

    def __repr__(self) -> str:
        return "NoUpdate()"


jax.tree_util.register_pytree_node(NoUpdate, lambda _: ((), None), lambda _, __: NoUpdate())


def or_none(leaf: Leaf) -> Leaf:
    """An update; None where there is none."""
    is_none = type(leaf) is NoUpdate or getattr(leaf, "dtype", None) == jax.dtypes.float0
    return None if is_none else leaf
